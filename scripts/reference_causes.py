"""Write what each role may cause into docs/security.md; `--check` only says whether it is stale.

Every cell is an answer of `fleet.domain.causes.decide`. `tests/integration/test_causes.py` asks a
server the same of every cell.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fleet.domain.access import GRANTS, Actor, Permission, Role
from fleet.domain.causes import (
    HERE,
    RUN,
    CauseRules,
    Declared,
    Effects,
    cause_of,
    check_may_allow,
    check_may_force,
    decide,
)
from fleet.domain.data import NamedTuple
from fleet.domain.errors import FleetError
from fleet.domain.fleet import Agent, Fleet
from fleet.domain.task import Spec, Task, TaskState

PAGE = Path(__file__).parent.parent / "docs" / "security.md"
BEGIN = "<!-- made by scripts/reference_causes.py; do not edit -->\n"
END = "<!-- end -->\n"
YES, NO, HELD, AT_ONCE, COUNTED = "yes", "no", "after a lead", "at once", "when there is room"


class Asker(NamedTuple):
    """`own`: the task of an agent's run."""

    actor: Actor
    own: Task | None = None


def _agent(caused_by: str) -> Asker:
    own = Task("t-1", 1, TaskState.RUNNING, "", "", "", "ada", 0, caused_by=caused_by)
    return Asker(Actor("t-1.1", Role.WORKER, run="t-1.1"), own)


ASKERS = {
    "you": Asker(Actor("ada", Role.COORDINATOR)),
    "your agent": _agent(HERE),
    **{str(role): Asker(Actor("bob", role, remote=True)) for role in Role},
    "a team's agent": _agent(str(Role.TEAM_LEAD)),
}
ROWS = {
    "by hand": ("a task that a member does by hand", Effects(Spec(assignee="bob"), run=False)),
    "run": ("a run of the default agent", Effects(Spec())),
    "declared": ("a run of an agent that `fleet.yaml` declares", Effects(Spec(agent="reviewer"))),
    "coder": ("a run of any other coder", Effects(Spec(coder="codex"))),
    "program": ("a run of `scripted` or `command`", Effects(Spec(coder="scripted"))),
    "own coder": ("a declared agent with another coder", Effects(Spec("reviewer", coder="codex"))),
    "now": ("a run in mode `now` or `terminal` starts", Effects(Spec(mode="now"))),
    "worker": ("a run with the role `worker`", Effects(Spec(), role="worker")),
    "team-lead": ("a run with the role `team-lead`", Effects(Spec(), role="team-lead")),
    "merger": ("a run with the role `merger`", Effects(Spec(), role="merger")),
    "offered": (
        "work in a directory that the server offers",
        Effects(Spec(), directories=("/in",)),
    ),
    "elsewhere": ("work in any other directory", Effects(Spec(), directories=("/out",))),
    "gate": ("a gate: a command of its own", Effects(Spec(gate="make"))),
    "in place": ("work outside a worktree", Effects(Spec(in_place=True))),
    "deep": ("an agent deeper than `max_depth`", Effects(Spec(), depth=4)),
}


class Act(NamedTuple):
    """What makes a task that is there run, or changes what it does.

    `starts`: a run begins at once, unless the asker may cause none.
    """

    needed: Permission
    starts: bool = True


ACTS = {
    "resume": ("lets a held task run, retries a task, unassigns it", Act(Permission.ASSIGN)),
    "words": (
        "changes the words of a task that it could have asked for",
        Act(Permission.ASSIGN, starts=False),
    ),
    "answer": ("answers the question of an agent, which goes on", Act(Permission.ANSWER, False)),
    "send back": ("sends work back to its agent, with remarks", Act(Permission.MERGE)),
    "review": ("has a declared agent review work", Act(Permission.ADD)),
    "race": ("has tests and a judge pick the best of several solutions", Act(Permission.ASSIGN)),
    "fork": ("has a second agent continue a conversation", Act(Permission.SPAWN)),
    "land": (
        "lands work, whose agent mends what conflicts or does not pass",
        Act(Permission.MERGE, starts=False),
    ),
    "warm": ("loads a model on its node", Act(Permission.SPAWN)),
}
FORCE = "lands work that is not done or not tested, with a reason"
PERMIT = "allows what an agent asks a person's permission for, or types at its terminal"
RULES = CauseRules(
    lambda: 3,
    lambda directory: directory == "/in",
    lambda: Declared(Fleet(agents={"reviewer": Agent("reviewer", "claude")}), "claude"),
)


def cell(asker: Asker, effects: Effects) -> str:
    if Permission.ADD not in GRANTS[asker.actor.role]:
        return NO
    try:
        caused = decide(asker.actor, effects, RULES, own=asker.own)
    except FleetError:
        return NO
    if effects.run and caused.by not in RUN:
        return HELD
    if effects.spec.mode:
        return COUNTED if caused.counted else AT_ONCE
    return YES


def table() -> str:
    head = ["| what | " + " | ".join(ASKERS) + " |", "|---" * (len(ASKERS) + 1) + "|"]
    rows = [
        f"| {what} | " + " | ".join(cell(asker, effects) for asker in ASKERS.values()) + " |"
        for what, effects in ROWS.values()
    ]
    rows += [
        f"| {what} | " + " | ".join(act_cell(asker, act) for asker in ASKERS.values()) + " |"
        for what, act in ACTS.values()
    ]
    rows.append(f"| {FORCE} | " + " | ".join(map(_force_cell, ASKERS.values())) + " |")
    rows.append(f"| {PERMIT} | " + " | ".join(map(_permit_cell, ASKERS.values())) + " |")
    return "\n".join([*head, *rows]) + "\n"


def act_cell(asker: Asker, act: Act) -> str:
    if act.needed not in GRANTS[asker.actor.role]:
        return NO
    return HELD if act.starts and cause_of(*asker) not in RUN else YES


def _force_cell(asker: Asker) -> str:
    if Permission.MERGE not in GRANTS[asker.actor.role]:
        return NO
    try:
        check_may_force(*asker, "It is urgent.")
    except FleetError:
        return NO
    return YES


def _permit_cell(asker: Asker) -> str:
    try:
        check_may_allow(*asker, "t-1")
    except FleetError:
        return NO
    return YES


def reference() -> str:
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


def main() -> int:
    page = reference()
    if sys.argv[1:] != ["--check"]:
        PAGE.write_text(page, encoding="utf-8")
        return 0
    if PAGE.read_text(encoding="utf-8") == page:
        return 0
    print(f"{PAGE} is stale: run `python scripts/reference_causes.py`.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
