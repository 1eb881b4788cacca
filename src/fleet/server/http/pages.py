"""Lists come in pages: each says where the next one begins, if there is one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_origin
from urllib.parse import quote, urlencode

from fleet.domain.errors import BadInput
from fleet.domain.limits import Whole
from fleet.operations.shared.names import PAGE, cursor_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from fleet.operations.catalogue import Operation

PAGES = Whole(1, PAGE)


def is_list(operation: Operation) -> bool:
    return (
        operation.is_read
        and get_origin(operation.reply) is tuple
        and "before" in operation.request.__dataclass_fields__  # type: ignore[attr-defined]  # it is one
    )


def has_rows(operation: Operation) -> bool:
    """Whether the operation replies with pages of rows; another's `limit` may be one of bytes."""
    has_limit = "limit" in operation.request.__dataclass_fields__  # type: ignore[attr-defined]  # as above
    return has_limit and get_origin(operation.reply) is tuple


def check_limit(operation: Operation, fields: Mapping[str, Any]) -> None:
    limit = fields.get("limit")
    if isinstance(limit, int) and not PAGES.least <= limit <= PAGES.most and has_rows(operation):
        raise BadInput(f"A page has 1 to {PAGE} rows.", fix="Ask for the rest with `before`.")


def one_more(request: Any) -> Any:
    """Return the request for one row more, which shows whether there is a next page."""
    return replace(request, limit=request.limit + 1)


def cut(rows: tuple[Any, ...], limit: int) -> tuple[tuple[Any, ...], str | None]:
    """Return the page and the cursor of the next one (its `before`), None on the last page."""
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], cursor_of(rows[limit - 1])


def link_to(request: Request, cursor: str) -> str:
    others = [(key, value) for key, value in request.query_params.multi_items() if key != "before"]
    query = [*others, ("before", cursor)]
    return f'<{quote(request.scope["path"])}?{urlencode(query)}>; rel="next"'
