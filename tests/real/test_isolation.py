"""The real programs work under each kind of isolation, and cannot read the server's secrets there."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from fleet.testing.model_server import say
from tests.isolation import ALL_KINDS, env_of, works
from tests.real.model_scratch import COMMIT, ModelScratch, shell

pytestmark = pytest.mark.real

STEAL = 'cat "$FLEET_HOME/server.key" "$FLEET_HOME/fleet.db" > stolen.txt'
GREET = f"sed -i s/world/fleet/ hello.txt && git add stolen.txt && {COMMIT}"


@pytest.fixture
def home():
    """Not below /tmp, for nobody can create files above a home that Landlock hides."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder, "fleet")


def scratch_with(coder: str, place: Path, home: Path) -> ModelScratch:
    script = [shell(coder, f"{STEAL}; {GREET}"), say("It greets the fleet.")]
    scratch = ModelScratch(coder, place, script)
    scratch.env["FLEET_HOME"] = str(home)
    return scratch


def needs(kind: str) -> None:
    if not works(kind):
        pytest.skip(f"{kind} does not work here")


def stolen(scratch: ModelScratch) -> str:
    """What the agent could read, once its task was done."""
    scratch("token", "create", "bob")
    scratch.add("Greet the fleet")
    scratch("run", "--once")
    assert scratch.status() == "done", scratch.story()
    assert scratch.greeting() == "Hello, fleet.\n"
    return scratch.committed("stolen.txt")


@pytest.mark.parametrize("kind", ALL_KINDS)
@pytest.mark.parametrize("coder", ["claude", "codex", "opencode"])
def test_it_does_its_task_and_reads_no_secret(coder, kind, tmp_path, home):
    needs(kind)
    with scratch_with(coder, tmp_path, home) as scratch:
        scratch.env |= env_of(kind, scratch.env["PATH"])
        if (coder, kind) == ("codex", "landlock"):  # its own sandbox does not work in there
            scratch.declare(permissions="full")
        assert stolen(scratch) == ""


def test_codex_is_refused_where_it_cannot_make_its_own_sandbox(tmp_path, home):
    needs("landlock")
    with scratch_with("codex", tmp_path, home) as scratch:
        scratch.env |= env_of("landlock", scratch.env["PATH"])
        scratch.add("Greet the fleet")
        scratch("run", "--once")
        assert scratch.status() == "failed"
        assert "codex makes a sandbox of its own" in scratch("show", "t-1")


def test_without_isolation_it_reads_them(tmp_path, home):
    with scratch_with("claude", tmp_path, home) as scratch:
        read = stolen(scratch)
        assert (home / "server.key").read_text() in read
