"""Which of a fleet's models are the small and the big one, as people speak of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fleet.domain.fleet import Model

BILLIONS = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)b\b", re.IGNORECASE)


def spoken_of(models: Iterable[Model], memory: Mapping[str, int]) -> dict[str, str]:
    """By model: `your small model`, `your big model`, or `your model NAME`.

    `memory`: the bytes of those that are resident. Else the number in a name such as
    `qwen2.5-coder:7b` decides, and with neither nobody can tell.
    """
    found = list(dict.fromkeys(models))
    sizes = {model.name: billions(model) for model in found}
    if all(memory.get(model.name) for model in found):
        sizes = {model.name: float(memory[model.name]) for model in found}
    known = sorted(set(sizes.values()))
    if len(known) < 2 or not known[0]:
        return {name: f"your model {name}" for name in sizes}
    words = {known[0]: "your small model", known[-1]: "your big model"}
    return {name: words.get(size, f"your model {name}") for name, size in sizes.items()}


def billions(model: Model) -> float:
    """Of its parameters; 0 when its name does not say."""
    said = BILLIONS.findall(model.servings[0].upstream)
    return float(said[-1]) if said else 0.0
