"""What a run may do in its team: its agent's role says, once the project is trusted."""

from __future__ import annotations

import pytest

from fleet.app.run_identity import actor_of
from fleet.domain.access import Role

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
