from __future__ import annotations

import ast
import re
import subprocess
import sys
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


def test_every_kind_is_emitted():
    text = "\n".join(path.read_text() for path in MODULES)
    assert [kind.name for kind in Kind if f"Kind.{kind.name}" not in text] == []


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
