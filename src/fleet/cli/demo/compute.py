"""One task, three agents, three nodes: each agent's requests reach the node of its model."""

from __future__ import annotations

import http.client
import json
import os
import shlex
import shutil
import socket
import time
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING

from fleet.cli.demo.nodes import FILE, LEAD, ROLES, NodeRequest, StandIns
from fleet.cli.demo.scratch import Scratch, own_name, stop
from fleet.cli.terminal.frame import wants_json
from fleet.cli.terminal.live import Live
from fleet.cli.terminal.view import Column, Result, Stack, Table, Text
from fleet.domain.data import NamedTuple, dataclass
from fleet.domain.errors import Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

TITLE = "Add up a bill"
START = 240.0  # seconds: LiteLLM loads for half a minute on a small machine
DEMO_SECONDS = 180.0
FOREIGN = ("ANTHROPIC_", "CLAUDE", "LITELLM_", "OPENAI_")


@dataclass(frozen=True, slots=True)
class Shop(Scratch):
    litellm: str  # the Python that has it

    def env(self) -> dict[str, str]:
        """Neither the user's settings of Claude Code nor a login; what it leaves goes with us."""
        inherited = {k: v for k, v in Scratch.env(self).items() if not k.startswith(FOREIGN)}
        own = {"HOME": str(self.root), "TMPDIR": str(self.root / "tmp"), "FLEET_CODER": "claude"}
        return inherited | own | {"FLEET_GATEWAY_PYTHON": self.litellm}

    def fill(self) -> None:
        self.repo.mkdir()
        (self.root / "tmp").mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        (self.repo / "shop.md").write_text("A shop that sells tea and cake.\n")


class Played(NamedTuple):
    heard: list[NodeRequest]
    branch: str  # empty: no coder worked
    took: float


def demo_compute(*, keep: bool) -> Result:
    """Raise `Refused` when LiteLLM is not installed: no coder speaks to the relay itself."""
    from fleet.app.compute.gateway import environment
    from fleet.config.places import home

    directory = environment(home(os.environ))
    version = directory.checked()
    shop = Shop(Scratch.make().root, str(directory.python))
    try:
        with nullcontext() if wants_json() else Live() as live:
            stage = ComputeStage(shop, live)
            played = stage.play(version)
            stage.tell("")
        _check(shop, played)
        return _story(shop, played, keep=keep)
    finally:
        if not keep:
            shop.remove()


class ComputeStage:
    """What is typed, and each route when its node is first asked by that agent."""

    def __init__(self, shop: Shop, live: Live | None) -> None:
        self._shop, self._live = shop, live
        self._nodes = StandIns()
        self._printed: set[NodeRequest] = set()

    def tell(self, text: str) -> None:
        if self._live is not None:
            self._live.above(text)

    def type(self, *args: str, timeout: float = 60.0) -> str:
        self.tell(f"$ fleet {shlex.join(args)}")
        return self._shop.fleet(*args, timeout=timeout)

    def play(self, version: str) -> Played:
        shop = self._shop
        with ExitStack() as stack:
            stack.enter_context(self._nodes)
            shop.fill()
            port = free_ports()
            (shop.repo / "fleet.yaml").write_text(self._nodes.fleet_yaml(port))
            self.tell(f"Three simulated nodes, and a scratch repository: {shop.repo}")
            stack.callback(shop.fleet, "gateway", "stop")
            self.tell(f"LiteLLM {version} and the relay take some seconds to start.")
            self.type("gateway", "start", timeout=START)
            self.type("generate")
            shop.git("add", "shop.md", ".claude")
            shop.git("commit", "--quiet", "-m", "A shop and its agents")
            began = time.monotonic()
            branch = self._by_claude() if shutil.which("claude") else self._by_hand(port)
            return Played(self._nodes.heard(), branch, time.monotonic() - began)

    def _by_claude(self) -> str:
        """Run one task of the queue; return the branch that it left."""
        from fleet.app import App
        from fleet.client import LocalClient
        from fleet.operations.tasks.show import ShowTask

        shop = self._shop
        self.type("add", TITLE, "--agent", LEAD.agent, "--prompt", f"{TITLE}.")
        self.tell("$ fleet run --once    (Claude Code)")
        client = LocalClient(App(shop.repo, shop.env()))
        supervisor = shop.supervise("--once")
        try:
            self._watch(lambda: supervisor.poll() is not None)
            detail = client.call(ShowTask("t-1"))
        finally:
            stop(client, supervisor)
        if detail.task.status != "done":
            log = shop.log.read_text(errors="replace").strip()[-500:]
            raise _wrong(f"t-1 is {detail.task.status}: {detail.why} {log}")
        return detail.runs[-1].branch

    def _by_hand(self, port: int) -> str:
        self.tell("Claude Code is not on PATH; the demo asks the gateway as each agent would.")
        key = (self._shop.home / "gateway.key").read_text().strip()
        for role in ROLES:
            _ask(port, key, role.agent, role.prompt)
            self._look()
        return ""

    def _watch(self, over: Callable[[], bool]) -> None:
        until = time.monotonic() + DEMO_SECONDS
        while not over():
            self._look()
            if time.monotonic() > until:
                raise Unavailable(
                    f"The demo did not end within {DEMO_SECONDS:.0f} s.",
                    fix="`fleet demo --compute --keep` keeps all files, to see what happened.",
                )
            time.sleep(0.1)
        self._look()

    def _look(self) -> None:
        for heard in self._nodes.heard():
            if heard not in self._printed and heard.agent != LEAD.agent:
                self.tell(_route(heard))
            self._printed.add(heard)


def _ask(port: int, key: str, agent: str, prompt: str) -> None:
    """In Anthropic's words, as Claude Code does, with a tool to tell it from an aside."""
    tool = {"name": "Read", "description": "Read.", "input_schema": {"type": "object"}}
    messages = [{"role": "user", "content": f"{TITLE}."}]
    body = {"model": f"fleet-{agent}", "max_tokens": 100, "system": prompt, "messages": messages}
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEMO_SECONDS)
    try:
        connection.request("POST", "/v1/messages", json.dumps(body | {"tools": [tool]}), headers)
        answer = connection.getresponse()
        answered = answer.read().decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        raise Unavailable(f"The gateway did not answer for {agent}: {error}.") from error
    finally:
        connection.close()
    if answer.status != http.client.OK:
        raise _wrong(f"the gateway answered {agent} with {answer.status}: {answered[:300]}")


def free_ports() -> int:
    """The first of two free ports in a row, for the gateway and the relay."""
    while True:
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            port = int(one.getsockname()[1])
            try:
                other.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port


def _route(heard: NodeRequest) -> str:
    return " -> ".join(heard)


def _check(shop: Shop, played: Played) -> None:
    """Check in the nodes' own logs that every agent reached its node, and no other."""
    for role in ROLES:
        reached = {heard for heard in played.heard if heard.agent == role.agent}
        if reached != {(role.agent, role.node, role.model)}:
            nodes = ", ".join(map(_route, sorted(reached))) or "no node"
            raise _wrong(f"{role.agent} should have reached {role.node} alone, not {nodes}")
    if played.branch and FILE not in shop.git("ls-tree", "--name-only", played.branch).split():
        raise _wrong(f"{played.branch} lacks {FILE}")


def _wrong(what: str) -> Refused:
    fix = "`fleet demo --compute --keep` keeps all files, to see what happened."
    return Refused(f"The demo failed: {what}", fix=fix, code="demo_failed")


def _story(shop: Shop, played: Played, *, keep: bool) -> Result:
    rows = [
        (role.agent, role.node, role.model, sum(h.agent == role.agent for h in played.heard))
        for role in ROLES
    ]
    columns = ("agent", "node", "model", Column("requests", right=True))
    data = {
        "took": int(played.took * 1_000_000),
        "coder": "claude" if played.branch else None,
        "branch": played.branch or None,
        "routes": [dict(zip(("agent", "node", "model", "requests"), r, strict=True)) for r in rows],
        "repository": str(shop.repo),
        "home": str(shop.home),
        "kept": keep,
    }
    who = "One Claude Code task" if played.branch else "Three requests"
    view = Stack(
        (
            (f"{who}, three agents, three nodes, in {played.took:.1f} s", Table(columns, rows)),
            ("", Text("All local. No cloud token burn.")),
            *([("Where it is", Text(_places(shop)))] if keep else []),
            ("Try next, with nodes of your own", Text(_next())),
        )
    )
    return Result("demo", data, view)


def _places(shop: Shop) -> str:
    traces = f"FLEET_HOME={shlex.quote(str(shop.home))} {own_name()} trace"
    return f"configuration  {shop.repo}/fleet.yaml\ntraces         {traces}"


def _next() -> str:
    fleet = own_name()
    return f"{fleet} init\n{fleet} discover\n{fleet} up\n{fleet} doctor"
