from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location

import pytest

from fleet.domain.event import Kind
from fleet.operations.catalogue import operations
from tests.docs.tree import TOP, files, name

SCRIPT = TOP / "scripts" / "reference_events.py"
KINDS = {str(kind) for kind in Kind}
STARTS = {kind.partition(".")[0] + "." for kind in KINDS}
DECLARED = "src/fleet/domain/event.py"
ENTRY = {"entry", "team"}  # what `keep` says of every entry
# Of these names there is an operation, too: what may take a kind, mypy holds to `Kind`.
SHARED = KINDS & {operation.name for operation in operations()}
MODULES = [path for path in files("src/fleet/*.py") if name(path) != DECLARED]


def written_out(source: str) -> list[tuple[int, str]]:
    """Kinds, and beginnings of kinds, that are written as text, with their lines."""
    texts = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    named = (KINDS - SHARED) | STARTS
    return [(text.lineno, text.value) for text in texts if text.value in named]


def compared(source: str) -> list[tuple[int, str]]:
    """Kinds that an event's `type` is compared with as text."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare | ast.Match):
            tested = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant)]
            if any(isinstance(n, ast.Attribute) and n.attr == "type" for n in ast.walk(node)):
                found += [(node.lineno, text) for text in tested if text in KINDS]
    return found


@pytest.fixture(scope="module")
def described():
    spec = spec_from_file_location("reference_events", SCRIPT)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.described()


def test_no_event_kind_is_written_as_text_outside_of_the_enum():
    found = [
        f"{name(path)}:{line} {text!r}"
        for path in MODULES
        for line, text in (*written_out(path.read_text()), *compared(path.read_text()))
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        'context.event("task.added", task.id)',
        'NAMES = {"run.started": "worker_spawned"}',
        'keep(context, entry, f"checkpoint.{status}")',
        'event.type.startswith("task.")',
        'if event.type in {"mail.read"}: pass',
        'match event.type:\n    case "chat.read": pass',
    ],
)
def test_the_gate_sees_a_kind_that_is_written_as_text(source):
    assert written_out(source) or compared(source)


def takes_a_kind(source: str) -> set[str]:
    """The functions of a module with a parameter for the kind of an event."""
    if not imports_kind(tree := ast.parse(source)):
        return set()
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        if arg.annotation and re.search(r"\bKind\b", ast.unparse(arg.annotation))
    }


def imports_kind(tree: ast.Module) -> bool:
    """Whether `Kind` is that of events: settings have another one."""
    return any(
        isinstance(node, ast.ImportFrom) and node.module == "fleet.domain.event"
        for node in ast.walk(tree)
    )


ONLY_READS = {"is_recorded"}


@cache
def emitters() -> set[str]:
    return {"Event"}.union(*(takes_a_kind(path.read_text()) for path in MODULES)) - ONLY_READS


def emitting_arguments(tree: ast.Module) -> list[ast.expr]:
    """What is handed to calls that make an event; a name stands for all that it was assigned."""
    handed = [
        arg
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in emitters()
        for arg in (*call.args, *(word.value for word in call.keywords if word.arg == "kind"))
    ]
    names = {n.id for arg in handed for n in ast.walk(arg) if isinstance(n, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.For) and node_value(
            node
        ):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            assigned = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
            handed += [node_value(node)] if assigned & names else []
    return handed


def node_value(node: ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.For) -> ast.expr | None:
    return node.iter if isinstance(node, ast.For) else node.value


def emitted(source: str) -> set[str]:
    """The names of the kinds that a module's calls can make an event of."""
    return {
        part.attr
        for arg in emitting_arguments(ast.parse(source))
        for part in ast.walk(arg)
        if isinstance(part, ast.Attribute) and ast.unparse(part.value) == "Kind"
    }


def test_every_kind_is_emitted():
    """By a call that makes an event: a kind that is only read, compared or listed never happens."""
    made = set().union(*(emitted(path.read_text()) for path in MODULES))
    assert sorted(set(Kind.__members__) - made) == []


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("context.event(Kind.A, task.id)", True),
        ("write_task(context, task, Kind.A if ended else Kind.B)", True),
        ("Event(kind=Kind.A, task=task.id)", True),
        ("KINDS = {1: Kind.A}\nkeep(context, entry, KINDS[state])", True),
        ("NAMES = {Kind.A: 'worker_spawned'}", False),
        ("if event.type == Kind.A: pass", False),
        ("is_recorded(store, run, Kind.A)", False),
    ],
)
def test_a_mention_of_a_kind_is_not_taken_for_an_event(source, seen):
    assert ("A" in emitted(source)) == seen


def misspelt(source: str) -> list[tuple[int, str]]:
    """Members that the enum does not have, and kinds that are made of text."""
    tree = ast.parse(source)
    if not imports_kind(tree):
        return []
    wrong = [
        (node.lineno, node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and ast.unparse(node.value) == "Kind"
        and not hasattr(Kind, node.attr)
    ]
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in {
            *(emitters() | ONLY_READS),
            "Kind",
        }:
            texts = [a for a in call.args if isinstance(a, ast.Constant | ast.JoinedStr)]
            wrong += [
                (call.lineno, ast.unparse(text))
                for text in texts
                if re.match(rf"f?['\"]({'|'.join(map(re.escape, STARTS))})", ast.unparse(text))
            ]
    return wrong


def test_no_kind_is_misspelt():
    wrong = [
        f"{name(path)}:{line} {text}"
        for path in files("src/fleet/*.py")
        for line, text in misspelt(path.read_text())
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "call",
    [
        "context.event(Kind.TASK_ADDDED, task.id)",
        'context.event("task.addded", task.id)',
        'Event("task.addded", task.id)',
        'keep(context, entry, f"task.{state}")',
        'Event(Kind("task.addded"), task.id)',
        "NAMES = {Kind.TASK_ADDDED: 1}",
        'is_recorded(store, run, "run.promted")',
    ],
)
def test_a_misspelt_kind_is_seen(call):
    assert len(misspelt(f"from fleet.domain.event import Kind, Event\n{call}")) == 1


def test_the_reference_of_events_is_what_the_code_says():
    done = subprocess.run(
        [sys.executable, SCRIPT, "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_reference_names_every_field_that_an_event_is_given(described):
    assert described.keys() == set(Kind)
    found = []
    for path in MODULES:
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and (kinds := kinds_in(call)):
                given = {word.arg for word in call.keywords} - {"run", "data", None}
                given |= ENTRY if ast.unparse(call.func) == "keep" else set()
                found += [
                    f"{name(path)}:{call.lineno} {kind}: {given - set(described[kind].data)}"
                    for kind in kinds
                    if given - set(described[kind].data)
                ]
    assert found == []


def kinds_in(call: ast.Call) -> list[Kind]:
    """Those that are handed to the call itself."""
    words = re.findall(r"(?<!\w)Kind\.(\w+)", " ".join(ast.unparse(arg) for arg in call.args))
    return [] if any(isinstance(arg, ast.Call) for arg in call.args) else [Kind[w] for w in words]
