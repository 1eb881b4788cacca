"""Look at agents of this host, end them and remove their worktrees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.cli.terminal.frame import explain
from fleet.domain.data import NamedTuple
from fleet.domain.errors import FleetError, Refused, Unavailable
from fleet.domain.task import SETTLED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleet.app.workspaces.manage import Cleared
    from fleet.cli.terminal.render import Result
    from fleet.client import Client, LocalClient
    from fleet.operations.messages.rows import MessageRow
    from fleet.operations.tasks.at_work import AgentRow
    from fleet.operations.tasks.show import TaskDetail

BUSY = {
    "working": "is busy with its turn",
    "permission": "asks for a permission on its screen",
    "panel": "shows a panel of its program",
    "first-start": "shows the first-start screen of its program",
    "exited": "has exited",
    "starting": "is still starting",
}
SEEN = ("doing", "by", "exit", "screen", "asks", "always")
RESTART_SECONDS = 20.0  # seconds for what was cut off to begin
ENDED = {"done", "failed", "cancelled"}


class Killed(NamedTuple):
    """`said`: what is to be known besides; `error` is why it could not be, or not wholly."""

    task: str
    branch: str
    status: str
    path: str
    removed: bool
    kept: str
    said: str = ""
    error: str = ""


def detail_of(client: Client, task: str) -> TaskDetail:
    from fleet.operations.tasks.show import ShowTask

    return client.call(ShowTask(task))


def sight(client: Client, task: TaskDetail) -> dict[str, Any]:
    """What an agent's newest run is doing, and how we know; unknown if its host cannot be asked."""
    try:
        return sight_anywhere(client, task)
    except Unavailable as error:
        run = task.runs[-1].id
        return {"run": run, "doing": "unknown", "by": error.message, "screen": ""}


def sight_anywhere(client: Client, task: TaskDetail) -> dict[str, Any]:
    """Like `sight`, but raise `Unavailable` when only another host could say, and cannot be asked."""
    run = task.runs[-1] if task.runs else None
    if run is None or run.ending:
        how = f"its run ended: {run.ending}" if run else "it has no run yet"
        kept = client.last_screen(run.id) if run else None
        last = f"as it was at the end: {kept}" if kept else ""
        name = run.id if run else ""
        return {"run": name, "doing": task.task.status, "by": how, "screen": last}
    from fleet.operations.tasks.observe import LookAtAgents

    rows = client.call(LookAtAgents((task.task.id,), there=True))
    mine = [row for row in rows if row.run == run.id]
    return {"run": run.id, **{key: getattr(mine[0], key) for key in SEEN}} if mine else {}


def check_ease(client: Client, name: str, *, queue: bool) -> None:
    """Raise `Refused` with the reason when an agent in a terminal cannot take a message now."""
    task = detail_of(client, name)
    if task.spec.mode != "terminal":
        return
    if task.task.state != "running":
        _check_that_it_starts(task)
        return
    seen = sight(client, task)
    doing = seen.get("doing", "")
    why = BUSY.get(doing)
    if why is None or (queue and doing in {"working", "starting", "panel"}):
        return
    asks = f": {seen['asks']}" if seen.get("asks") else ""
    fix = _next(client, task, name, doing)
    raise Refused(f"{task.task.id} {why}{_status(seen)}{asks}.", fix=fix, code=doing)


def _next(client: Client, task: TaskDetail, name: str, doing: str) -> str:
    """The command to type for an agent in a terminal that is doing this."""
    if doing == "exited" and not client.supervised():
        return "Record how it ended: fleet list --repair. A supervisor does so by itself: fleet run"
    return {
        "waiting": f"fleet prompt {name} TEXT, or fleet attach {name}",
        "idle": f"fleet prompt {name} TEXT, or fleet attach {name}",
        "working": f"fleet prompt {name} --queue …, or fleet attach {name}",
        "permission": answers(name),
        "panel": f"Close it with Esc: fleet attach {name}",
        "first-start": f"Answer it there: fleet attach {name}. {_once(task)}",
    }.get(doing, f"`fleet explain {name}` shows more.")


def _status(seen: Mapping[str, Any]) -> str:
    return f" with status {seen['exit']}" if seen.get("exit") is not None else ""


def screen_note(client: Client, task: TaskDetail) -> tuple[str, ...]:
    """A note on what an agent's terminal shows that a person should see to, and the command for it."""
    if task.spec.mode != "terminal" or task.task.status != "running":
        return ()
    seen = sight(client, task)
    doing = seen.get("doing", "")
    words = {"waiting": "waits for you", "idle": "waits for you"}.get(doing) or BUSY.get(doing)
    if words is None or doing in {"working", "starting"}:
        return ()
    words = f"asks for permission: {seen['asks']}" if seen.get("asks") else words + _status(seen)
    return (f"It {words}  → {_next(client, task, task.task.id, doing)}",)


def answers(name: str) -> str:
    """The commands that answer an agent's permission dialog."""
    return f"fleet approve {name}, fleet deny {name}, or fleet attach {name}"


def wish_notes(seen: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Notes on what each of these agents asks permission for, and the commands that answer."""
    asking = [s for s in seen if s.get("asks")]
    return tuple(
        f"{s['branch'] or s['task']} asks for permission: {s['asks']}  → {answers(s['task'])}"
        for s in asking
    )


def check_between_turns(client: Client, name: str) -> None:
    """Raise `Refused` when an agent in a terminal is in the middle of something."""
    task = detail_of(client, name)
    inside = client.actor.run and task.runs and task.runs[-1].id == client.actor.run
    if inside or task.spec.mode != "terminal" or task.task.state != "running":
        return
    doing = sight(client, task).get("doing", "")
    if doing in {"working", "permission"}:
        raise Refused(
            f"{task.task.id} {BUSY[doing]}.",
            fix=f"Close it when it waits for you, or end it now: fleet kill {name}",
            code=doing,
        )


def _once(task: TaskDetail) -> str:
    return (
        f"Or run `{task.task.coder}` once yourself in this repository: then it does not ask again."
    )


def check_heard(client: Client, result: Result) -> None:
    """Raise `Unavailable` when the agent did not take a message that it should have taken at once."""
    sent = result.data
    task = detail_of(client, sent.task)
    if sent.status == "delivered" or task.spec.mode != "terminal":
        return
    if task.task.state == "running":
        raise Unavailable(
            f"{sent.task} has not started on the message ({sent.id}) yet.",
            fix=f"It stays queued. {_before(task, sent)}",
            code="unconfirmed",
        )


def panel_notes(client: Client, result: Result) -> tuple[str, ...]:
    """Notes on a panel that a command of the agent's program may have opened, and how to close it."""
    sent = result.data
    if not sent.text.startswith("/") or sent.status != "delivered":
        return ()
    seen = sight(client, detail_of(client, sent.task))
    note = f"It shows a panel now. Close it with Esc: fleet attach {sent.task}"
    return (note,) if seen.get("doing") == "panel" else ()


def _before(task: TaskDetail, sent: MessageRow) -> str:
    """What the message waits for: an earlier message, or the agent."""
    queue = [m.id for m in task.messages if m.kind == "words" and m.status == "queued"]
    if queue and queue[0] != sent.id:
        return f"{queue[0]} is before it; `fleet unsend {queue[0]}` withdraws that."
    return f"`fleet explain {sent.task}` shows what it is doing; `fleet unsend {sent.id}` withdraws it."


def _check_that_it_starts(task: TaskDetail) -> None:
    """Raise `Refused` when the agent's run has ended and its task is not queued for another."""
    ended = bool(task.runs) and bool(task.runs[-1].ending)
    if ended and task.task.state != "open":
        raise Refused(
            f"{task.task.id} has exited: its run ended ({task.runs[-1].ending}).",
            fix=f"`fleet send {task.task.id} …` gives it to the next run, which the supervisor starts.",
            code="exited",
        )


def kill(client: LocalClient, agents: Sequence[AgentRow], *, delete_branch: bool) -> list[Killed]:
    """End the agents, keep work that is not merged or pushed, and remove their worktrees.

    If one of several cannot be removed, the others are; for a single agent, the error is raised.
    """
    from fleet.app.workspaces.manage import Cleared

    ended = {task: Cleared(task, error=error) for task, error in _end(client, agents).items()}
    left = [a.task for a in agents if a.task not in ended]
    done = client.workspaces.remove_all(left, delete_branch=delete_branch)
    ended |= {cleared.task: cleared for cleared in done}
    if len(agents) == 1 and (error := ended[agents[0].task].error) is not None:
        raise error
    return [_killed(client, agent, ended[agent.task]) for agent in agents]


def _end(client: LocalClient, agents: Sequence[AgentRow]) -> dict[str, FleetError]:
    """End the agents; return those that could not be ended, and why."""
    from fleet.operations.tasks.change import CancelTask

    live = [a.task for a in agents if a.status not in SETTLED]
    errors = client.call_all([CancelTask(task, "Killed.") for task in live])
    results = zip(live, errors, strict=True)
    failed = {t: e for t, e in results if e is not None and client.state(t) not in ENDED}
    for task in [a.task for a in agents if a.task not in failed]:
        try:
            client.close_terminals(task)
        except FleetError as error:
            failed[task] = error
    return failed


def _killed(client: Client, agent: AgentRow, cleared: Cleared) -> Killed:
    status = detail_of(client, agent.task).task.status
    gone = any(f"{agent.path}/".startswith(f"{root}/") for root in cleared.paths)
    kept, notes = ", ".join(cleared.kept), " ".join(cleared.said)
    why = _why(cleared.error)
    return Killed(agent.task, agent.branch, status, agent.path, gone, kept, notes, why)


def _why(error: FleetError | OSError | None) -> str:
    known = explain(error) if error is not None else None
    return f"{known} {known.fix}".strip() if known is not None else str(error or "")


def reconcile(client: LocalClient) -> tuple[str, ...]:
    """Adopt, finish or settle what was cut off, and say what does not fit; no file is removed."""
    repairs = client.workspaces.repairs()
    repairs.adopt()
    if cut_off := repairs.cut_off():
        client.start(cut_off, patience=RESTART_SECONDS)
    repairs.await_hung_up()
    client.reconcile()
    return repairs.notes()
