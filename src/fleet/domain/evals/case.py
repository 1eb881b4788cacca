"""A case of an eval: what a model is asked, and the check that decides whether its reply is right."""

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
# The jobs of an agent whose name contains this role; an agent of any other name does every job.
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
    """The reply must contain this label, and no other of `labels`."""

    value: str
    labels: tuple[str, ...]


class Exact(NamedTuple):
    """The answer must contain this word, in upper or lower case."""

    value: str


class Counting(NamedTuple):
    """All numbers from `first` to `last` in order, streamed in at least `pieces` pieces."""

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
    """`sound`: the code has no bug. Otherwise the corrected code in the reply must pass `tests`."""

    sound: bool
    tests: str


class CaseCall(NamedTuple):
    """The model must call this tool with these arguments, and answer `value`, as read from `result`."""

    name: str
    arguments: Mapping[str, Any]
    result: str
    value: float


Check: TypeAlias = Number | Label | Exact | Counting | Passing | Mutants | Review | CaseCall


class EvalItem(NamedTuple):
    prompt: str
    check: Check


class Case(NamedTuple):
    """`need`: how many items must be right. `output`: the most tokens of a reply.

    `roles`: only agents of these roles get the case; empty: all agents that do its job.
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
    """The role in the agent's name, such as `reviewer` in `my-reviewer`; empty if there is none."""
    words = agent.replace("_", "-").split("-")
    return next((role for word in words if (role := KIN.get(word, word)) in JOBS_OF), "")


def jobs_of(agents: Iterable[str]) -> frozenset[str]:
    """The jobs of all these agents; every job if there are no agents, or one has no role in its name."""
    roles = [role_of(agent) for agent in agents]
    if not roles or "" in roles:
        return frozenset(JOBS)
    return frozenset(job for role in roles for job in JOBS_OF[role])


def is_for(case: Case, agents: tuple[str, ...]) -> bool:
    if case.roles:
        return not agents or bool({role_of(agent) for agent in agents} & set(case.roles))
    return case.job not in JOBS or case.job in jobs_of(agents)
