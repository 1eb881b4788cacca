"""A case of an eval: what a model is asked, and the check that decides whether it did its job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from fleet.domain.data import NamedTuple
from fleet.domain.generated.roles import KIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CODE, REVIEW, TOOLS, STREAMING = "code", "review", "tools", "streaming"
ARITHMETIC, CLASSIFICATION = "arithmetic", "classification"
REASONING, LONG_CONTEXT = "reasoning", "long-context"
JOBS = (
    ARITHMETIC,
    CODE,
    REVIEW,
    CLASSIFICATION,
    REASONING,
    TOOLS,
    LONG_CONTEXT,
    STREAMING,
)
# What an agent of each role is for; of any other name an agent may be given every job.
JOBS_OF = {
    "implementer": (ARITHMETIC, CODE, TOOLS, LONG_CONTEXT, STREAMING),
    "reviewer": (REVIEW, REASONING, LONG_CONTEXT, STREAMING),
    "tester": (CODE, TOOLS, REASONING, STREAMING),
    "planner": (ARITHMETIC, REASONING, CLASSIFICATION, TOOLS, STREAMING),
    "summarizer": (CLASSIFICATION, LONG_CONTEXT, STREAMING),
    "documenter": (REVIEW, LONG_CONTEXT, STREAMING),
}


class Number(NamedTuple):
    value: float
    tolerance: float = 0.0


class Label(NamedTuple):
    """One of `labels`, and no other of them."""

    value: str
    labels: tuple[str, ...]


class Exact(NamedTuple):
    """This word, wherever the reply has its answer; case and quotes do not count."""

    value: str


class Counting(NamedTuple):
    """All numbers from `first` to `last` in order, in at least so many pieces."""

    first: int
    last: int
    pieces: int = 5


class Passing(NamedTuple):
    """Python functions `test_…` that run against the code of the reply."""

    tests: str


class Mutants(NamedTuple):
    """The reply is tests: they must pass with `reference`, and fail with each of `mutants`."""

    reference: str
    mutants: tuple[str, ...]


class Review(NamedTuple):
    """`sound`: there is nothing to complain of. Otherwise the corrected code must pass `tests`."""

    sound: bool
    tests: str


class CaseCall(NamedTuple):
    """This tool with these arguments; it is answered with `result`, which `value` is read from."""

    name: str
    arguments: Mapping[str, Any]
    result: str
    value: float


Check: TypeAlias = Number | Label | Exact | Counting | Passing | Mutants | Review | CaseCall


class EvalItem(NamedTuple):
    prompt: str
    check: Check


class Case(NamedTuple):
    """`need`: so many of its items must be right. `output`: tokens of a reply, at most.

    `roles`: only agents of these are given it; empty: those whose jobs have it.
    """

    name: str
    job: str
    items: tuple[EvalItem, ...]
    need: int
    output: int = 256
    system: str = ""
    tools: tuple[Mapping[str, Any], ...] = ()
    roles: tuple[str, ...] = ()


def role_of(agent: str) -> str:
    """The role that its name tells; empty when it tells none."""
    words = agent.replace("_", "-").split("-")
    return next((role for word in words if (role := KIN.get(word, word)) in JOBS_OF), "")


def jobs_of(agents: Iterable[str]) -> frozenset[str]:
    """The jobs of these agents together; every job if there are none, or if one tells no role."""
    roles = [role_of(agent) for agent in agents]
    if not roles or "" in roles:
        return frozenset(JOBS)
    return frozenset(job for role in roles for job in JOBS_OF[role])


def is_for(case: Case, agents: tuple[str, ...]) -> bool:
    if case.roles:
        return not agents or bool({role_of(agent) for agent in agents} & set(case.roles))
    return case.job not in JOBS or case.job in jobs_of(agents)
