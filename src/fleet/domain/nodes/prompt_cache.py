"""How much of a prompt a node has in its cache, judged by the beginnings of earlier prompts.

A slot caches one conversation. A request that takes the slot evicts it, and when that conversation
comes back, it reads everything again and evicts in turn. The choice of a node counts that cost.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CHARACTERS = 4  # in a token, about
MOST_STEPS = 2000  # steps of a prompt; each is compared with those of the others
ALIVE = 600.0  # seconds after which a conversation is not expected to come back
RETURNS = 2  # prompts that one eviction costs: the one evicted, and the next one that it evicts


class PromptStep(NamedTuple):
    """A prompt up to the end of one of its parts."""

    mark: bytes
    tokens: int


class KeptPrompt(NamedTuple):
    """The last prompt of a conversation in a slot, and when it was used."""

    owner: str
    prompt: tuple[PromptStep, ...]
    at: float

    @property
    def tokens(self) -> int:
        return self.prompt[-1].tokens if self.prompt else 0


def steps(parts: Iterable[bytes]) -> tuple[PromptStep, ...]:
    """The first `MOST_STEPS` of its parts, and the whole of it."""
    marks: list[PromptStep] = []
    last: PromptStep | None = None
    so_far, size = hashlib.blake2b(digest_size=12), 0
    for part in parts:
        so_far.update(len(part).to_bytes(8, "big"))
        so_far.update(part)
        size += len(part)
        last = None
        if len(marks) < MOST_STEPS:
            last = PromptStep(so_far.copy().digest(), size // CHARACTERS)
            marks.append(last)
    if size and last is None:
        marks.append(PromptStep(so_far.digest(), size // CHARACTERS))
    return tuple(marks)


def common(one: Sequence[PromptStep], other: Sequence[PromptStep]) -> int:
    """How many tokens at the beginning both share."""
    if not one or not other or one[0].mark != other[0].mark:
        return 0  # the usual case, made fast: this runs for each slot of each node
    shared = 0
    for a, b in zip(one, other, strict=False):
        if a.mark != b.mark:
            break
        shared = a.tokens
    return shared


def cached(kept: Iterable[KeptPrompt], prompt: Sequence[PromptStep]) -> int:
    return max((common(each.prompt, prompt) for each in kept), default=0)


def has_room(
    kept: Sequence[KeptPrompt], owner: str, prompt: Sequence[PromptStep], slots: int
) -> bool:
    """Whether this prompt would take a slot that no other conversation has."""
    return len(_without(kept, owner, prompt)) < max(1, slots)


def evicted(
    kept: Sequence[KeptPrompt],
    owner: str,
    prompt: Sequence[PromptStep],
    slots: int,
    now: float,
    *,
    spare: bool,
) -> float:
    """How many tokens others would have to read again because this prompt took a slot.

    `spare`: another node has a free slot. Then the tokens of a shared system prompt count as well, so
    that it is no reason to take the slot of another conversation.
    """
    if has_room(kept, owner, prompt, slots):
        return 0.0
    oldest = min(_without(kept, owner, prompt), key=lambda each: each.at)
    likely = max(0.0, 1 - (now - oldest.at) / ALIVE)
    if spare:
        return RETURNS * oldest.tokens * likely
    return (oldest.tokens - common(oldest.prompt, prompt)) * likely


def remember(
    kept: Sequence[KeptPrompt], owner: str, prompt: tuple[PromptStep, ...], slots: int, now: float
) -> list[KeptPrompt]:
    """`kept` with this prompt, in place of its conversation's earlier one, or else of the oldest."""
    others = sorted(_without(kept, owner, prompt), key=lambda each: each.at)
    return [*others, KeptPrompt(owner, prompt, now)][-max(1, slots) :]


def _without(
    kept: Sequence[KeptPrompt], owner: str, prompt: Sequence[PromptStep]
) -> list[KeptPrompt]:
    """`kept` without the earlier prompt of the same conversation."""
    return [each for each in kept if not _continues(each, owner, prompt)]


def _continues(old: KeptPrompt, owner: str, prompt: Sequence[PromptStep]) -> bool:
    shared = common(old.prompt, prompt)
    return shared == old.tokens or (old.owner == owner and shared * 2 > old.tokens)
