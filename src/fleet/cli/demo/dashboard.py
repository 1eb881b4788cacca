"""`fleet demo --ui`: a shop at work, in every state that a task can be in, and the page that shows it."""

from __future__ import annotations

import http.client
import json
import math
import os
import shutil
import subprocess
import threading
import time
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from fleet.app import App
from fleet.cli.demo.compute import free_ports
from fleet.cli.demo.scratch import FLEET, Scratch, stop
from fleet.cli.terminal.view import Result, Text
from fleet.client import LocalClient
from fleet.domain.errors import FleetError, Unavailable
from fleet.operations.landing.race import ListRaces
from fleet.operations.tasks.edit import EditTask
from fleet.testing.fake_node.node import FakeModel, FakeNode

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fleet.operations.catalogue import Request

READY = 60.0  # seconds for the work to get going
PAUSE = 1.1  # seconds between two requests of the agents
AGENTS = (("planner", "small-coder"), ("implementer", "heavy-coder"), ("reviewer", "small-coder"))
FLEET_YAML = """\
project:
  name: shop
  gateway: {{port: {port}}}
nodes:
  laptop: {{endpoint: "{laptop}", kind: ollama, memory: 24GB, tags: [fast]}}
  mac-mini-64gb: {{endpoint: "{mini}", kind: ollama, memory: 64GB, tags: [heavy]}}
  gpu-box: {{endpoint: "http://127.0.0.1:9", kind: vllm, memory: 48GB}}
models:
  small-coder: {{node: laptop, upstream: "qwen2.5-coder:7b", alias: claude-haiku-local, context: 16384, max_parallel: 3}}
  heavy-coder:
    servings: {{mac-mini-64gb: "qwen2.5-coder:32b", gpu-box: qwen2.5-coder-32b}}
    alias: claude-sonnet-local
    context: 32768
    max_parallel: 2
agents:
  planner: {{coder: scripted, model: small-coder, description: Plans the work.}}
  implementer: {{coder: scripted, model: heavy-coder, description: Writes the code.}}
  reviewer: {{coder: scripted, model: small-coder, description: Reads what was written.}}
  writer: {{coder: scripted, description: Writes what people read.}}
"""
CHECK = """\
#!/bin/sh
# The tests of the shop: quick while an agent works, slow where its work lands.
if [ -z "$FLEET_TASK_ID" ] && [ "$1" = receipt ]; then
    echo "FAILED test_receipt.py::test_tax: the receipt has no tax"
    exit 1
fi
echo "test_$1.py ......"
[ -n "$FLEET_TASK_ID" ] || sleep 25
echo "6 passed"
"""
SLOW, BROKEN = "sh check.sh shop", "sh check.sh receipt"
WRITES = "say Reading the code.\nsay {0}.\nwrite {1} # {0}\nusage {2} {3} {4}\ncommit {0}\nsay Done: {0}."
SCHEMA = r"""say Reading shop.md for what the shop keeps.
run cat shop.md
think Prices change, so a bill has to keep the price that it was made with.
say A bill keeps the price of each item: **prices change, bills do not**.
write schema.sql -- What the shop keeps.\ncreate table item (\n  id integer primary key,\n  name text not null unique,\n  cents integer not null check (cents >= 0)\n);\n\ncreate table bill (\n  id integer primary key,\n  made_at integer not null\n);\n\ncreate table line (\n  bill integer not null references bill (id),\n  item integer not null references item (id),\n  cents integer not null -- as it was then\n);
write shop.md A shop that sells tea and cake.\n\nIts tables are in `schema.sql`. Money is in cents, never in floats.
usage 9800 300 0.09
commit Draw the schema
say Three tables: items, bills, and the lines of each bill."""
STEPS = (  # what an agent does, over and over
    "say Reading the tests of this module.", "run git log --oneline -5", "think Which callers rely on the order? Two, by the look of it.",
    "say The second pass is not needed: the first one knows the **size**.", "append notes.md - one pass is enough",
    "say Writing it, with a test that fails before.", "run git status --short", "say That test passes now; three more to go.",
    "think One caller still relies on the old order. It stays as it is.", "say One caller still relies on the old order. Keeping it.",
    "append notes.md - the old order stays for `report()`", "run git diff --stat", "say Running the tests again.",
)  # fmt: skip
ROUNDS = 90  # about an hour


TALKS = ("".join(f"{step}\nsleep 3\n" for step in STEPS) + "usage 2400 180 {0}\n") * ROUNDS
TASKS: tuple[tuple[str, str, dict[str, object]], ...] = (  # title, script, more
    ("Read prices from a file", WRITES.format("Read prices", "prices.py", 18200, 640, 0), {"agent": "implementer", "gate": "true"}),
    ("Add up a bill", WRITES.format("Add up a bill", "bill.py", 24100, 910, 0.21), {"agent": "writer", "gate": "true", "label": ["billing"]}),
    ("Choose a licence", "say Looking for a licence.\nask Which licence shall this have? MIT suits a small tool; Apache-2.0 also grants patents. | MIT | Apache-2.0\nwrite LICENSE {answer}\ncommit A licence", {"agent": "planner"}),
    ("Print a bill", "say Printed.", {"agent": "writer", "after": ["add-up-a-bill", "choose-a-licence"]}),
    ("Round every price to cents", "say Reading bill.py.\nusage 3100 90 0.04\nfail 9 test_rounding failed: 3.005 became 3.0, not 3.01", {"agent": "writer", "attempts": 1, "label": ["billing"]}),
    ("Draw the schema", SCHEMA, {"agent": "writer", "review": True, "gate": "sh check.sh schema"}),
    ("Speed up the search", "say Profiling the search: 480 ms, most of it in the index.\nusage 19400 2100 0\nthink The index is built on each request.\n" + TALKS.format(0), {"agent": "implementer", "label": ["search"]}),
    ("Rewrite the importer", "say The old importer reads each file twice.\nusage 61000 4100 0.62\n" + TALKS.format(0.012), {"agent": "writer", "budget": "$5"}),
    ("Translate the menu", "say Translated.", {"agent": "writer", "after": ["draw-the-schema"]}),
    ("Cache the thumbnails", "say Measuring the cache.\nusage 14800 900 0\n" + TALKS.format(0), {"agent": "implementer"}),
    ("Ship the release", "say Shipped.", {"agent": "implementer", "after": ["rewrite-the-importer", "speed-up-the-search"]}),
    ("Sort the shelf by price", WRITES.format("Sort the shelf", "shelf.py", 15100, 700, 0.14), {"agent": "writer", "gate": SLOW}),
    ("Show the stock", WRITES.format("Show the stock", "stock.py", 12000, 480, 0), {"agent": "reviewer", "gate": SLOW}),
    ("Warn when tea runs out", WRITES.format("Warn", "warn.py", 11400, 510, 0.11), {"agent": "writer", "gate": SLOW}),
    ("Name the error in the log", WRITES.format("Name the error", "log.py", 8700, 260, 0.07), {"agent": "writer", "gate": "true"}),
    ("Test the login with a wrong password", "say Testing.", {"agent": "implementer"}),
    ("Index the catalogue", "say 40,000 pages, one after the other.\nusage 88000 5200 0.58\nsleep 600", {"agent": "writer", "budget": "$0.50"}),
    ("Add tax to the receipt", WRITES.format("Add tax", "receipt.py", 9100, 330, 0.06), {"agent": "writer", "gate": BROKEN}),
)  # fmt: skip
RACE = """\
say The total is wrong when a price has cents.
run sh -c "if [ $FLEET_TASK_ID = t-21 ]; then echo 'print(3)' > total.py; else echo 'print(3.01)' > total.py; fi"
run sh -c "if [ $FLEET_TASK_ID = t-20 ]; then echo '# Prices in cents, never in floats.' >> total.py; fi"
usage 9100 380 0.08
commit Add up cents"""
LOOK_SECONDS = 1.0  # for Ctrl-C
RACE_TEST = "grep -q 3.01 total.py"
LANDED, LANDING = ("t-1", "t-2", "t-15"), ("t-12", "t-13", "t-14", "t-18")
MORE = (  # what goes on landing while somebody looks
    ("Sort the menu by name", "menu.py"), ("Name every colour", "colours.py"), ("Count the visitors", "visits.py"),
    ("Round the weights", "weights.py"), ("Print the shelf labels", "labels.py"), ("Check the postcode", "postcode.py"),
)  # fmt: skip
MORE_EVERY = 22.0  # seconds: less than a gate takes


class _StandInGateway(BaseHTTPRequestHandler):
    """In place of LiteLLM, which the demo does not need: its agents ask the relay."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_words: object) -> None:
        pass


def demo_ui(*, keep: bool, browse: bool) -> Result:
    """Run the demo until Ctrl-C; then remove everything, unless it is to be kept."""
    scratch = Scratch.make()
    try:
        with ExitStack() as stack:
            link = _set_up(scratch, stack)
            return _hold(scratch, link, browse=browse, keep=keep)
    finally:
        if not keep:
            scratch.remove()


def _set_up(scratch: Scratch, stack: ExitStack) -> str:
    """Start everything; return the link that opens the page."""
    from fleet.cli.terminal.render import say
    from fleet.operations.team.sessions import CreateCode

    say(
        "Setting up a shop with 18 tasks, two nodes, a landing queue and a race (some seconds).",
        "dim",
    )
    port = free_ports()
    _fill(scratch, port, stack)
    client = LocalClient(App(scratch.repo, scratch.env()))
    client.now()  # the store is made before anyone else opens it
    _add(scratch)
    _history(client)
    server = _serve(scratch)
    stack.callback(stop, client, server)
    url = _wait_for(scratch, client)
    _land(scratch, client)
    _race(scratch, client)
    _people(client, url)
    over = threading.Event()
    log = client.app.home.path / "logs" / f"gateway-{port}.log"
    talking = threading.Thread(target=_talk, args=(port + 1, log, over), daemon=True)
    stack.callback(talking.join, 5.0)
    stack.callback(over.set)
    talking.start()
    going_on = threading.Thread(target=_go_on, args=(scratch, over), daemon=True)
    going_on.start()
    _sit_down(scratch, client, stack)
    return f"{url}/#c={client.call(CreateCode()).code}"


def _sit_down(scratch: Scratch, client: LocalClient, stack: ExitStack) -> None:
    """An agent in a terminal that asks for permission, where there is tmux."""
    if shutil.which("tmux") is None:
        return
    with suppress(FleetError):
        scratch.fleet("create", "tidy-the-build", "--prompt", "errand 0 rm -rf build/old")
        stack.callback(scratch.fleet, "kill", "tidy-the-build", "--force")
        client.call(EditTask("tidy-the-build", title="Tidy the build folder"))


def _go_on(scratch: Scratch, over: threading.Event) -> None:
    """Two small tasks every while, which land: the train keeps moving.

    One alone would land without a gate: on an idle branch its files have passed their gate before.
    """
    for number in range(0, 2000, 2):
        if over.wait(MORE_EVERY):
            return
        with suppress(FleetError):
            pair = [_add_one(scratch, number), _add_one(scratch, number + 1)]
            scratch.fleet("wait", *pair, "--timeout", "60")
            scratch.fleet("land", *pair)


def _add_one(scratch: Scratch, number: int) -> str:
    """The id of a new task that writes a file of its own."""
    title, name = MORE[number % len(MORE)]
    script = WRITES.format(title, f"round{number}/{name}", 7100, 240, 0.05)
    words = ("--prompt", script, "--agent", "writer", "--gate", SLOW)
    added = json.loads(scratch.fleet("add", title, *words, "--json"))
    return str(added["data"]["id"])


def _fill(scratch: Scratch, port: int, stack: ExitStack) -> None:
    """The repository, the nodes, and the relay before them."""
    from fleet.app.compute.gateway import GRACE, Services

    pace: dict[str, Any] = {"prefill": 900.0, "load": 2.0, "output": 60}
    laptop = FakeNode([FakeModel("qwen2.5-coder:7b")], slots=3, decode=48.0, **pace)
    big = FakeModel("qwen2.5-coder:32b", size=19_900_000_000, parameters=32_800_000_000)
    mini = FakeNode([big, FakeModel("gemma3:12b", 8_100_000_000)], slots=2, decode=21.0, **pace)
    for node in (laptop, mini):
        node.start()
        stack.callback(node.stop)
    scratch.repo.mkdir()
    scratch.git("init", "--quiet", "--initial-branch=main")
    (scratch.repo / "shop.md").write_text("A shop that sells tea and cake.\n")
    (scratch.repo / "check.sh").write_text(CHECK)
    text = FLEET_YAML.format(port=port, laptop=laptop.url, mini=mini.url)
    (scratch.repo / "fleet.yaml").write_text(text)
    scratch.git("add", ".")
    scratch.git("commit", "--quiet", "-m", "A shop")
    app = App(scratch.repo, scratch.env())
    app.home.ensure()
    (app.home.path / "host").write_text(
        f"workbench-{os.urandom(3).hex()}\n"
    )  # not the visitor's own
    services = Services(app.loaded.fleet, app.home.path, scratch.repo)
    services.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    services.write_litellm_config()
    services.start_relay(lambda _: None)
    _note(
        services.gateway.log,
        "WARNING",
        "gpu-box refuses connections: mac-mini-64gb serves heavy-coder",
    )
    gateway = ThreadingHTTPServer(("127.0.0.1", port), _StandInGateway)
    threading.Thread(target=gateway.serve_forever, daemon=True).start()
    stack.callback(gateway.shutdown)
    stack.callback(services.relay.stop, GRACE)


def _add(scratch: Scratch) -> None:
    plan = [
        {"name": title.lower().replace(" ", "-"), "title": title, "prompt": script, **more}
        for title, script, more in TASKS
    ]
    (scratch.root / "plan.json").write_text(json.dumps({"tasks": plan}))
    scratch.fleet("add", "--file", str(scratch.root / "plan.json"))


def _history(client: LocalClient) -> None:
    """Write usage records for the last month, so that the reports show something."""
    from fleet.domain.entry import Entry, EntryKind
    from fleet.domain.spending.usage import (
        HOUR,
        KEPT,
        NO_HOUR,
        UsageGroup,
        UsedAmount,
        body_of,
        hour_of,
    )
    from fleet.ports import Put

    store = client.app.store
    now, project = store.now(), str(client.app.loaded.project)
    for days in range(29, 0, -1):
        for hour in (9, 11, 14, 16):
            at = hour_of(now) - days * 24 * HOUR - (hour - 9) * HOUR
            size = 1.2 + math.sin(days * 1.7 + hour) + (0 if days % 7 in {5, 6} else 1.5)
            sums = NO_HOUR
            for agent, model, node, price in (
                ("writer", "", "", 0.5), ("implementer", "heavy-coder", "mac-mini-64gb", 0), ("reviewer", "small-coder", "laptop", 0),
            ):  # fmt: skip
                used = UsedAmount(max(1, round(size)), round(size * 40_000), round(size * 1_900), 0,
                            round(size * price * 1_000_000), round(size * 400_000_000))  # fmt: skip
                who = UsageGroup(agent, "scripted", model, node, project)
                sums = sums.plus(who, "t-1", used)
            entry = Entry(
                store.new_id("e"), 0, EntryKind.USAGE, "local", str(at), "", at, at + KEPT,
                body=body_of(sums),
            )  # fmt: skip
            store.commit([Put(entry)], [])


def _serve(scratch: Scratch) -> subprocess.Popen[bytes]:
    with scratch.log.open("wb") as log:
        return subprocess.Popen(
            [*FLEET, "serve", "--port", "0", "--max", "6"],
            cwd=scratch.repo,
            env=scratch.env(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _wait_for(scratch: Scratch, client: LocalClient) -> str:
    """The server's address, once the short tasks have ended."""
    from fleet.app.server_process import serving_at

    until = time.monotonic() + READY
    wanted = {*LANDED, *LANDING, "t-5"}
    while time.monotonic() < until:
        tasks = client.app.store.tasks_by_id(sorted(wanted))
        over = all(task.state in {"done", "failed"} for task in tasks.values())
        if over and (url := serving_at(scratch.home)):
            return url
        time.sleep(0.2)
    words = " ".join(scratch.log.read_text(errors="replace").split())[-300:]
    raise Unavailable(
        f"The demo did not start: {words}", fix="`fleet demo` shows the path step by step."
    )


def _land(scratch: Scratch, client: LocalClient) -> None:
    """Three that have landed, and three that are tested."""
    scratch.fleet("land", *LANDED)
    until = time.monotonic() + READY
    while time.monotonic() < until:
        tasks = client.app.store.tasks_by_id(LANDED)
        if all(task.tally.landed for task in tasks.values()):
            break
        time.sleep(0.2)
    scratch.fleet("land", *LANDING)


def _race(scratch: Scratch, client: LocalClient) -> None:
    """Three solutions of the same work, of which the best is picked."""
    words = ("--agents", "writer", "--test", RACE_TEST, "--attempts", "1")
    scratch.fleet("best", "3", RACE, *words)
    (race,) = client.call(ListRaces())
    client.call(EditTask(race.batch, title="Best of 3: Add up cents"))
    for contender in race.contenders:
        client.call(EditTask(contender.task, title="Add up cents"))
    until = time.monotonic() + READY
    while time.monotonic() < until:
        if client.call(ListRaces())[0].state != "running":
            break
        time.sleep(0.2)


def _greet(url: str, token: str) -> None:
    """Make the owner of this token known to the server, with the token's role."""
    server = http.client.HTTPConnection(url.partition("//")[2], timeout=10)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    server.request("POST", "/v1/member/seen", "{}", headers)
    server.getresponse().read()
    server.close()


def _people(client: LocalClient, url: str) -> None:
    from fleet.operations.compute.nodes import WarmModel
    from fleet.operations.messages.boards import Post
    from fleet.operations.messages.mail import SendMail
    from fleet.operations.team.enrolments import CreateEnrolment
    from fleet.operations.team.members import BeSeen
    from fleet.operations.team.swarms import CreateSwarm
    from fleet.operations.team.tokens import CreateToken

    with suppress(FleetError):
        client.call(BeSeen())
    for name, role in (("kim", "team-lead"), ("sam", "worker")):
        with suppress(FleetError, OSError, http.client.HTTPException):
            _greet(url, client.call(CreateToken(name, role)).token)
    with suppress(FleetError):
        swarm = client.call(CreateSwarm("importers", 3, "Two ways to read the files."))
        requests: tuple[Request[Any], ...] = (
            Post(swarm.id, '{"text": "The CSV reader is twice as fast with one pass."}'),
            Post(swarm.id, '{"text": "Keep the old one until the tests of both agree."}'),
            SendMail(client.actor.name, "The importer is in review tomorrow. Shall we wait?", subject="Release"),
            SendMail("kim", "The release waits for the importer. Can you look at t-8?", subject="Release"),
            CreateEnrolment("worker", name="noor", uses=1), WarmModel(),
        )  # fmt: skip
        for request in requests:
            client.call(request)


def _talk(port: int, log: Path, over: threading.Event) -> None:
    """The agents' requests, each to the relay, as LiteLLM sends them, with the lines that it writes."""
    number = 0
    while not over.wait(PAUSE):
        agent, model = AGENTS[number % len(AGENTS)]
        number += 1
        words = {"role": "user", "content": "word " * (60 + number * 7 % 400)}
        body = json.dumps({"model": model, "messages": [words], "stream": True})
        threading.Thread(target=_ask, args=(port, log, agent, model, body), daemon=True).start()


def _ask(port: int, log: Path, agent: str, model: str, body: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        path = f"/a/{agent}/m/{model}/v1/chat/completions"
        connection.request("POST", path, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        _note(log, "INFO", f'{agent} - "POST /v1/chat/completions HTTP/1.1" {answer.status}')
    except (OSError, http.client.HTTPException) as error:
        _note(log, "ERROR", f"{agent}: {error}")
    finally:
        connection.close()


def _note(log: Path, level: str, words: str) -> None:
    """A line in the form of LiteLLM's log."""
    line = {"message": words, "level": level, "timestamp": datetime.now(UTC).isoformat()}
    with suppress(OSError), log.open("a") as out:  # the home may be gone at the end
        out.write(json.dumps(line) + "\n")


def farewell(scratch: Scratch, *, keep: bool) -> Iterator[str]:
    if keep:
        yield f"Its commands: cd {scratch.repo} && export FLEET_HOME={scratch.home}"
    yield f"Ctrl-C ends the demo and {'keeps its files' if keep else 'removes all of it'}."


def _hold(scratch: Scratch, link: str, *, browse: bool, keep: bool) -> Result:
    """Print the address, and wait for Ctrl-C."""
    from fleet.cli.server.ui import open_browser
    from fleet.cli.terminal.render import say

    opened = browse and open_browser(link)
    say(f"Opened {link.partition('/#')[0]}." if opened else f"Open this within a minute: {link}")
    for line in farewell(scratch, keep=keep):
        say(line, "dim")
    with suppress(KeyboardInterrupt):
        while True:
            time.sleep(LOOK_SECONDS)  # `pause` would miss a signal that comes just before it
    data = {"link": link, "repository": str(scratch.repo), "home": str(scratch.home)}
    return Result("demo", data, Text("The demo has ended."))
