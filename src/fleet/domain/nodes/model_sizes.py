"""Which models of a fleet to call the small one and the big one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fleet.domain.fleet import Model

BILLIONS = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)b\b", re.IGNORECASE)


def spoken_of(models: Iterable[Model], memory: Mapping[str, int]) -> dict[str, str]:
    """What to call each model: `your small model`, `your big model`, or `your model NAME`.

    `memory`: the bytes of the resident models. When one is missing, the number in names such as
    `qwen2.5-coder:7b` decides; without either, no model is called small or big.
    """
    unique = list(dict.fromkeys(models))
    sizes = {model.name: billions(model) for model in unique}
    if all(memory.get(model.name) for model in unique):
        sizes = {model.name: float(memory[model.name]) for model in unique}
    known = sorted(set(sizes.values()))
    if len(known) < 2 or not known[0]:
        return {name: f"your model {name}" for name in sizes}
    words = {known[0]: "your small model", known[-1]: "your big model"}
    return {name: words.get(size, f"your model {name}") for name, size in sizes.items()}


def billions(model: Model) -> float:
    """Billions of parameters, by its name; 0 when the name has no such number."""
    sizes = BILLIONS.findall(model.servings[0].upstream)
    return float(sizes[-1]) if sizes else 0.0
