"""On which node each model goes: first what fits into memory together, then what is fast."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

from fleet.domain.placement.candidates import (
    BETTER,
    BREADTH,
    SHORTEST,
    UNKNOWN,
    WORTH,
    ModelOnNode,
    SettingChange,
    gigabytes,
    pull,
    room,
    span,
)

if TYPE_CHECKING:
    from fleet.domain.placement.candidates import CandidateNode, PlacementDraft, Stock


def options(draft: PlacementDraft, model: Stock) -> list[str]:
    """Nodes that could serve the model, the present one first; memory is checked later."""
    current = draft.machines[model.nodes[0]]
    names = [current.name]
    for machine in draft.machines.values():
        spot = model.spots.get(machine.name, ModelOnNode())
        fetched = machine.loads and bool(machine.memory) and model.needs is not None
        if machine is not current and machine.up and machine.wire == current.wire:
            names += [machine.name] if spot.held or fetched else []
    return names


def fits(machine: CandidateNode, need: int, used: int = 0) -> bool:
    return not machine.memory or not need or used + need <= machine.memory


def shrink(draft: PlacementDraft) -> None:
    """Give a model that fits nowhere the largest context with which it fits."""
    for name, model in draft.models.items():
        if model.movable and any(
            fits(draft.machines[node], model.need()) for node in options(draft, model)
        ):
            continue
        small = min((draft.machines[n] for n in model.nodes), key=lambda m: m.memory or 1 << 62)
        if model.fixed or fits(small, model.need()):
            continue
        context = model.context
        while context > SHORTEST and not fits(small, model.need(context)):
            context = max(SHORTEST, context // 2)
        needs = f"{gigabytes(model.need())} with a context of {model.context}"
        why = f"{name} needs {needs}, and {small.name} has {gigabytes(small.memory)}"
        if not fits(small, model.need(context)):
            draft.hopeless.add(name)
            draft.notes.append(f"{why}: it fits there with no context that is of use.")
            continue
        draft.contexts[name] = context
        why += f"; with {context} it needs {gigabytes(model.need(context))}."
        draft.lines += [
            SettingChange(("models", key, "context"), context, model.context, why)
            for key in model.keys or (name,)
        ]


def place(draft: PlacementDraft) -> None:
    """Choose the best placement in which every node has all of its models in memory at once."""
    order = sorted(draft.models.values(), key=lambda m: -draft.need(m.name))
    states: list[tuple[float, dict[str, int], dict[str, str]]] = [(0.0, {}, {})]
    for model in order:
        need = draft.need(model.name)
        free = model.movable and model.name not in draft.hopeless
        grown = []
        for cost, used, chosen in states:
            for node in options(draft, model) if free else [""]:
                full = {n: used.get(n, 0) + need for n in ((node,) if node else model.nodes)}
                if all(fits(draft.machines[n], need, total - need) for n, total in full.items()):
                    more = _cost(draft, model, node) if node else 0.0
                    grown.append((cost + more, used | full, chosen | {model.name: node}))
        states = sorted(grown, key=lambda state: state[0])[:BREADTH]
    if not states:
        _say_full(draft)
        return
    for name, node in states[0][2].items():
        model = draft.models[name]
        if node and node != model.nodes[0]:
            draft.lines += _move(draft, model, node)
            draft.nodes[name] = (node,)
    for model in draft.models.values():
        _order(draft, model)


def _cost(draft: PlacementDraft, model: Stock, node: str) -> float:
    """The cost of this node, compared with the present one."""
    if node == model.nodes[0]:
        return 0.0
    current, target = (model.spots.get(n, ModelOnNode()) for n in (model.nodes[0], node))
    change = UNKNOWN
    if current.seconds and target.seconds:
        change = log(target.seconds / current.seconds)
        change = (
            max(change, 0.0) if target.guessed else change
        )  # a guess is no reason to move a model
    return draft.demand(model.name) * (change + WORTH)


def _move(draft: PlacementDraft, model: Stock, node: str) -> list[SettingChange]:
    current, target = draft.machines[model.nodes[0]], draft.machines[node]
    need = draft.need(model.name)
    others = draft.used(current.name) - need
    if not fits(current, need, others):
        beside = f" beside its other models ({gigabytes(others)})" if others else ""
        why = f"{model.name} needs {gigabytes(need)} with its context, which {current.name} "
        why += f"({gigabytes(current.memory)}) does not have{beside}; {room(target)}."
    else:
        why = f"A turn takes {span(model, node)} on {node}, and {span(model, current.name)} on "
        why += f"{current.name}; {room(target)}."
    why += pull(model, node)
    return [SettingChange(("models", model.keys[0], "node"), node, current.name, why)]


def _order(draft: PlacementDraft, model: Stock) -> None:
    """Put the fastest of several nodes first: the order counts until the relay has measurements."""
    nodes = draft.nodes[model.name]
    spots = {node: model.spots.get(node, ModelOnNode()) for node in nodes}
    took = {node: spot.seconds for node, spot in spots.items() if not spot.guessed}
    best = draft.best(model.name)
    if len(took) < len(nodes) or not all(took.values()) or took[best] >= took[nodes[0]] * BETTER:
        return
    why = f"A turn takes {span(model, best)} on {best}, and {span(model, nodes[0])} on {nodes[0]}"
    if not model.keys:
        draft.notes.append(f"{why}: put {best} first in models.{model.name}.servings.")
        return
    index = nodes.index(best)
    swapped = list(nodes)
    swapped[0], swapped[index] = best, nodes[0]
    draft.nodes[model.name] = tuple(swapped)
    draft.lines += [
        SettingChange(
            ("models", model.keys[0], "node"), best, nodes[0], f"{why}: the best goes first."
        ),
        SettingChange(
            ("models", model.keys[index], "node"), nodes[0], best, f"It swaps places with {best}."
        ),
    ]


def _say_full(draft: PlacementDraft) -> None:
    for machine in draft.machines.values():
        used = draft.used(machine.name)
        if machine.memory and used > machine.memory:
            draft.notes.append(
                f"The models of {machine.name} need {gigabytes(used)} together, and it has "
                f"{gigabytes(machine.memory)}: it unloads one for the other, and none of them fits "
                "elsewhere."
            )
