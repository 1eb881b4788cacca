"""`fleet tasks --tree` and `fleet tasks --export`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.cli.tasks.views import PROJECT, elapsed, project_names, task_status
from fleet.cli.terminal.render import Cell, Column, Raw, Result, Table
from fleet.domain.data import NamedTuple
from fleet.domain.message import order_of
from fleet.operations.shared.names import MAX_ROWS, PAGE
from fleet.operations.tasks.graph import GraphTasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from fleet.client import Client
    from fleet.operations.tasks.graph import TaskNode
    from fleet.operations.tasks.list import ListTasks
    from fleet.operations.tasks.rows import TaskRow

    Notes = Callable[[Sequence[TaskRow]], tuple[str, ...]]

DEEPEST = 12  # levels of indentation: deeper ones would leave no room for their titles


def show_export(client: Client, listed: ListTasks) -> Result:
    nodes = _nodes(client, listed, whole=True)
    return _exported(sorted(nodes.values(), key=lambda node: order_of(node.id)))


def show_tree(client: Client, listed: ListTasks, empty: Callable[[], str], notes: Notes) -> Result:
    """`empty`: what to say when there is none; `notes`: what to say about those that are there."""
    from fleet.cli.tasks.tasks import cut

    most = listed.limit
    newest = list(
        _nodes(client, replace(listed, limit=min(most + 1, MAX_ROWS)), whole=False).values()
    )
    nodes = {node.id: node for node in newest[:most]}
    words = cut(newest, most) + notes([node.task for node in nodes.values()])
    while missing := sorted({n.parent for n in nodes.values()} - nodes.keys() - {""}):
        parents = client.call(GraphTasks(tasks=tuple(missing[:PAGE])))
        nodes |= {node.id: node for node in parents}
        if not parents:  # of another team
            break
    data = [_row(node) for node in in_order(nodes)]
    view = tree_view(nodes, client.now(), empty="" if nodes else empty())
    if not listed.project:
        view = _with_projects(view, in_order(nodes))
    return Result("task_tree", data, view, notes=words)


def _nodes(client: Client, listed: ListTasks, *, whole: bool) -> dict[str, TaskNode]:
    request = GraphTasks(
        listed.project, listed.team, listed.all, listed.statuses, limit=listed.limit, whole=whole
    )
    return {node.id: node for node in client.call(request)}


def _exported(nodes: Sequence[TaskNode]) -> Result:
    from fleet.cli.tasks.plan import export

    text, left_out = export(nodes)
    names = ", ".join(left_out[:10]) + (", …" if len(left_out) > 10 else "")
    note = f"Dependencies on tasks that are not in this list were left out: {names}."
    return Result("export", {"yaml": text, "left_out": left_out}, Raw(text), (note,) * bool(names))


def _row(node: TaskNode) -> dict[str, object]:
    return {
        "task": node.task,
        "parent": node.parent or None,
        "after": node.after,
        "unmet": node.unmet,
    }


class Branch(NamedTuple):
    """`rails`: for each level above, whether more come below; its own level is the last."""

    node: TaskNode
    rails: tuple[bool, ...]


def in_order(nodes: Mapping[str, TaskNode]) -> list[TaskNode]:
    return [branch.node for branch in branches(nodes)]


def branches(nodes: Mapping[str, TaskNode]) -> Iterator[Branch]:
    """Each below its parent, or below the last task that it waits for; each level oldest first."""
    below: dict[str, list[TaskNode]] = {}
    for node in sorted(nodes.values(), key=lambda node: order_of(node.id)):
        below.setdefault(_above(node, nodes), []).append(node)
    stack = [Branch(node, ()) for node in reversed(below.get("", []))]
    while stack:
        branch = stack.pop()
        yield branch
        children = below.get(branch.node.id, [])
        last = len(children) - 1
        stack += [
            Branch(child, (*branch.rails, n < last))
            for n, child in reversed(list(enumerate(children)))
        ]


def _above(node: TaskNode, nodes: Mapping[str, TaskNode]) -> str:
    """Only what it waits for of its own level: children stay with their parent."""
    level = [nodes[i] for i in node.after if i in nodes and nodes[i].parent == node.parent]
    if level:
        return max(level, key=lambda need: order_of(need.id)).id
    return node.parent if node.parent in nodes else ""


def tree_view(nodes: Mapping[str, TaskNode], now: int, *, empty: str = "No tasks.") -> Table:
    columns = (
        Column("title", flexible=True, least=16, wants=30),
        "task",
        "status",
        Column("waits for", flexible=True, spare=1),
        Column("elapsed", right=True, spare=3),
        Column("coder", spare=2),
    )
    rows = [
        (
            f"{_lines(branch.rails)}{branch.node.task.title}",
            branch.node.id,
            task_status(branch.node.task, now),
            ", ".join(branch.node.unmet) or None,
            elapsed(branch.node.task, now),
            Cell(branch.node.task.coder, "dim") if not branch.node.join else None,
        )
        for branch in branches(nodes)
    ]
    return Table(columns, rows, empty=empty)


def _with_projects(view: Table, nodes: Sequence[TaskNode]) -> Table:
    names = project_names(node.task.project for node in nodes)
    rows = [
        [*row[:2], names.get(node.task.project), *row[2:]]
        for row, node in zip(view.rows, nodes, strict=True)
    ]
    return view._replace(columns=[*view.columns[:2], PROJECT, *view.columns[2:]], rows=rows)


def _lines(rails: Sequence[bool]) -> str:
    if not rails:
        return ""
    above = "".join("│  " if more else "   " for more in rails[:-1][:DEEPEST])
    return above + ("├─ " if rails[-1] else "└─ ")
