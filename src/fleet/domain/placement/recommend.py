"""Which model belongs on which node, and which agent to which model: what fits, then what is fast.

Three decisions in this order, each explained line by line: on which node each model is, which model
each agent uses, and what answers when a node is down. A change is made only if it is clearly better.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

from fleet.domain.placement.candidates import (
    SCORED,
    WORST,
    WORTH,
    Advice,
    AgentPlacement,
    Filling,
    ModelOnNode,
    PlacementDraft,
    SettingChange,
    listed,
    pull,
    room,
    span,
)
from fleet.domain.placement.solver import fits, options, place, shrink

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleet.domain.placement.candidates import AgentWish, CandidateNode, Stock


def recommend(
    machines: Mapping[str, CandidateNode], models: Sequence[Stock], wishes: Sequence[AgentWish]
) -> Advice:
    draft = PlacementDraft(machines, models, wishes)
    shrink(draft)
    place(draft)
    _choose(draft)
    _spread(draft)
    _say_unknown(draft)
    seats = [
        AgentPlacement(
            wish.agent,
            name := draft.uses[wish.agent],
            draft.nodes[name],
            draft.took(name),
            draft.models[name].quality_at(wish.jobs) if name in draft.models else None,
        )
        for wish in draft.wishes
    ]
    fillings = [
        Filling(
            node,
            machine.memory,
            draft.used(node),
            tuple(name for name, nodes in draft.nodes.items() if node in nodes),
        )
        for node, machine in machines.items()
    ]
    return Advice(tuple(draft.lines), tuple(draft.notes), tuple(seats), tuple(fillings))


def _choose(draft: PlacementDraft) -> None:
    """Choose the model of each agent: a better one for agents that write, a faster one for planners.

    Models are compared by their scores in `fleet eval`; if not all were tested, by their size.
    """
    for wish in draft.wishes:
        worth = _Worth(draft, wish)
        current = draft.models.get(wish.model)
        if current is None or not worth.of(current):
            continue
        able = [
            model
            for model in draft.models.values()
            if worth.of(model) and not (wish.tools and model.tools is False)
        ]
        least = min(wish.least, draft.contexts[current.name])
        wide = [model for model in able if draft.contexts[model.name] >= least]
        best, wanted = worth.best(current, wide), worth.best(current, able)
        if wanted not in wide:
            draft.notes.append(
                f"{wanted.name} would be better for {wish.agent}, but a context of "
                f"{draft.contexts[wanted.name]} is too small for its program."
            )
        if best is not current:
            draft.uses[wish.agent] = best.name
            why = _because(draft, wish, current, best, is_scored=worth.is_scored)
            draft.lines.append(
                SettingChange(("agents", wish.agent, "model"), best.name, wish.model, why)
            )


class _Worth:
    """What each model is worth to one agent."""

    def __init__(self, draft: PlacementDraft, wish: AgentWish) -> None:
        self._draft, self._wish = draft, wish
        measured = [model for model in draft.models.values() if draft.took(model.name)]
        self.is_scored = all(model.quality_at(wish.jobs) is not None for model in measured)

    def of(self, model: Stock) -> float | None:
        """A score to compare models by; None when the model's size or speed is unknown."""
        took, quality = self._draft.took(model.name), model.quality_at(self._wish.jobs)
        if not took:
            return None
        better, faster = self._wish.weights
        if self.is_scored and quality is not None:
            return 100.0 + better * SCORED * log(max(quality, WORST)) - faster * log(took)
        return 100.0 + better * log(model.billions) - faster * log(took) if model.billions else None

    def best(self, current: Stock, able: Sequence[Stock]) -> Stock:
        """The best model if it is clearly better, or if the present one cannot call tools."""
        best = max(able, key=lambda model: self.of(model) or 0.0, default=current)
        gain = (self.of(best) or 0.0) - (self.of(current) or 0.0)
        unable = self._wish.tools and current.tools is False
        return best if unable or gain > max(self._wish.weights) * WORTH else current


def _because(
    draft: PlacementDraft, wish: AgentWish, current: Stock, best: Stock, *, is_scored: bool
) -> str:
    best_node, current_node = draft.best(best.name), draft.best(current.name)
    times = f"a turn takes {span(best, best_node)} with {best.name} on {best_node}"
    times += f", {span(current, current_node)} with {current.name} on {current_node}"
    if wish.tools and current.tools is False:
        return f"{current.name} cannot call tools, and {best.name} can; {times}."
    article = "An" if wish.role.startswith(tuple("aeiou")) else "A"
    who = f"{article} {wish.role}" if wish.role else f"The agent {wish.agent}"
    good, was = best.quality_at(wish.jobs), current.quality_at(wish.jobs)
    if is_scored and good is not None and was is not None:
        scores = f"{best.name} scores {good:.0%} at its jobs, {current.name} {was:.0%}"
        gains = "a better model" if good > was else "a quick answer"
        return f"{who} gains most by {gains}: {scores}, and {times}."
    sizes = f"{best.billions:.3g} billion parameters against {current.billions:.3g}"
    if best.billions > current.billions:
        return f"{who} gains most by a large model: {best.name} has {sizes}, and {times}."
    return f"{who} gains most by a quick answer: {times}."


def _spread(draft: PlacementDraft) -> None:
    """Provide for a node that is down: recommend a second copy of its model, or else a fallback."""
    users = [(sum(u == name for u in draft.uses.values()), name) for name in draft.models]
    for agents, name in sorted(users, key=lambda pair: -pair[0]):
        model = draft.models[name]
        if not agents or len(draft.nodes[name]) > 1 or model.fixed:
            continue
        node = _second(draft, model)
        if node:
            draft.lines += _copied(draft, model, node)
            draft.nodes[name] = (*draft.nodes[name], node)
        elif not model.fallbacks:
            _fall_back(draft, model)


def _second(draft: PlacementDraft, model: Stock) -> str:
    """The fastest node with room for one more copy, or none."""
    if model.name in draft.hopeless:
        return ""
    need, first = draft.need(model.name), draft.nodes[model.name][0]
    able = [
        node
        for node in options(draft, model)
        if node != first
        and draft.machines[node].up
        and fits(draft.machines[node], need, draft.used(node))
    ]
    return min(
        able, key=lambda n: model.spots.get(n, ModelOnNode()).seconds or float("inf"), default=""
    )


def _copied(draft: PlacementDraft, model: Stock, node: str) -> list[SettingChange]:
    first = draft.nodes[model.name][0]
    why = f"Only {first} serves {model.name}; {room(draft.machines[node])}, so that {node} "
    why += f"answers when {first} is down or at work.{pull(model, node)}"
    if not model.keys:
        return [SettingChange(("models", model.name, "servings", node), model.upstream, None, why)]
    key = f"{model.name}-{node}"
    same = f"The same as {model.name}, so that both are one model."
    lines = [SettingChange(("models", key, "node"), node, None, why)]
    lines += [
        SettingChange(("models", key, name), value, None, same)
        for name, value in (("upstream", model.upstream), ("alias", model.alias))
    ]
    alike = f"As {model.name} has it: a request must fit wherever it lands."
    lines.append(SettingChange(("models", key, "context"), draft.contexts[model.name], None, alike))
    return lines + [
        SettingChange(("models", key, name), value, None, f"As {model.name} has it.")
        for name, value in model.rest
    ]


def _fall_back(draft: PlacementDraft, model: Stock) -> None:
    first = draft.nodes[model.name][0]
    others = [
        other
        for other in draft.models.values()
        if other is not model
        and _elsewhere(draft, other, first)
        and model.name not in _leads_to(draft, other.name)
        and other.tools is not False
    ]
    if not others:
        draft.notes.append(
            f"Only {first} serves {model.name}, and no other node has room for it: when "
            f"{first} is down, its agents wait."
        )
        return
    best = max(others, key=lambda other: other.billions)
    where = _elsewhere(draft, best, first)[0]
    why = f"No other node is known to have room for {model.name}: when {first} is down, "
    why += f"{best.name} on {where} "
    key = model.keys[0] if model.keys else model.name
    draft.models[model.name] = model._replace(fallbacks=(best.name,))
    draft.lines.append(
        SettingChange(("models", key, "fallbacks"), (best.name,), None, f"{why}answers.")
    )


def _elsewhere(draft: PlacementDraft, model: Stock, first: str) -> list[str]:
    """The nodes that could answer with this model while the node `first` is down."""
    return [n for n in draft.nodes[model.name] if n != first and draft.machines[n].up]


def _leads_to(draft: PlacementDraft, name: str) -> set[str]:
    reached, todo = set(), [name]
    while todo:
        each = todo.pop()
        if each not in reached and each in draft.models:
            reached.add(each)
            todo += draft.models[each].fallbacks
    return reached


def _say_unknown(draft: PlacementDraft) -> None:
    serving = dict.fromkeys(node for nodes in draft.nodes.values() for node in nodes)
    down = [node for node in serving if not draft.machines[node].up]
    if down:
        draft.notes.append(f"{listed(down)} did not answer, so nothing is moved there.")
    blank = [node for node in serving if node not in down and not _has_memory(draft, node)]
    if blank:
        draft.notes.append(
            f"The memory of {listed(blank)} is not known: set `nodes.NAME.memory`, such as 24GB. "
            "What fits there is not judged."
        )
    slow = [
        f"{name} on {node}"
        for name, model in draft.models.items()
        for node in model.nodes
        if not model.spots[node].seconds or model.spots[node].guessed
    ]
    if slow:
        draft.notes.append(f"Not measured: {listed(slow)}. `fleet benchmark` does it.")
    blind = [
        name
        for name, model in draft.models.items()
        if any(model.quality_at(wish.jobs) is None for wish in draft.wishes)
    ]
    if blind and any(model.quality for model in draft.models.values()):
        draft.notes.append(
            f"Not evaluated in every job: {listed(blind)}, so models are compared by their size. "
            "`fleet eval --all` asks all cases."
        )


def _has_memory(draft: PlacementDraft, node: str) -> bool:
    """Whether its memory is known; true for a node that loads nothing on request, where it does not matter."""
    return bool(draft.machines[node].memory) or not draft.machines[node].loads
