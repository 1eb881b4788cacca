"""What a run may do in its team: its agent's role says, but never more than who asked may do."""

from __future__ import annotations

import pytest

from fleet.app.run_identity import actor_of
from fleet.domain.access import Actor, Role
from fleet.domain.task import Spec
from fleet.operations.catalogue import perform
from fleet.operations.tasks.change import AddTask, ResumeTask

YAML = """
agents:
  lead: {coder: scripted, role: team-lead}
  hand: {coder: scripted}
"""
ASK = """\
import json, subprocess, sys
said = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
done = subprocess.run(["fleet", "mcp"], input=json.dumps(said), capture_output=True, text=True)
print(sorted(t["name"] for t in json.loads(done.stdout)["result"]["tools"]))
"""


@pytest.mark.parametrize("trusted", [True, False])
def test_a_runs_role_is_its_agents(supervised, trusted):
    (supervised.repo / "fleet.yaml").write_text(YAML)
    if trusted:
        assert supervised.type("trust").returncode == 0
    file = supervised.place / "ask.py"
    file.write_text(ASK)
    tasks = {
        n: supervised.add(f"run python3 {file}", "say Bye.", agent=n) for n in ("lead", "hand")
    }
    supervised.start()
    supervised.wait(*tasks.values())
    seen = {n: "team_spawn" in supervised.transcript(t) for n, t in tasks.items()}
    assert seen == {"lead": trusted, "hand": False}
    assert all("ask_human" in supervised.transcript(t) for t in tasks.values())
    role = actor_of(supervised.client.app, f"{tasks['lead']}.1").role
    assert role is (Role.TEAM_LEAD if trusted else Role.WORKER)


def as_member(supervised, name, role, request):
    """As a server would do it for somebody with a token."""
    context = supervised.client.app.context._replace(actor=Actor(name, role, "red", remote=True))
    return perform(context, request)


def test_a_runs_role_is_never_above_that_of_who_asked(supervised):
    (supervised.repo / "fleet.yaml").write_text(YAML)
    assert supervised.type("trust").returncode == 0
    spec = Spec(agent="lead", cwd=str(supervised.repo))
    asked = AddTask("say Hello.", "say Hello.", str(supervised.repo), spec)
    ours = as_member(supervised, "bob", Role.WORKER, asked).id
    theirs = as_member(supervised, "ann", Role.TEAM_LEAD, asked).id
    supervised.start()
    supervised.wait(theirs)
    assert not supervised.store.runs(ours)
    as_member(supervised, "ann", Role.TEAM_LEAD, ResumeTask(ours))
    supervised.wait(ours)
    roles = [actor_of(supervised.client.app, f"{t}.1").role for t in (ours, theirs)]
    assert roles == [Role.WORKER, Role.TEAM_LEAD]


DEEPER = "run fleet add Deeper --prompt say --agent lead"


def test_an_agent_of_a_person_here_gets_its_tasks_run_and_an_agent_of_a_team_waits(supervised):
    (supervised.repo / "fleet.yaml").write_text(YAML)
    assert supervised.type("trust").returncode == 0
    here = supervised.add(DEEPER, "say Bye.")
    supervised.start()
    supervised.wait(here, "t-2")
    assert actor_of(supervised.client.app, "t-2.1").role is Role.WORKER
    spec = Spec(cwd=str(supervised.repo))
    asked = AddTask("x", f"{DEEPER}\nsay Bye.", str(supervised.repo), spec)
    theirs = as_member(supervised, "ann", Role.TEAM_LEAD, asked).id
    supervised.wait(theirs)
    made = supervised.task("t-4")
    assert (made.author, made.caused_by, made.team) == (f"{theirs}.1", "worker", "red")
    said = supervised.type("show", "t-4").stdout
    assert "A worker asked for it: a team-lead or a coordinator must let it run." in said
    assert "fleet resume t-4" in said
    assert not supervised.store.runs("t-4")
    assert supervised.type("resume", "t-4").returncode == 0
    supervised.wait("t-4")
