"""One table between our statuses of a task, bd's and claude-fleet's.

The page `docs/reference/states.md` is made from it.
"""

from __future__ import annotations

from fleet.domain.data import NamedTuple
from fleet.domain.errors import BadInput, nearest
from fleet.operations.tasks.statuses import STATUSES


class Word(NamedTuple):
    """`ours` is what a list shows; `team` is claude-fleet's word."""

    ours: str
    bd: str
    team: str

    @property
    def meaning(self) -> str:
        return STATUSES[self.ours]


TABLE = (
    Word("ready", "open", "open"),
    Word("waiting", "open", "open"),
    Word("children", "open", "open"),
    Word("postponed", "deferred", "open"),
    Word("assigned", "in_progress", "in_progress"),
    Word("starting", "in_progress", "in_progress"),
    Word("running", "in_progress", "in_progress"),
    Word("stopping", "in_progress", "in_progress"),
    Word("asking", "blocked", "blocked"),
    Word("paused", "blocked", "blocked"),
    Word("held", "blocked", "open"),
    Word("review", "blocked", "blocked"),
    Word("failed", "blocked", "blocked"),
    Word("done", "closed", "resolved"),
    Word("landing", "closed", "resolved"),
    Word("landed", "closed", "resolved"),
    Word("beaten", "closed", "resolved"),
    Word("cancelled", "closed", "resolved"),
)

# What `bd update --status` does to a task, by bd's word.
BD_STATUSES = {
    "open": "reopens an ended task, resumes a paused one, gives the answer in Q&A.md, "
    "releases one done by hand; does nothing to a running one",
    "in_progress": "claims it for you, to do by hand",
    "blocked": "with --notes 'QUESTION: …' it asks; else it pauses",
    "deferred": "pauses it",
    "closed": "closes it",
}
NOT_OURS = {
    "hooked": "Claim it instead: --claim",
    "pinned": "Fleet does not pin tasks. Give it a label when you create it: --labels pinned",
    "tombstone": "`fleet bd delete ID --force` cancels a task.",
}

_BD = {word.ours: word.bd for word in TABLE}
_TEAM = {word.ours: word.team for word in TABLE}


def to_bd(status: str) -> str:
    """The word of bd for a status of ours."""
    return _BD[status]


def to_team(status: str) -> str:
    """The word of claude-fleet for a status of ours."""
    return _TEAM[status]


def from_bd(word: str) -> tuple[str, ...]:
    """Our statuses for this word of bd's. Raise `BadInput` when it is not a status of bd's."""
    state = bd_word(word)
    return tuple(ours for ours, bd in _BD.items() if bd == state)


def bd_word(word: str) -> str:
    """The word as bd writes it; raise `BadInput` unless it is a status of bd's that we have."""
    plain = word.strip().lower().replace("-", "_")
    if plain in NOT_OURS:
        raise BadInput(f"This queue has no status '{plain}'.", fix=NOT_OURS[plain])
    if plain not in BD_STATUSES:
        fix = nearest(word, list(BD_STATUSES)) or f"Choose one of: {', '.join(BD_STATUSES)}."
        raise BadInput(f"'{word}' is not a status.", fix=fix)
    return plain
