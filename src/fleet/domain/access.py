"""Who may do what: an actor has one role in a team, and a role is a set of permissions."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from fleet.domain.data import NamedTuple, dataclass
from fleet.domain.errors import Forbidden

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Permission(StrEnum):
    READ = "read"  # tasks, runs, events of one's own team
    ADD = "add"
    CLAIM = "claim"
    COMPLETE = "complete"
    SEND = "send"
    ASK = "ask"
    ANSWER = "answer"
    ATTACH = "attach"  # sit down at an agent's terminal, and type there
    ASSIGN = "assign"  # change, pause, cancel or retry a task of another member
    SPAWN = "spawn"
    DISMISS = "dismiss"
    BROADCAST = "broadcast"
    COMMIT = "commit"  # changes in a worktree; a worker only in its own
    MERGE = "merge"
    PUSH = "push"
    BOARD = "board"  # post to a board, mark posts as read
    MAIL = "mail"
    CHECKPOINT = "checkpoint"
    MEMORY = "memory"
    ALERT = "alert"
    NOTIFY = "notify"
    AUDIT = "audit"  # read the audit trail of one's own team
    ADMIN = "admin"  # tokens, settings, the supervisor


class Role(StrEnum):
    COORDINATOR = "coordinator"
    TEAM_LEAD = "team-lead"
    WORKER = "worker"
    MONITOR = "monitor"
    NOTIFIER = "notifier"
    MERGER = "merger"


ROLES = tuple(role.value for role in Role)


_P = Permission
_WORK = frozenset({
    _P.READ, _P.ADD, _P.CLAIM, _P.COMPLETE, _P.SEND, _P.ASK, _P.COMMIT,
    _P.BOARD, _P.MAIL, _P.CHECKPOINT, _P.MEMORY,
})  # fmt: skip
_LEAD = _WORK | {
    _P.ANSWER, _P.ASSIGN, _P.SPAWN, _P.DISMISS, _P.BROADCAST, _P.MERGE, _P.PUSH, _P.AUDIT,
}  # fmt: skip

GRANTS: dict[Role, frozenset[Permission]] = {
    Role.COORDINATOR: _LEAD | {_P.ADMIN, _P.ALERT, _P.NOTIFY, _P.ATTACH},
    Role.TEAM_LEAD: _LEAD,
    Role.WORKER: _WORK,
    Role.MONITOR: frozenset({_P.READ, _P.ALERT}),
    Role.NOTIFIER: frozenset({_P.READ, _P.NOTIFY}),
    Role.MERGER: frozenset({_P.READ, _P.COMMIT, _P.MERGE, _P.PUSH}),
}

LEADS = frozenset({Role.COORDINATOR, Role.TEAM_LEAD})
OWN = frozenset(
    {_P.ALERT, _P.NOTIFY}
)  # these only send a message, so they give no power over others

LOCAL_TEAM = "local"
AUDIENCE = "fleet"  # the `aud` claim of every token
LEEWAY = 60.0  # seconds by which another machine's clock may differ from the server's


@dataclass(frozen=True, slots=True)
class Actor:
    """A person, a run or the supervisor. `run`: the id of the run, if the actor is one.

    `remote`: the actor asks a server, with a token; all others have a shell on this machine. `token`
    and `until`: the id of that token, and when it expires, in microseconds.
    """

    name: str
    role: Role
    team: str = LOCAL_TEAM
    run: str = ""
    remote: bool = False
    token: str = ""
    until: int = 0

    @property
    def task(self) -> str:
        """The task a run works on; empty for everyone else."""
        return self.run.rpartition(".")[0]


SUPERVISOR = "supervisor"


def claims_of(actor: Actor, token_id: str, *, at: float, until: int) -> dict[str, Any]:
    """The claims of an actor's token; times are in seconds since 1970.

    `at` has a fraction, so that a revocation can fall between two tokens made in the same second.
    """
    return {
        "jti": token_id, "aud": AUDIENCE, "iat": at, "exp": until,
        "sub": actor.name, "role": str(actor.role), "team": actor.team, "run": actor.run,
    }  # fmt: skip


def sees(actor: Actor, team: str) -> bool:
    """Whether the actor may know of this team and what belongs to it; to others it does not exist."""
    return team == actor.team or actor.role is Role.COORDINATOR


def allow(actor: Actor, permission: Permission, *, team: str | None = None) -> None:
    """Raise `Forbidden` unless the actor may do this in that team, which the actor named."""
    if permission not in GRANTS[actor.role]:
        raise Forbidden(
            f"{actor.name} is a {actor.role}, and may not {permission}.",
            fix="Ask a team-lead or a coordinator."
            if permission in _LEAD
            else "Ask a coordinator.",
        )
    if team is not None and not sees(actor, team):
        raise Forbidden(f"{actor.name} is in team {actor.team}, not in {team}.")


ALL = "all"
EVER = 1 << 62  # a time that is later than any


class Revocation(NamedTuple):
    """Ends all tokens that have this key and were made up to `before`, such as all of one person.

    Times are in microseconds. `until`: when the last of these tokens expires; 0: never.
    """

    key: str
    before: int = EVER
    until: int = 0


def token_key(token_id: str) -> str:
    return f"token:{token_id}"


def enrolment_key(mark: str) -> str:
    """The key of tokens made by this enrolment; `mark`: the first characters of its secret's hash."""
    return f"enrolment:{mark}"


def name_key(name: str, team: str = "") -> str:
    """The key of the tokens of this name in this team; without a team, in every team."""
    return f"name:{len(team)}:{team}:{name}"  # a name may have a colon in it


def keys_of(
    token_id: str, name: str, team: str, enrolment: str = "", session: str = ""
) -> tuple[str, ...]:
    """The keys by which this token can be revoked. `session`: the first token of its session, if any."""
    keys = [ALL, token_key(token_id), name_key(name), name_key(name, team)]
    keys += [enrolment_key(enrolment)] if enrolment else []
    keys += [token_key(session)] if session else []
    return tuple(keys)


def is_ended(revoked: Mapping[str, int], keys: Iterable[str], at: int) -> bool:
    """Whether a token with these keys, made at that time, is revoked.

    `revoked`: by key, up to which time of making tokens are revoked.
    """
    return any(at <= revoked.get(key, -1) for key in keys)
