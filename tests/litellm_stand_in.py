"""A Python with something in it that passes for LiteLLM: it has its version, and forwards.

It is no LiteLLM: it knows one path, no streams, and two wire formats. It is started as the real
one is, reads the same configuration, and asks for the same key.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PACKAGE = """
import json, os, sys, urllib.error, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import yaml


def run_server():
    words = dict(zip(sys.argv[1::2], sys.argv[2::2]))
    with open(words["--config"]) as file:
        held = yaml.safe_load(file)
    Door.models = {m["model_name"]: m["litellm_params"] for m in held["model_list"]}
    Door.key = os.environ[held["general_settings"]["master_key"].removeprefix("os.environ/")]
    ThreadingHTTPServer((words["--host"], int(words["--port"])), Door).serve_forever()


class Door(BaseHTTPRequestHandler):
    def do_GET(self):
        self.say(200 if self.path == "/health/liveliness" else 404, {"ok": True}, {})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers.get("authorization") != "Bearer " + self.key:
            return self.say(400, {"error": {"message": "No connected db."}}, {})
        params = self.models.get(body["model"])
        if params is None:
            return self.say(400, {"error": {"message": "Invalid model name."}}, {})
        sent = {k: v for k, v in self.headers.items() if k.lower().startswith("x-")}
        try:
            self.say(200, *ask(params, body, sent))
        except urllib.error.HTTPError as error:
            said = json.loads(error.read() or b"{}").get("error", "")
            self.say(error.code, {"error": {"message": str(said)}}, {})

    def say(self, status, body, headers):
        raw = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**headers, "content-length": str(len(raw))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, form, *words):
        print(json.dumps({"message": form % words, "level": "INFO"}), file=sys.stderr, flush=True)


def ask(params, body, headers):
    provider, _, model = params["model"].partition("/")
    native = provider == "ollama_chat"
    path = "/api/chat" if native else "/chat/completions"
    told = {**body, "model": model, "stream": False}
    if native:
        told["options"] = {"num_ctx": params["num_ctx"], "num_predict": told.pop("max_tokens", 64)}
    request = urllib.request.Request(
        params["api_base"] + path, json.dumps(told).encode(),
        {**headers, "content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        said = json.load(answer)
        # The real one passes on no header of a native Ollama answer.
        if not native:
            return said, {"x-fleet-node": answer.headers.get("x-fleet-node", "")}
    message = said["message"]
    calls = [{"id": "c1", "type": "function", "function": call["function"]}
             for call in message.get("tool_calls") or []]
    message = {"role": "assistant", "content": message["content"], "tool_calls": calls}
    usage = {"prompt_tokens": said["prompt_eval_count"], "completion_tokens": said["eval_count"]}
    return {"choices": [{"index": 0, "message": message}], "usage": usage}, {}
"""


def litellm_stand_in(root: Path, version: str = "1.106.2") -> Path:
    """Its Python, to be named in FLEET_GATEWAY_PYTHON."""
    packages = root / "packages"
    (packages / "litellm").mkdir(parents=True, exist_ok=True)
    (packages / "litellm" / "__init__.py").write_text(PACKAGE)
    for old in packages.glob("litellm-*"):
        (old / "METADATA").unlink()
        old.rmdir()
    about = packages / f"litellm-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: litellm\nVersion: {version}\n")
    python = root / "bin" / "python"
    python.parent.mkdir(exist_ok=True)
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return python
