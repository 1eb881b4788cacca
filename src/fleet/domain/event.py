"""One fact, numbered in the order it was recorded, never changed; and every kind of fact there is."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import Any

from fleet.domain.data import dataclass

VERSION = 1  # of the data of events; a kind that changes its data gets a higher one
TASK = "task."  # the prefix of all kinds that change the task itself


class Kind(StrEnum):
    """Under each member: its sentence, and in brackets what the event names: data.

    `scripts/reference_events.py` makes the reference page of them; as strings that nothing holds
    they cost no command anything.
    """

    TASK_ADDED = "task.added"
    """A task was added. [task: title]"""
    TASK_ASSIGNED = "task.assigned"
    """A task was given to a member, or to no one when the name is empty. [task: assignee]"""
    TASK_BEGUN = "task.begun"
    """A member began a task that is theirs to do by hand. [task]"""
    TASK_CANCELLED = "task.cancelled"
    """A task was cancelled; no run of it is left. [task: why]"""
    TASK_CLOSED = "task.closed"
    """A person or another agent closed a task as done. [task: why]"""
    TASK_EDITED = "task.edited"
    """What a task asks for was changed; `what` lists the changed fields. [task: what]"""
    TASK_LANDED = "task.landed"
    """The work of a task came to its branch. [task: landing, onto, commit]"""
    TASK_LEFT = "task.left"
    """A member no longer works on the task that they had begun. [task]"""
    TASK_NEEDS = "task.needs"
    """A task now waits for another one. [task: needs]"""
    TASK_NEEDS_NOT = "task.needs_not"
    """A task no longer waits for another one. [task: needs]"""
    TASK_PAUSED = "task.paused"
    """A task was paused: no run of it starts until it is resumed. [task]"""
    TASK_REOPENED = "task.reopened"
    """A task that had ended or was in review is open again. [task]"""
    TASK_RESUMED = "task.resumed"
    """A paused task may start again. [task]"""
    TASK_SETTLED = "task.settled"
    """A run's ending changed its task to `state`; with `why`, it needs a person. [task, run: state, why]"""

    RUN_ADOPTED = "run.adopted"
    """The repair found a program at work that no record named, and recorded its run. [task, run: why]"""
    RUN_CLAIMED = "run.claimed"
    """The supervisor took a task and set aside what its run needs. [task, run: coder]"""
    RUN_CLOSED = "run.closed"
    """The agent of a run said that its task is done; the task settles when the run ends. [task, run: why]"""
    RUN_COMMITTED = "run.committed"
    """The supervisor committed what a run had left uncommitted. [task, run: commit, files]"""
    RUN_ENDED = "run.ended"
    """A run ended. [task, run: ending, detail]"""
    RUN_INTERRUPTED = "run.interrupted"
    """A person interrupted the turn of an agent in a terminal. [task, run]"""
    RUN_PERMITTED = "run.permitted"
    """A person allowed or refused (`answer`) what an agent asked permission for. [task, run: answer, asks]"""
    RUN_PROMPTED = "run.prompted"
    """The coder of a run took its prompt. [task, run]"""
    RUN_STARTED = "run.started"
    """The coder of a run is at work. [task, run]"""
    RUN_STOP_WANTED = "run.stop_wanted"
    """A run was asked to stop. [task, run]"""

    LANDING_DROPPED = "landing.dropped"
    """A landing is not wanted any more. [task: landing, onto]"""
    LANDING_GIVEN = "landing.given"
    """A held landing was given to a member (`to`), or to anybody. [task: landing, onto, to]"""
    LANDING_HELD = "landing.held"
    """A landing waits for a person. [task: landing, onto, why]"""
    LANDING_MOVED = "landing.moved"
    """A landing was given another place in its queue. [task: landing, onto]"""
    LANDING_QUEUED = "landing.queued"
    """The work of a task waits to come to its branch. [task: landing, onto, force]"""
    LANDING_RETURNED = "landing.returned"
    """A landing failed, and its task went back to its agent. [task: landing, onto, why]"""
    RACE_BEGUN = "race.begun"
    """Tasks of a batch do the same work, and the best of them is to be picked. [task]"""
    RACE_PICKED = "race.picked"
    """The best solution was picked. [task: winner, why]"""
    RACE_UNDECIDED = "race.undecided"
    """No solution is the best: a person decides. [task: why]"""
    GATE_FLAKY = "gate.flaky"
    """A gate failed and then passed on the same files. [onto, gate, team]"""
    PULL_OPENED = "pull.opened"
    """A pull request was opened or found for a landing, and has its commits. [task: landing, onto, url]"""
    PULL_CLOSED = "pull.closed"
    """A landing's pull request was closed without a merge. [task: landing, onto, url]"""
    TRAIN_PAUSED = "train.paused"
    """Nothing lands on a branch until it is resumed. [onto, team]"""
    TRAIN_RESUMED = "train.resumed"
    """A branch takes landings again. [onto, team]"""

    HOST_DRAINED = "host.drained"
    """A host starts no new runs; those that it has go on. [host: host]"""
    HOST_FORGOTTEN = "host.forgotten"
    """A host is not listed any more, and what it still had may be taken by others. [host: host]"""
    HOST_JOINED = "host.joined"
    """A machine used its invitation, and has a login to the store and a token. [host: host]"""
    HOST_RESUMED = "host.resumed"
    """A host starts runs again. [host: host]"""

    MESSAGE_ANSWERED = "message.answered"
    """A question was answered; `message` is the question. [task: message]"""
    MESSAGE_ASKED = "message.asked"
    """A question waits for a person's answer. [task: message]"""
    MESSAGE_HEARD = "message.heard"
    """A run, or the caller who asked, received a message. [task, run: message]"""
    MESSAGE_POSTED = "message.posted"
    """A comment was written on a task. [task: message]"""
    MESSAGE_SENT = "message.sent"
    """A message was sent to a task's agent. [task: message]"""
    MESSAGE_TYPED = "message.typed"
    """The supervisor pasted a message, or the prompt, into a terminal. [task, run: message, times, before]"""
    MESSAGE_WITHDRAWN = "message.withdrawn"
    """A message to a task's agent was withdrawn before the agent received it. [task: message]"""

    ALERT_RAISED = "alert.raised"
    """A monitor or a notifier told the leads of a team something. [team: text, subject, team]"""
    MAIL_BROADCAST = "mail.broadcast"
    """Mail was sent to every member of a team. [team: team]"""
    MAIL_READ = "mail.read"
    """Mail was read by the member it was sent to. [team: message, team]"""
    MAIL_SENT = "mail.sent"
    """Mail was sent to one member. [team: message, team]"""
    CHAT_OPENED = "chat.opened"
    """A chat was opened. [team: entry, team]"""
    CHAT_READ = "chat.read"
    """A member read a chat. [team: entry, team]"""
    CHAT_SAID = "chat.said"
    """A member wrote in a chat. [team: message, team, chat]"""
    BOARD_ARCHIVED = "board.archived"
    """A post was taken off a swarm's board. [task: message]"""
    BOARD_POSTED = "board.posted"
    """A post was put on a swarm's board. [task: message]"""
    BOARD_READ = "board.read"
    """A member read a post on a swarm's board. [task: message]"""

    CHECKPOINT_ACCEPTED = "checkpoint.accepted"
    """The receiver of a checkpoint goes on from it. [team: message, team]"""
    CHECKPOINT_REJECTED = "checkpoint.rejected"
    """The receiver of a checkpoint does not go on from it. [team: message, team]"""
    CHECKPOINT_SAVED = "checkpoint.saved"
    """A checkpoint was saved. [team: message, team]"""
    ENROLMENT_CREATED = "enrolment.created"
    """A secret was made with which members can enrol. [team: entry, team]"""
    ENROLMENT_REVOKED = "enrolment.revoked"
    """A secret for enrolling no longer works. [team: entry, team]"""
    FILE_CLAIMED = "file.claimed"
    """A member claimed a file, or claimed it for longer. [team: entry, team]"""
    FILE_RELEASED = "file.released"
    """A member gave a claimed file back. [team: entry, team]"""
    MEMBER_JOINED = "member.joined"
    """A member was seen for the first time. [team: entry, team]"""
    MEMORY_STORED = "memory.stored"
    """An agent stored a memory. [team: entry, team]"""
    SWARM_ENDED = "swarm.ended"
    """A swarm was ended, and its agents with it. [task: why]"""
    RUN_ATTACHED = "run.attached"
    """A person opened an agent's terminal. [task, run]"""
    INBOX_MARKED = "inbox.marked"
    """A member has put away items of the inbox. [team: entry, team]"""
    VIEW_CHANGED = "view.changed"
    """A view of the dashboard was saved or removed. [team: entry, team]"""
    SESSION_OFFERED = "session.offered"
    """A one-time code was made that opens the dashboard. [team: entry, team]"""
    TOKEN_CREATED = "token.created"  # noqa: S105  # a kind of event
    """A token was made. [team: entry, team]"""
    TOKEN_REVOKED = "token.revoked"  # noqa: S105  # a kind of event
    """A token no longer works. [team: entry, team]"""

    WORKTREE_COMMITTED = "worktree.committed"
    """What a task's worktree held was committed. [task: commit]"""
    WORKTREE_MERGED = "worktree.merged"
    """A task's branch was merged; `force` is why it was merged untested. [task: branch, onto, commit, force]"""
    WORKTREE_PROPOSED = "worktree.proposed"
    """A pull request was opened for a task's branch. [task: url]"""
    WORKTREE_PUSHED = "worktree.pushed"
    """A task's branch was pushed. [task: branch]"""

    SUPERVISOR_WARNED = "supervisor.warned"
    """The supervisor logged a warning; it is in the day's log only, not in the store. [nothing: text]"""

    @classmethod
    def _missing_(cls, value: object) -> Kind:
        """A kind that another release recorded is read as a value that equals no member."""
        unknown = str.__new__(cls, str(value))
        unknown._name_ = unknown._value_ = str(value)
        return unknown


FOLDER_MESSAGES = frozenset({Kind.MESSAGE_ASKED, Kind.MESSAGE_ANSWERED})


@dataclass(frozen=True, slots=True)
class Event:
    """The store assigns `number`; a reader that has seen N will never see a new event below N."""

    type: Kind
    task: str
    actor: str
    at: int
    run: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    version: int = VERSION
    number: int = 0

    @property
    def changes_folder(self) -> bool:
        """Whether the event changes files in the task's folder: `task.json` or `Q&A.md`."""
        in_folder = self.type.startswith(TASK) or self.type in FOLDER_MESSAGES
        return in_folder and bool(self.task)
