"""One way from what somebody typed to the task that is meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.access import allow
from fleet.domain.errors import BadInput, NotFound

if TYPE_CHECKING:
    from fleet.domain.access import Permission
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context

LIST = "`fleet tasks --all` lists them."


def the_task(context: Context, name: str, permission: Permission) -> Task:
    """By id (`t-31`, `31`) or by one of its runs (`t-31.2`); the actor's own when empty."""
    wanted = name.strip() or context.actor.task
    if not wanted:
        raise BadInput("Which task?", fix=LIST)
    wanted = wanted.partition(".")[0]
    if wanted.isdigit():
        wanted = f"t-{wanted}"
    try:
        task = context.store.task(wanted)
    except NotFound as error:
        raise NotFound(f"There is no task '{name}'.", fix=LIST) from error
    allow(context.actor, permission, team=task.team)
    return task


def clean_text(what: str, text: str, *, most: int) -> str:
    """Refuse what could not be shown or stored as it is."""
    if "\0" in text or any("\ud800" <= c <= "\udfff" for c in text):
        raise BadInput(f"The {what} is not valid text.", fix="Give it as UTF-8, without NUL.")
    if len(text) > most:
        raise BadInput(f"The {what} has {len(text)} characters; at most {most} are taken.")
    return text
