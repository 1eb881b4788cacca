"""A pull request: how a task's work is proposed on a forge, and how its landing follows it."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from fleet.domain.data import NamedTuple, dataclass
from fleet.domain.landing.landing import Evidence, LandingState, with_pull

if TYPE_CHECKING:
    from fleet.domain.landing.landing import Landing
    from fleet.domain.task import Task


class PullState(StrEnum):
    OPEN = "open"
    MERGED = "merged"
    CLOSED = "closed"  # without a merge


class PullSeen(NamedTuple):
    """A pull request as a forge reports it. `head`: its newest commit, on `branch`.

    `merged_as`: the commit on the branch `base` that merged it.
    """

    number: int
    url: str
    state: PullState
    head: str
    branch: str
    base: str
    merged_as: str = ""
    title: str = ""
    body: str = ""


class PullDraft(NamedTuple):
    """What a pull request is opened with."""

    title: str
    body: str
    branch: str
    base: str


def draft_of(landing: Landing, task: Task, branch: str) -> PullDraft:
    wish = landing.wish.pull
    assert wish is not None
    body = wish.body or f"{task.title}\n\nProposed by fleet: {task.id}, {landing.id}."
    return PullDraft(wish.title or task.title, body, branch, landing.onto)


def is_ours(seen: PullSeen | None, head: str) -> bool:
    """Whether this pull request serves for the commit `head`, so that none must be opened.

    An earlier supervisor may have opened it, and a person may have merged it since. After one was
    closed without a merge, the branch needs a new one.
    """
    if seen is None or seen.state is PullState.CLOSED:
        return False
    return seen.state is PullState.OPEN or seen.head == head


def is_proposed(landing: Landing) -> bool:
    """Whether the pull request contains the commit that is to land."""
    pull = landing.pull
    return pull is not None and pull.tip == landing.tip


def may_merge(landing: Landing, seen: PullSeen) -> bool:
    """Whether Fleet may merge it: that was asked for, and its head is the commit that Fleet tested."""
    wish, pull = landing.wish.pull, landing.pull
    wanted = wish is not None and wish.merge and landing.state is LandingState.QUEUED
    if not wanted or pull is None or seen.state is not PullState.OPEN:
        return False
    return seen.head == pull.head and pull.tip == landing.tip


def follow(landing: Landing, seen: PullSeen) -> Landing:
    """The landing after a look at its pull request."""
    pull = landing.pull
    assert pull is not None
    if pull.state == PullState.CLOSED and seen.state is PullState.OPEN:
        landing = replace(landing, state=LandingState.QUEUED)  # a person has opened it again
    pull = replace(pull, state=str(seen.state), url=seen.url)
    landing = with_pull(landing, pull)
    name = f"Pull request #{seen.number}"
    match seen.state:
        case PullState.MERGED:
            commit, rule = seen.merged_as or seen.head, f"{name} was merged."
            proof = Evidence(commit, pull.tested_on, "", rule)
            return replace(landing, state=LandingState.LANDED, evidence=proof, why="")
        case PullState.CLOSED:
            why = f"{name} was closed without a merge: {seen.url}"
            return replace(landing, state=LandingState.HELD, why=why)
        case PullState.OPEN if seen.head != pull.head:
            why = f"{name} has commits that Fleet did not push ({seen.head[:12]}): {seen.url}"
        case _:
            why = f"{name} is open: {seen.url}"
            why += f" It is not merged yet: {pull.trouble}" if pull.trouble else ""
    if landing.state is not LandingState.QUEUED:
        why = landing.why  # a person holds it, or its agent has it: that reason counts
    return replace(landing, why=why)


@dataclass(frozen=True, slots=True)
class GateNote:
    """The commit status that Fleet reports for the gate."""

    passed: bool
    text: str


def gate_note(gate: str, base: str, force: str) -> GateNote:
    """`base`: the commit onto which the work was merged for the test. `force`: why it was not tested."""
    if force:
        return GateNote(passed=True, text=f"Not tested: {force}")
    if not gate:
        return GateNote(passed=True, text=f"Merges cleanly with {base[:12]}; there is no gate.")
    return GateNote(passed=True, text=f"Passes the gate when merged with {base[:12]}.")
