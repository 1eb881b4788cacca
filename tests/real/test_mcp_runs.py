"""A run that we start has our tools, under its own name, with a server and without one."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.error
import urllib.request

import pytest

from fleet.app.token_keys import own_token
from fleet.domain.access import Actor, Role
from fleet.testing.model_server import call, say
from tests.real.model_scratch import FLEET, ModelScratch

pytestmark = pytest.mark.real

PREFIX = {"claude": "mcp__fleet__", "codex": "mcp__fleet/", "opencode": "fleet_"}


def tool(coder: str, name: str, /, **given):
    return call(PREFIX[coder] + name, **given)


class ServedDesk(ModelScratch):
    """The supervisor is inside a server; the model answers two at once."""

    def __enter__(self):
        super().__enter__()
        file = self.repo / "fleet.yaml"
        file.write_text(file.read_text().replace("context: ", "max_parallel: 2, context: "))
        return self

    def start(self) -> None:
        file = self.place / "supervisor.log"
        with file.open("ab") as log:
            self.supervisor = subprocess.Popen(
                [FLEET, "serve", "--port", "0"],
                cwd=self.repo, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        self.until(lambda: self._serves(file.read_text()), why="it serves")

    def _serves(self, said: str) -> bool:
        assert self.supervisor is not None
        assert self.supervisor.poll() is None, said
        return bool(re.search(r"Serving on \S+:\d+", said))


@pytest.mark.parametrize("coder", ["claude", "codex", "opencode"])
@pytest.mark.parametrize("desk_of", [ModelScratch, ServedDesk], ids=["store", "server"])
def test_a_run_calls_our_tools_as_itself(coder, desk_of, tmp_path):
    script = [tool(coder, "note", text="Half way."), say("Noted.")]
    with desk_of(coder, tmp_path, script) as scratch:
        scratch.add("Write a note")
        scratch.start()
        scratch.wait("done", "failed")
        notes = [m for m in scratch.data("show", "t-1")["messages"] if m["kind"] == "note"]
        assert [(m["author"], m["text"]) for m in notes] == [("t-1.1", "Half way.")], (
            scratch.story()
        )
        assert scratch.endings() == ["succeeded"]


def test_it_asks_a_person_goes_on_posts_and_saves_a_checkpoint(tmp_path):
    """Over `/mcp`, with the token of its run; the next run has one of its own."""
    script = [
        tool("claude", "ask_human", question="Which port?", options=["4000", "5000"]),
        say("I wait."),
        tool("claude", "blackboard_post", message_type="status", payload={"text": "It is 4000."}),
        tool("claude", "checkpoint_create", goal="A port", now="It is chosen"),
        tool("claude", "task_done", summary="The port is 4000."),
        say("Done."),
    ]
    with ServedDesk("claude", tmp_path, script) as scratch:
        scratch.add("Choose a port")
        scratch.start()
        scratch.until(lambda: scratch.endings() == ["asked"], why="it asked")
        (question,) = scratch.data("questions")
        assert (question["text"], question["author"]) == ("Which port?", "t-1.1")
        scratch("answer", "t-1", "1")
        scratch.wait("done", "failed")
        assert scratch.endings() == ["asked", "succeeded"], scratch.story()
        assert scratch.runs()[-1]["detail"] == "The port is 4000."
        (post,) = scratch.data("blackboard", "t-1")
        assert (post["author"], json.loads(post["payload"])) == ("t-1.2", {"text": "It is 4000."})
        (saved,) = scratch.data("checkpoints", "t-1.2")
        assert saved["summary"]["goal"] == "A port"
        assert served_by_http(scratch, "t-1.1")


def served_by_http(scratch, run: str) -> bool:
    """Whether it was told of the server, and its arguments tell nobody the token."""
    launch = json.loads((scratch.place / "fleet" / "runs" / run / "launch.json").read_text())
    words = " ".join(launch["argv"])
    assert "FLEET_RUN_BEARER" not in launch["env"]
    assert "eyJ" not in words  # how a signed token begins
    return launch["env"]["FLEET_RUN_SERVER"] in words


def test_the_token_of_a_run_ends_with_the_run(tmp_path):
    with ServedDesk("claude", tmp_path, [say("Done.")]) as scratch:
        scratch.add("End")
        scratch.start()
        scratch.wait("done", "failed")
        launch = json.loads((scratch.place / "fleet/runs/t-1.1/launch.json").read_text())["env"]
        actor = Actor("t-1.1", Role.WORKER, "local", "t-1.1")
        token = own_token(scratch.place / "fleet", actor, seconds=60)
        request = urllib.request.Request(
            launch["FLEET_RUN_SERVER"].replace("/mcp", "/v1/message/comment"),
            data=json.dumps({"task": "t-1", "text": "Still here."}).encode(),
            headers={
                "Authorization": f"Bearer {token}",
                "Content-Type": "application/json",
            },
        )
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=20)
        assert refused.value.code in {401, 403}
        assert json.loads(refused.value.read())["code"] in {"stale_run", "revoked_token"}


def test_without_the_setting_it_has_none(tmp_path):
    with ModelScratch("claude", tmp_path, [say("Done.")], FLEET_RUN_MCP="false") as scratch:
        scratch.add("Be alone")
        scratch("run", "--once")
        assert scratch.endings() == ["succeeded"]
        assert not [name for turn in scratch.server.turns for name in turn.tools if "fleet" in name]
