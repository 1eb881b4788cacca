"""Choose a task's agent or model by the first rule of fleet.yaml that matches the task."""

from __future__ import annotations

import re
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleet.domain.fleet import Fleet
    from fleet.domain.task import Spec

FILE = r"(?<![\w./@-])(?:[\w.-]+/)*[\w-]*\.?[\w.-]*\.[A-Za-z]\w{0,9}(?![\w/])"
FOLDER = r"(?<![\w./:@-])(?:[\w.-]+/)+[\w.-]*"
ANY_FILE = frozenset({"*", "**"})


class RouteRule(NamedTuple):
    """A rule: all its conditions must hold; of each list, one entry must match.

    `longer_than`, `shorter_than`: characters of title and prompt together; 0: no condition.
    `needs`: the tags that the node of its model must have.
    """

    name: str
    agent: str = ""
    model: str = ""
    needs: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    longer_than: int = 0
    shorter_than: int = 0


class Traits(NamedTuple):
    """What a rule looks at."""

    title: str = ""
    prompt: str = ""
    labels: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return f"{self.title}\n{self.prompt}"

    @property
    def size(self) -> int:
        return len(self.title) + len(self.prompt)


def route_of(spec: Spec, fleet: Fleet, traits: Traits) -> RouteRule | None:
    """The rule that chooses for the task; None when the task names an agent, coder, model or member."""
    if spec.agent or spec.coder or spec.model or spec.assignee:
        return None
    return route_for(fleet.routes, traits)


def routed(spec: Spec, route: RouteRule | None) -> Spec:
    """The spec with the agent and model that the rule chose."""
    return replace(spec, agent=route.agent, model=route.model) if route else spec


def route_for(routes: Iterable[RouteRule], traits: Traits) -> RouteRule | None:
    return next((route for route in routes if matches(route, traits)), None)


def matches(route: RouteRule, traits: Traits) -> bool:
    """Whether all conditions of the rule hold; a rule without any takes every task."""
    return (
        (not route.labels or bool(_folded(route.labels) & _folded(traits.labels)))
        and traits.size > (route.longer_than or -1)
        and (not route.shorter_than or traits.size < route.shorter_than)
        and (not route.words or _has_word(route.words, traits.text))
        and (not route.files or _names_file(route.files, traits.text))
    )


def _folded(words: Iterable[str]) -> set[str]:
    return {word.casefold() for word in words}


def _has_word(words: Iterable[str], text: str) -> bool:
    """Whether the text has one of these words as a whole; a space in a word is any white space."""
    each = (r"\s+".join(map(re.escape, word.split())) for word in words)
    return re.search(rf"(?i)(?<!\w)(?:{'|'.join(each)})(?!\w)", text) is not None


def _names_file(globs: Iterable[str], text: str) -> bool:
    """Whether the text names a matching file: `*.sql` in any directory, `docs/*` below `docs`."""
    files = mentioned(text)
    return any(_fits(file, glob) for glob in globs for file in files)


def _fits(file: str, glob: str) -> bool:
    plain = glob.removeprefix("./").removeprefix("**/")
    anywhere = glob.startswith("**/") or "/" not in plain
    return fnmatchcase(file, plain) or (anywhere and fnmatchcase(file, f"*/{plain}"))


def mentioned(text: str) -> set[str]:
    """The files and directories that a text names: `src/app.py`, `README.md`, `docs/`."""
    return {
        name.removeprefix("./").rstrip(".")
        for each in (FILE, FOLDER)
        for name in re.findall(each, text)
    }


def takes_all_of(earlier: RouteRule, later: RouteRule) -> bool:
    """Whether every task that the later rule would match goes to the earlier one."""
    return (
        _within(earlier.labels, later.labels)
        and _within(earlier.words, later.words)
        and (not earlier.files or bool(ANY_FILE & set(earlier.files) and later.files)
             or _within(earlier.files, later.files))
        and earlier.longer_than <= later.longer_than
        and (not earlier.shorter_than or 0 < later.shorter_than <= earlier.shorter_than)
    )  # fmt: skip


def _within(earlier: tuple[str, ...], later: tuple[str, ...]) -> bool:
    return not earlier or (bool(later) and _folded(later) <= _folded(earlier))


def never(route: RouteRule) -> bool:
    """Whether no task can match it."""
    return bool(route.shorter_than) and route.longer_than + 1 >= route.shorter_than
