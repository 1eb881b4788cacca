"""What `create`, `fanout` and `multi` were given, as tasks; and what became of them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.cli.tasks.add import directory, read_text
from fleet.cli.terminal.render import Result, Text
from fleet.config import checkout_top
from fleet.domain.data import NamedTuple
from fleet.domain.errors import BadInput, Refused
from fleet.domain.task import Limits, Mode, Spec
from fleet.operations.shared.branch_names import letters
from fleet.operations.shared.names import is_task_name
from fleet.operations.tasks.change import AddTask
from fleet.operations.tasks.check_spec import NO_BRANCH
from fleet.operations.tasks.show import ShowTask

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fleet.client import LocalClient

FIRST = 0  # people wait for these


class Wanted(NamedTuple):
    branch: str
    prompt: str
    spec: Spec


def wanted(branch: str, prompt: str, given: Mapping[str, object]) -> Wanted:
    """Raise `BadInput` for a name that no branch can have: before anything is made."""
    if not branch or NO_BRANCH.search(branch):
        raise BadInput(
            f"'{branch}' is not a valid branch name.",
            fix="Use letters, digits, '-', '_' and '/'.",
        )
    cwd = directory(None)
    if checkout_top(cwd) is None and not (cwd / "HEAD").is_file():  # a bare one has no checkout
        raise BadInput(
            f"{cwd} is not in a git repository.", fix="`fleet add` works without one; or: git init"
        )
    spec = Spec(
        agent=str(given["agent"]),
        priority=FIRST,
        cwd=str(cwd),
        base=str(given["base"]),
        branch=branch,
        review=True,
        limits=Limits(attempts=1),
        mode=Mode.NOW if given["headless"] else Mode.TERMINAL,
        quick=bool(given["quick"]),
    )
    if spec.mode == Mode.NOW and not prompt:
        raise BadInput(
            "An agent without a terminal needs a prompt.",
            fix="Give --prompt, or leave out --headless.",
        )
    return Wanted(branch, prompt, spec)


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
        agents.append((branch.strip(), prompt.strip()))
    if not agents:
        raise BadInput("No agents to start were given.", fix='fleet multi fix-auth:"Fix the login"')
    twice = {b for b, _ in agents if [x for x, _ in agents].count(b) > 1}
    if twice:
        raise BadInput(
            f"{', '.join(sorted(twice))} is given twice.", fix="Give each its own branch."
        )
    return agents


def check(client: LocalClient, agents: Sequence[Wanted]) -> None:
    """That each of them can have its workspace: before anything is queued."""
    for agent in agents:
        client.check_start(agent.spec.cwd, project_of(client), agent.branch, agent.spec.base)
        client.check_gateway(agent.spec, project_of(client))


def project_of(client: LocalClient) -> str:
    return client.project or str(checkout_top(client.cwd) or client.cwd)


def add_agents(client: LocalClient, agents: Sequence[Wanted]) -> list[str]:
    return _together(client, lambda: _added(client, agents, ""))


def add_batch(client: LocalClient, agents: Sequence[Wanted]) -> list[str]:
    """As the children of one task, by which they can be killed together."""
    first = agents[0]
    title = f"{len(agents)} agents: {' '.join(first.prompt.split())}"[:200]
    spec = replace(Spec(), cwd=first.spec.cwd)

    def add() -> list[str]:
        batch = client.call(AddTask(title, "", project_of(client), spec, join="all"))
        return _added(client, agents, batch.id)

    return _together(client, add)


def _together(client: LocalClient, add: Callable[[], list[str]]) -> list[str]:
    """All of them, or none."""
    with client.together():
        return add()


def _added(client: LocalClient, agents: Sequence[Wanted], parent: str) -> list[str]:
    project, made = project_of(client), []
    for agent in agents:
        title = " ".join(agent.prompt.split())[:200] or agent.branch
        row = client.call(AddTask(title, agent.prompt, project, agent.spec, parent=parent))
        made.append(row.id)
    return made


def report(client: LocalClient, tasks: Sequence[str], late: Sequence[str]) -> Result:
    """Raise `Refused` when none of them could start."""
    details = [client.call(ShowTask(task)) for task in tasks]
    lines, failed = [], 0
    for detail in details:
        run = detail.runs[-1] if detail.runs else None
        branch = run.branch if run and run.branch else detail.spec.branch
        if run is not None and run.ending and detail.task.state == "failed":
            failed += 1
            lines.append(f"{branch} ({detail.task.id}) could not start: {run.detail}")
        elif detail.task.id in late:
            lines.append(f"{branch} ({detail.task.id}) has not begun yet: {_where(detail.task.id)}")
        else:
            lines.append(
                f"Created {branch} ({detail.task.id}): {detail.task.coder}  [{run.path if run else ''}]"
            )
    if failed == len(details):
        raise Refused(
            "\n".join(lines), fix=f"`fleet show {details[0].task.id}` shows what happened."
        )
    first = next(d for d in details if d.task.state != "failed")
    if first.spec.mode == "terminal":
        branch = first.runs[-1].branch if first.runs else first.spec.branch
        name = first.task.id if is_task_name(branch) else branch
        lines.append(f"Attach to it: fleet attach {name}")
    return Result("tasks", [d.task for d in details], Text("\n".join(lines)))


def _where(task: str) -> str:
    return f"`fleet show {task}` says why."
