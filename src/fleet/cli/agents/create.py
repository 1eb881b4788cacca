"""Turn the arguments of `create`, `fanout` and `multi` into tasks, and report which started."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.cli.tasks.add import directory, read_text
from fleet.cli.terminal.render import Result, Text
from fleet.client.local import STUCK
from fleet.config import checkout_top, in_repository
from fleet.domain.data import NamedTuple
from fleet.domain.errors import BadInput, Refused
from fleet.domain.limits import check as limits
from fleet.domain.task import Limits, Mode, Spec
from fleet.operations.shared.branch_names import letters
from fleet.operations.shared.names import is_task_name
from fleet.operations.tasks.change import AddTask
from fleet.operations.tasks.show import ShowTask

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fleet.client import LocalClient
    from fleet.operations.tasks.show import TaskDetail

FIRST = 0  # people wait for these


class WantedAgent(NamedTuple):
    branch: str
    prompt: str
    spec: Spec


def wanted(
    branch: str, prompt: str, given: Mapping[str, object], *, attach: bool = False
) -> WantedAgent:
    """Raise `BadInput` for a name that no branch can have, before any task is added."""
    if not branch:
        raise BadInput(
            "'' is not a valid branch name.", fix="Use letters, digits, '-', '_' and '/'."
        )
    limits.check(Spec(branch=branch))
    cwd = directory(None)
    if not in_repository(cwd):
        raise BadInput(
            f"{cwd} is not in a git repository.",
            fix="git init, and commit; or queue a task that works in it: fleet add --in-place",
        )
    spec = Spec(
        agent=str(given["agent"]),
        coder=str(given["coder"]),
        model=str(given["model"]),
        priority=FIRST,
        cwd=str(cwd),
        base=str(given["base"]),
        branch=branch,
        review=True,
        limits=Limits(attempts=1, permissions=str(given["permissions"])),
        mode=Mode.NOW if given["headless"] else Mode.TERMINAL,
        quick=bool(given["quick"]),
    )
    if spec.mode == Mode.NOW and not prompt:
        raise BadInput(
            "An agent without a terminal needs a prompt.",
            fix="Give --prompt, or leave out --headless.",
        )
    if spec.mode == Mode.NOW and attach:
        raise BadInput(
            "An agent without a terminal cannot be attached to.",
            fix="Leave out --headless or --attach.",
        )
    return WantedAgent(branch, prompt, spec)


def one_prompt(text: object, file: object) -> str:
    if text is not None and file is not None:
        raise BadInput(
            "--prompt and --prompt-file cannot be used together.", fix="Give one of them."
        )
    return read_text(str(file), "prompt") if file is not None else str(text or "")


def fan(count: int, prefix: str, prompt: str) -> list[str]:
    words = re.findall(r"[a-z0-9]+", prompt.lower())[:3]
    stem = prefix or "-".join(words) or "fanout"
    return [f"{stem}-{letters(number)}" for number in range(1, count + 1)]


def paired(pairs: Sequence[str], file: str | None) -> list[tuple[str, str]]:
    """`branch:prompt`, split at the first colon."""
    lines = [*pairs]
    if file is not None:
        lines += [line for line in read_text(file, "list").splitlines() if line.strip()]
    agents: list[tuple[str, str]] = []
    for line in lines:
        branch, colon, prompt = line.partition(":")
        if not colon or not prompt.strip():
            raise BadInput(f"'{line[:60]}' has no prompt.", fix="Write BRANCH:PROMPT.")
        if prompt.startswith("//"):
            raise BadInput(
                f"'{line[:60]}' is an address, not a branch and a prompt.",
                fix=f"Write BRANCH:PROMPT, such as 'read-it:{line[:60]}'.",
            )
        agents.append((branch.strip(), prompt.strip()))
    if not agents:
        raise BadInput("No agents to start were given.", fix='fleet multi fix-auth:"Fix the login"')
    twice = {b for b, _ in agents if [x for x, _ in agents].count(b) > 1}
    if twice:
        raise BadInput(
            f"{', '.join(sorted(twice))} is given twice.", fix="Give each its own branch."
        )
    return agents


def check(client: LocalClient, agents: Sequence[WantedAgent]) -> None:
    """Check that each agent can start, before anything is queued."""
    for agent in agents:
        client.check_agent(agent.spec, project_of(client))


def project_of(client: LocalClient) -> str:
    return client.project or str(checkout_top(client.cwd) or client.cwd)


def add_agents(client: LocalClient, agents: Sequence[WantedAgent]) -> list[str]:
    return _together(client, lambda: _added(client, agents, ""))


def add_batch(client: LocalClient, agents: Sequence[WantedAgent]) -> list[str]:
    """Add the agents as children of one task, by which they can be killed together."""
    first = agents[0]
    title = f"{len(agents)} agents: {' '.join(first.prompt.split())}"[:200]
    spec = replace(Spec(), cwd=first.spec.cwd)

    def add() -> list[str]:
        batch = client.call(AddTask(title, "", project_of(client), spec, join="all"))
        return _added(client, agents, batch.id)

    return _together(client, add)


def _together(client: LocalClient, add: Callable[[], list[str]]) -> list[str]:
    """Add all of them in one commit, or none."""
    with client.together():
        return add()


def _added(client: LocalClient, agents: Sequence[WantedAgent], parent: str) -> list[str]:
    project, made = project_of(client), []
    for agent in agents:
        title = " ".join(agent.prompt.split())[:200] or agent.branch
        row = client.call(AddTask(title, agent.prompt, project, agent.spec, parent=parent))
        made.append(row.id)
    return made


def report(client: LocalClient, tasks: Sequence[str], late: Sequence[str]) -> Result:
    """Raise `Refused` when none of them could start."""
    details = [client.call(ShowTask(task)) for task in tasks]
    reasons = {detail.task.id: _reason(client, detail) for detail in details}
    lines = [reasons[d.task.id] or _begun(client, d, is_late=d.task.id in late) for d in details]
    if all(reasons.values()):
        fixes = [w.fix for w in details[0].waits if w.fix]
        seen = f"`fleet show {details[0].task.id}` shows what happened."
        raise Refused("\n".join(lines), fix=fixes[0] if fixes else seen)
    first = next(d for d in details if not reasons[d.task.id])
    if first.spec.mode == "terminal":
        branch = _branch(first)
        name = first.task.id if is_task_name(branch) else branch
        lines.append(f"Attach to it: fleet attach {name}")
    return Result("tasks", [d.task for d in details], Text("\n".join(lines)))


def _branch(detail: TaskDetail) -> str:
    return (detail.runs[-1].branch if detail.runs else "") or detail.spec.branch


def _is_over(detail: TaskDetail) -> bool:
    over = detail.task.status in {"failed", "paused"}
    return bool(detail.runs and detail.runs[-1].ending and over)


def _reason(client: LocalClient, detail: TaskDetail) -> str:
    """Why the agent cannot start; empty if it started, even if it has ended since, or may still start."""
    name = f"{_branch(detail)} ({detail.task.id})"
    if _is_over(detail) and not client.has_been_prompted(detail.task.id):
        return f"{name} could not start: {detail.runs[-1].detail}"
    stuck = next((wait.why for wait in detail.waits if wait.code in STUCK), "")
    return f"{name} waits: {stuck}" if stuck else ""


def _begun(client: LocalClient, detail: TaskDetail, *, is_late: bool) -> str:
    from fleet.cli.agents.calls import screen_note

    name = f"{_branch(detail)} ({detail.task.id})"
    if not is_late:
        path = detail.runs[-1].path if detail.runs else ""
        since = f"\nIt has ended since: {detail.runs[-1].detail}" if _is_over(detail) else ""
        return f"Created {name}: {detail.task.coder}  [{path}]{since}"
    why = " ".join((*(wait.why for wait in detail.waits), *screen_note(client, detail)))
    return f"{name} has not begun yet. {why or f'`fleet show {detail.task.id}` says why.'}"
