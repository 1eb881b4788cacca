import json
from itertools import count

NOTES, IDS = {}, count(1)


async def app(scope, receive, send):
    body, more = b"", True
    while more:
        event = await receive()
        body += event.get("body", b"")
        more = event.get("more_body", False)
    status, value = reply(scope["method"], scope["path"], body)
    data = b"" if status == 204 else json.dumps(value).encode()
    headers = [] if status == 204 else [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data})


def reply(method, path, body):
    parts = path.strip("/").split("/")
    if parts == ["notes"]:
        if method == "GET":
            return 200, list(NOTES.values())
        return create(body) if method == "POST" else (405, {"error": "method"})
    if len(parts) != 2 or parts[0] != "notes" or not parts[1].isdigit():
        return 404, {"error": "not found"}
    if method not in {"GET", "DELETE"}:
        return 405, {"error": "method"}
    note = NOTES.get(int(parts[1]))
    if note is None:
        return 404, {"error": "not found"}
    if method == "DELETE":
        del NOTES[note["id"]]
        return 204, None
    return 200, note


def create(body):
    try:
        value = json.loads(body)
    except ValueError:
        value = None
    text = value.get("text") if isinstance(value, dict) else None
    if not isinstance(text, str) or not text:
        return 422, {"error": "a note needs a text"}
    note = {"id": next(IDS), "text": text}
    NOTES[note["id"]] = note
    return 201, note
