"""Evals: which models are asked, the comparison with hosted ones, and the stored results."""

from __future__ import annotations

import secrets
import time
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING

from fleet.adapters.evals.evaluate import EvalStep, EvalSubject, Evaluating
from fleet.adapters.evals.execute import Sandbox
from fleet.adapters.evals.hosted import ADDRESS, KEY, Hosted
from fleet.adapters.evals.kept import Evaluations
from fleet.adapters.evals.speak import Speaker
from fleet.adapters.nodes.http import OtherAnswer
from fleet.app.compute.benchmark import Benchmarks
from fleet.config.suite import FRONTIER as FRONTIER_TASKS
from fleet.config.suite import read_suite
from fleet.domain.data import NamedTuple
from fleet.domain.errors import NotFound, Unavailable
from fleet.domain.evals.builtin import builtin
from fleet.domain.evals.case import is_for
from fleet.domain.evals.judge import Opinion, agreement, better_of, question, verdict
from fleet.domain.evals.result import FRONTIER, SUITE, EvalResult, Evaluation
from fleet.domain.nodes.inventory import holds
from fleet.domain.nodes.kinds import costs_money

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fleet.app.app import App
    from fleet.domain.evals.case import Case
    from fleet.domain.fleet import Fleet, Model, Serving

__all__ = ["ADDRESS", "KEY", "Comparison", "EvalStep", "Evals", "Evaluating"]

BUILTIN = "builtin"
LIST_SECONDS = 5.0  # seconds for a node to list its models
SURVEY = 3.0
JUDGE_TOKENS = 1500
JUDGING = 4  # questions to a hosted judge at once
# Words by which an answer reveals which model wrote it.
BRANDS = ("Claude", "Anthropic", "ChatGPT", "GPT", "OpenAI", "Gemini", "Google", "Qwen", "Llama")
MORE_BRANDS = ("DeepSeek", "Mistral", "Gemma", "SmolLM2", "Grok", "Kimi", "GLM")
LEAST_NAME = 3  # characters of the shortest name that is hidden from the judge


class EvalFilter(NamedTuple):
    """Which models are asked; empty: all. `every`: also cases that do not concern their agents."""

    agent: str = ""
    node: str = ""
    model: str = ""
    every: bool = False


class Evals:
    def __init__(self, app: App) -> None:
        self._app = app
        self.made = Benchmarks(app)
        self.sandbox = Sandbox(app.env)

    @property
    def fleet(self) -> Fleet:
        return self.made.compute.fleet

    @cached_property
    def kept(self) -> Evaluations:
        return Evaluations(self._app.home.path)

    def subjects(
        self, suite: Path | None, seed: int, wanted: EvalFilter
    ) -> tuple[list[EvalSubject], list[str]]:
        """Return what is asked, and the nodes that are left out because they cost money."""
        cases = read_suite(suite) if suite is not None else None
        chosen, dear = self.chosen(wanted)
        subjects = []
        for model, serving in chosen:
            agents = (wanted.agent,) if wanted.agent else self._agents(model, serving)
            listed = cases if cases is not None else builtin(seed, serving.context)
            own = tuple(each for each in listed if wanted.every or is_for(each, agents))
            if own:
                subjects.append(self.subject(model, serving, agents, own))
        return subjects, dear

    def chosen(self, wanted: EvalFilter) -> tuple[list[tuple[Model, Serving]], list[str]]:
        fleet = self.fleet
        if wanted.agent:
            model = fleet.agent(wanted.agent).model
            if model is None:
                raise NotFound(
                    f"The agent '{wanted.agent}' uses no model of fleet.yaml.",
                    fix="Give it `model:` with a name under `models`.",
                )
            models = [model]
        elif wanted.model:  # also a model that is another one narrowed to some of its nodes
            models = list(dict.fromkeys(fleet.models.values()))
        else:
            models = fleet.own_models
        pairs = [
            (model, serving)
            for model in models
            for serving in model.servings
            if wanted.model in {"", *model.names} and wanted.node in {"", serving.node.name}
        ]
        if not pairs:
            raise NotFound(
                "No model in fleet.yaml matches --model and --node.",
                fix="`models:` in fleet.yaml says which node serves which model.",
            )
        named = wanted.node
        dear = [
            s.node.name for _, s in pairs if costs_money(s.node) and not (named and s.node.endpoint)
        ]
        return [p for p in pairs if p[1].node.name not in dear], list(dict.fromkeys(dear))

    def _agents(self, model: Model, serving: Serving) -> tuple[str, ...]:
        """Return the agents whose requests may go to this model and node, also as a fallback."""

        def is_it(other: Model) -> bool:
            """Whether this is the model, or the model narrowed to nodes that include this one."""
            return other == model or (other.of == model.name and serving in other.servings)

        return tuple(
            agent.name
            for agent in self.fleet.agents.values()
            if agent.model is not None and any(map(is_it, agent.model.chain))
        )

    def subject(
        self, model: Model, serving: Serving, agents: tuple[str, ...], cases: tuple[Case, ...]
    ) -> EvalSubject:
        node = serving.node
        row = EvalResult(model.name, node.name, node.endpoint, serving.upstream, agents, ())
        reach, look = partial(self.reach, serving), partial(self._look, serving)
        return EvalSubject(row, node.endpoint, cases, reach, look)

    def reach(self, serving: Serving) -> Speaker:
        meter = self.made.meter(serving.node)
        return Speaker(
            meter.kind,
            meter.endpoint,
            meter.headers,
            serving.upstream,
            context=serving.context,
            timeout=serving.timeout,
            is_billed=costs_money(serving.node),
        )

    def _look(self, serving: Serving) -> None:
        meter = self.made.meter(serving.node)
        inventory = meter.backend.look(within=LIST_SECONDS)
        if not holds(inventory, serving.upstream):
            pull = f"; run `ollama pull {serving.upstream}` there" * meter.kind.is_ollama
            raise OtherAnswer(f"it does not have {serving.upstream}{pull}")

    def hosted(self, url: str, variable: str) -> Hosted:
        """Return a hosted model API; raise `Unavailable` when the variable has no key."""
        return Hosted(url, variable, self._app.env)

    def start(self, subjects: Sequence[EvalSubject], output: int) -> Evaluating:
        return Evaluating(subjects, self.sandbox.execute, output=output)

    def keep(self, suite: str, seed: int, rows: Sequence[EvalResult]) -> tuple[Evaluation, Path]:
        evaluation = Evaluation(*_stamp(), SUITE, suite, seed, self.sandbox.isolation, tuple(rows))
        return evaluation, self.kept.add(evaluation)


class Comparison:
    """Compares local models, each on the first of its nodes that is up, with hosted ones."""

    def __init__(self, evals: Evals, hosted: Hosted, models: Sequence[str], judge: str) -> None:
        self._evals, self._hosted, self._judge = evals, hosted, judge
        self.cases = read_suite(FRONTIER_TASKS)
        is_ours = evals.fleet.model(judge) is not None if judge else False
        self._judge_model = evals.fleet.model(judge) if is_ours else None
        hosted.check([*models, *([judge] if judge and not is_ours else [])])
        self._names = list(dict.fromkeys(models))

    def subjects(self, wanted: EvalFilter) -> tuple[list[EvalSubject], list[str]]:
        pairs, dear = self._evals.chosen(wanted)
        up = {seen.node for seen in self._evals.made.compute.survey(within=SURVEY) if seen.up}
        best: dict[str, tuple[Model, Serving]] = {}
        for model, serving in sorted(pairs, key=lambda pair: pair[1].node.name not in up):
            best.setdefault(model.name, (model, serving))
        ours = [
            self._evals.subject(model, serving, (), self.cases) for model, serving in best.values()
        ]
        theirs = [
            EvalSubject(
                EvalResult(name, "", self._hosted.url, name, (), ()),
                f"{self._hosted.url} {name}",
                self.cases,
                partial(self._hosted.speaker, name),
            )
            for name in self._names
        ]
        return ours + theirs, dear

    def keep(self, evaluating: Evaluating) -> tuple[Evaluation, Path]:
        """Store the results with the judge's opinions, which can take minutes."""
        rows = [step.row for step in evaluating.steps()]
        opinions = self._opinions(rows, evaluating.answers) if self._judge else []
        evaluation = Evaluation(
            *_stamp(),
            FRONTIER,
            "frontier",
            0,
            self._evals.sandbox.isolation,
            tuple(rows),
            self._judge,
            tuple(opinions),
            agreement(opinions),
        )
        return evaluation, self._evals.kept.add(evaluation)

    def _opinions(
        self, rows: Sequence[EvalResult], answers: dict[tuple[str, str], str]
    ) -> list[Opinion]:
        """Let the judge compare each local answer with each hosted one, in both orders."""
        from concurrent.futures import ThreadPoolExecutor  # start-up time

        pairs = [
            (case, one.name, other.name)
            for case in self.cases
            for one in rows
            if one.node
            for other in rows
            if not other.node
            and (one.name, case.name) in answers
            and (other.name, case.name) in answers
        ]
        ask = self._judging(rows, answers)
        with ThreadPoolExecutor(1 if self._judge_model else JUDGING) as pool:
            forward = pool.map(lambda p: ask(p[0], p[1], p[2]), pairs)
            backward = pool.map(lambda p: ask(p[0], p[2], p[1]), pairs)
            verdicts = list(zip(forward, backward, strict=True))
        scores = {(r.name, c.case): c.score for r in rows for c in r.cases}
        return [
            Opinion(
                case.name,
                one,
                other,
                *both,
                better_of({name: scores[name, case.name] for name in (one, other)}, one, other),
            )
            for (case, one, other), both in zip(pairs, verdicts, strict=True)
        ]

    def _judging(
        self, rows: Sequence[EvalResult], answers: dict[tuple[str, str], str]
    ) -> Callable[[Case, str, str], str]:
        names = _names(rows)
        if self._judge_model is not None:
            speaker = self._evals.reach(self._judge_model.servings[0])
        else:
            speaker = self._hosted.speaker(self._judge)

        def ask(case: Case, one: str, other: str) -> str:
            text = question(
                case.items[0].prompt, answers[one, case.name], answers[other, case.name], names
            )
            try:
                reply = speaker.ask([{"role": "user", "content": text}], JUDGE_TOKENS)
            except Unavailable:
                return ""
            return verdict(reply.text)

        return ask


def _names(rows: Sequence[EvalResult]) -> list[str]:
    """Return all names that would reveal which model wrote an answer."""
    names = [name for row in rows for name in (row.model, row.node, row.upstream)]
    parts = [part for name in names for part in name.replace(":", "/").split("/")]
    return [name for name in (*names, *parts, *BRANDS, *MORE_BRANDS) if len(name) >= LEAST_NAME]


def _stamp() -> tuple[str, int]:
    """Return an id that sorts by time, and the time in microseconds."""
    at = time.time_ns() // 1000
    moment = datetime.fromtimestamp(at / 1_000_000, UTC)
    return f"{moment:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}", at
