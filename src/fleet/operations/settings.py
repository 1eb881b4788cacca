"""The effective settings of a project, and where each comes from."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated

from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.errors import Forbidden
from fleet.domain.limits import Rows, TextLimit
from fleet.domain.task import Directory
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.causes import may_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleet.operations.catalogue import Context
    from fleet.ports import ShownSetting


@dataclass(frozen=True, slots=True)
class SettingRow:
    """`text`: its value, without secrets, at most 80 characters of it.

    `origin`: default, a file with its line, an environment variable, or a flag.
    """

    setting: str
    text: str
    origin: str


@dataclass(frozen=True, slots=True)
class FindSettings(Request[tuple[SettingRow, ...]]):
    """Those with every one of `words` in their name or value; without words all of them.

    Those whose name has the words come first. `project`: empty for the one of the caller.
    """

    words: Annotated[str, TextLimit(200, what="words")] = ""
    project: Directory = ""
    limit: Rows = 100


def find(context: Context, request: FindSettings) -> tuple[SettingRow, ...]:
    if request.project and not may_name(context, request.project):
        raise Forbidden(f"{context.actor.name} may not read the settings of {request.project}.")
    settings = context.world(request.project or context.project).for_people()
    matching = islice(_matching(settings, request.words.lower().split()), request.limit)
    return tuple(SettingRow(each.setting, each.text, each.origin) for each in matching)


def _matching(settings: Iterable[ShownSetting], words: list[str]) -> Iterable[ShownSetting]:
    named, others = [], []
    for each in settings:
        name = each.setting.lower()
        if all(word in name for word in words):
            named.append(each)
        elif all(word in f"{name} {each.text.lower()}" for word in words):
            others.append(each)
    return [*named, *others]


OPERATIONS = (
    Operation("setting.find", FindSettings, Permission.ADMIN, find,
              "Find settings, with where each comes from.", reads=True),
)  # fmt: skip
