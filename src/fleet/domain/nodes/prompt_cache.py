"""How much of a prompt a node has in its cache, judged by the beginnings of earlier prompts."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CHARACTERS = 4  # in a token, about


class Step(NamedTuple):
    """A prompt up to the end of one of its parts."""

    mark: bytes
    tokens: int


def steps(parts: Iterable[bytes]) -> tuple[Step, ...]:
    hashes = []
    so_far, size = hashlib.blake2b(digest_size=12), 0
    for part in parts:
        so_far.update(len(part).to_bytes(8, "big") + part)
        size += len(part)
        hashes.append(Step(so_far.copy().digest(), size // CHARACTERS))
    return tuple(hashes)


def common(one: Sequence[Step], other: Sequence[Step]) -> int:
    """How many tokens at the beginning both share."""
    shared = 0
    for a, b in zip(one, other, strict=False):
        if a.mark != b.mark:
            break
        shared = a.tokens
    return shared


def cached(prompts: Iterable[Sequence[Step]], prompt: Sequence[Step]) -> int:
    return max((common(old, prompt) for old in prompts), default=0)


def remember(
    prompts: Sequence[Sequence[Step]], prompt: Sequence[Step], slots: int
) -> list[Sequence[Step]]:
    """A slot caches one conversation: a longer form replaces the shorter, a new one the oldest."""
    kept = [old for old in prompts if common(old, prompt) * 2 <= (old[-1].tokens if old else 0)]
    return [*kept, prompt][-max(1, slots) :]
