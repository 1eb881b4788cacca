from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.docs.tree import SOURCE, TOP, files, name

MODULES = [path for path in files("src/fleet/*.py") if path.stat().st_size]
MAY_PRINT = {
    "src/fleet/cli/terminal/render.py",
    "src/fleet/cli/terminal/output.py",  # the streams themselves
    # programs of their own, whose stdout is read
    "src/fleet/testing/scripted.py",
    "src/fleet/testing/model_server.py",
    "src/fleet/adapters/coders/opencode/bridge.py",
    "src/fleet/adapters/coders/opencode/copy_session.py",
    "src/fleet/adapters/evals/run_tests.py",
}
PRINTS = {
    *("print", "click.echo", "click.secho"),
    *("sys.stdout.write", "sys.stderr.write", "sys.stdout.buffer.write"),
}


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def calls(path: Path):
    return (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call))


def test_only_the_renderer_prints():
    found = [
        f"{name(path)}:{call.lineno}"
        for path in MODULES
        if name(path) not in MAY_PRINT
        for call in calls(path)
        if ast.unparse(call.func) in PRINTS
    ]
    assert found == []


def imported(path: Path) -> set[str]:
    """The top-level packages that a module imports."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add("fleet" if node.level else (node.module or "").split(".")[0])
    return found


def test_the_domain_needs_nothing_but_the_standard_library():
    known = {"fleet", *sys.stdlib_module_names}
    found = {name(p): imported(p) - known for p in MODULES if "fleet/domain/" in name(p)}
    assert {path: names for path, names in found.items() if names} == {}


VAGUE = {"asked", "found", "held", "place", "said", "shown", "told"}  # each meant 4 to 8 things
FILLERS = {"all", "it", "more", "one", "ones", "other", "others", "some", "the", "them", "things"}
STILL_VAGUE = {  # types and their members, many of them keys of JSON: may leave, none may join
    "adapters/beads.py": "held",
    "adapters/git/set_up/port_blocks.py": "held",
    "adapters/git/remove.py": "said",
    "app/workspaces/lost_rows.py": "told",
    "app/workspaces/manage.py": "said",
    "cli/agents/calls.py": "said",
    "config/bind.py": "place",
    "config/commands/show.py": "Shown place",
    "config/files/problems.py": "place",
    "config/layers.py": "place",
    "config/loader.py": "asked",
    "config/trust.py": "asked",
    "domain/findings.py": "said",
    "domain/landing/landing.py": "HELD",
    "domain/nodes/inventory.py": "held",
    "domain/nodes/line.py": "place",
    "domain/placement/candidates.py": "held",
    "domain/placement/solver.py": "place",
    "domain/run.py": "ASKED",
    "domain/transcript.py": "Said",
    "ports/tracker.py": "held",
    "server/live/frames.py": "said",
    "server/live/stream.py": "said",
    "testing/fake_node/node.py": "asked held",
    "testing/fake_node/work.py": "held",
    "operations/compute/nodes.py": "held",  # a key of `fleet nodes --json`
    "testing/fakes.py": "told",
    "testing/models/script.py": "Asked said",
}


def vague_names(tree: ast.Module) -> set[str]:
    """Names of the list that a module gives to parameters, variables, members or types."""
    named: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=word, ctx=ast.Store()) | ast.Attribute(attr=word, ctx=ast.Store()):
                named.add(word)
            case ast.arg(arg=word) | ast.MatchAs(name=str(word)) | ast.MatchStar(name=str(word)):
                named.add(word)
            case ast.FunctionDef(name=word) | ast.AsyncFunctionDef(name=word):
                named.add(word)
            case ast.ClassDef(name=word) | ast.ExceptHandler(name=str(word)):
                named.add(word)
            case ast.alias(asname=str(word)):
                named.add(word)
    return {word for word in named if is_vague(word)}


def is_vague(name: str) -> bool:
    """`found_words` says which; `found`, `all_found` and `FoundOnes` do not."""
    words = {w.lower() for w in re.findall("[A-Z]?[a-z]+|[A-Z]+", name)}
    return bool(words & VAGUE) and words <= VAGUE | FILLERS


@pytest.mark.parametrize(
    "text",
    [
        "found = 1",
        "def f(said): ...",
        "[1 for place in ()]",
        "self._held = 1",
        "class Said: ...",
        "async def told(): ...",
        "match 1:\n    case [*asked]: ...",
        "with f() as shown: ...",
        "if (found := 1): ...",
        "from a import b as told",
        "all_found = []",
        "class SaidOnes: ...",
    ],
)
def test_a_vague_name_is_seen_wherever_it_is_given(text: str):
    assert len(vague_names(ast.parse(text))) == 1


def test_a_compound_that_says_the_thing_passes():
    assert vague_names(ast.parse("found_words = is_held = NOT_FOUND = TaskPlace = 1")) == set()


def test_a_name_says_the_thing():
    named = {
        str(p.relative_to(SOURCE)): vague_names(tree_of(p)) | VAGUE.intersection([p.stem])
        for p in MODULES
    }
    assert {
        path: " ".join(sorted(words)) for path, words in named.items() if words
    } == STILL_VAGUE, "Say the thing (message, run, path, at), not that it was said or found"


CLOCKS = ("now", "clock", "time.", "boot", "monotonic")  # what makes a value the time
TIMES = ("int", "float", "float | None", "datetime", "Callable[[], int]")
NOT_THE_TIME = {
    "cli/landing/best.py": "the option `--now`",
    "cli/landing/land.py": "the option `--now`",
    "cli/team/checkpoint.py": "the option `--now`: where the work stands",
    "domain/run.py": "a field of a checkpoint, as users write it: where the work stands",
    "server/claude_fleet/bodies.py": "claude-fleet's word",
    "server/claude_fleet/reply_types.py": "claude-fleet's word",
}


def is_now(target: ast.AST) -> bool:
    return getattr(target, "id", getattr(target, "attr", "")) == "now"


def may_be_the_time(value: ast.expr) -> bool:
    number = isinstance(value, ast.Constant) and isinstance(value.value, int | float)
    return number or any(word in ast.unparse(value).lower() for word in CLOCKS)


def says_now_of_another_thing(tree: ast.Module) -> bool:
    """Whether `now` is the name of something that does not look like the time."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[*targets], value=value) if any(map(is_now, targets)):
                if not may_be_the_time(value):
                    return True
            case ast.NamedExpr(target=target, value=value) if is_now(target):
                if not may_be_the_time(value):
                    return True
            case (
                ast.arg(arg="now", annotation=ast.expr() as kind)
                | ast.AnnAssign(
                    target=ast.Name(id="now") | ast.Attribute(attr="now"), annotation=kind
                )
            ):
                if ast.unparse(kind) not in TIMES:
                    return True
            case ast.Lambda(args=arguments):  # it has no types, so nothing says that it is the time
                if any(isinstance(a, ast.arg) and a.arg == "now" for a in ast.walk(arguments)):
                    return True
            case ast.comprehension(target=target) | ast.For(target=target):
                if any(map(is_now, ast.walk(target))):
                    return True
    return False


@pytest.mark.parametrize(
    "text",
    [
        "now = store.task(1)",
        "self.now = store.task(1)",
        "self.now: Screen = screen",
        "while (now := f()): ...",
        "def f(now: Screen): ...",
        "f(lambda now: now.text)",
        "[now for now in ()]",
        "for a, now in (): ...",
    ],
)
def test_a_now_that_is_not_the_time_is_seen(text: str):
    assert says_now_of_another_thing(ast.parse(text))


@pytest.mark.parametrize(
    "text", ["now = clock.now()", "self.now = 0", "self.now = now", "def f(now: int): ..."]
)
def test_a_now_that_is_the_time_passes(text: str):
    assert not says_now_of_another_thing(ast.parse(text))


def test_now_is_the_time():
    named = {str(p.relative_to(SOURCE)) for p in MODULES if says_now_of_another_thing(tree_of(p))}
    assert named == set(NOT_THE_TIME), "Say the thing: `now` is the current time"


BARE = {"DEADLINE", "EVERY", "LIMIT", "LONGEST", "MAX", "MOST", "PATIENCE"}  # of what?
STILL_BARE = {  # may leave, none may join
    "adapters/relay/request.py": "LONGEST",
    "operations/landing/output.py": "LONGEST",
    "server/live/transcripts.py": "EVERY",
    "server/live/watches.py": "EVERY",
    "server/writer.py": "LONGEST",
}


def bare_bounds(tree: ast.Module) -> set[str]:
    """The constants of a module that say that they bound something, and not what."""
    return {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for part in (node.targets if isinstance(node, ast.Assign) else [node.target])
        for target in ast.walk(part)
        if isinstance(target, ast.Name) and target.id.strip("_") in BARE
    }


@pytest.mark.parametrize(
    "text", ["MOST = 5", "_LIMIT: int = 5", "A, PATIENCE = 1, 2", "LONGEST = 9"]
)
def test_a_bound_without_a_thing_is_seen(text: str):
    assert len(bare_bounds(ast.parse(text))) == 1


def test_a_bound_is_named_for_what_it_bounds():
    """`MAX_LISTED`, `READ_SECONDS`; not `MOST` or `LONGEST`, which two dozen modules had each."""
    bare = {str(p.relative_to(SOURCE)): " ".join(bare_bounds(tree_of(p))) for p in MODULES}
    assert {path: names for path, names in bare.items() if names} == STILL_BARE


PROTOCOL = {"Protocol", "typing.Protocol"}
NO_PORT = {
    "adapters/stores/sql.py: Dialect": "what differs between the two databases of one adapter",
    "adapters/stores/sql.py: Reading": "what differs between the two databases of one adapter",
    "adapters/stores/sql.py: Holder": "what differs between the two databases of one adapter",
    "adapters/assistants/mcp_settings.py: Format": "the syntaxes of one adapter's files",
    "testing/models/dialect.py: ProviderDialect": "the APIs that one test server speaks",
    "testing/fake_node/work.py: _Node": "breaks a circle between two halves of one fake",
}


def protocols(path: Path) -> list[str]:
    return [
        f"{path.relative_to(SOURCE)}: {node.name}"
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef)
        and any(ast.unparse(base).split("[")[0] in PROTOCOL for base in node.bases)
    ]


def test_every_protocol_is_in_the_ports_unless_it_is_inside_one_adapter():
    found = {p for path in MODULES if "fleet/ports/" not in name(path) for p in protocols(path)}
    assert found == set(NO_PORT)


def test_the_ports_package_has_every_name_of_its_modules():
    import fleet.ports

    for path in MODULES:
        if path.parent.name == "ports" and path.name != "__init__.py":
            declared = [n.name for n in tree_of(path).body if isinstance(n, ast.ClassDef)]
            found = set(fleet.ports.NAMES[path.stem].split())
            assert found >= set(declared), path
            assert {n for n in found if not hasattr(fleet.ports, n)} == set(), path


SMALL = {  # why a module of under 40 lines with one importer is one; all of fleet.ports are
    "fleet.__main__": "Python runs it by this name",
    "fleet.adapters.assistants.env_file": "one file that `fleet generate` writes",
    "fleet.adapters.assistants.mcp_file": "one file that `fleet generate` writes",
    "fleet.adapters.git.clone": "how git says which project it is; alone in git to read a forge's address",
    "fleet.adapters.home.bd_program": "a program of its own, on the PATH of every run",
    "fleet.cli.bd.prime": "a page of text that one command prints",
    "fleet.domain.nodes.model_sizes": "a rule with tests of its own; no other rule is about it",
    "fleet.server.claude_fleet.mount": "the one door to that fenced folder",
    "fleet.testing.clock": "a fake that users import by this name",
}


def module(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


def uses(path: Path, modules: set[str]) -> Counter[str]:
    """The modules of ours that this one imports. One in a table such as that of commands
    (`module:function`) is found through the table, and counts twice."""
    found: Counter[str] = Counter()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & modules
            found |= Counter(inner or {node.module})
        elif isinstance(node, ast.Import):
            found |= Counter({alias.name for alias in node.names})
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= Counter({node.value.split(":")[0]: 2})
    return found


def test_a_small_module_with_one_importer_has_a_reason_to_be_one():
    known = {module(path): path for path in MODULES}
    used: Counter[str] = Counter()
    for path in MODULES:
        used.update({n: c for n, c in uses(path, set(known)).items() if n != module(path)})
    small = {
        name
        for name, path in known.items()
        if path.name != "__init__.py"
        and not name.startswith("fleet.ports.")
        and len(path.read_text("utf-8").splitlines()) < 40
        and used[name] <= 1
    }
    assert small == set(SMALL)


THIS_MACHINE = {
    "supervisor/run.py": "starts, stops and is the supervisor of this machine",
    "supervisor/status.py": "says what the supervisor of this machine does",
    "server/serve.py": "is the server of this machine",
    "server/ui.py": "starts the server of this machine",
    "server/health.py": "asks the server of this home by its key",
    "compute/nodes.py": "asks nodes by this machine's settings, with no operation in between",
    "compute/benchmark.py": "as nodes.py",
    "compute/recommend.py": "as nodes.py",
    "compute/eval.py": "as nodes.py",
    "compute/doctor.py": "examines this machine",
    "setup/agents.py": "says which programs and nodes this machine has",
    "setup/update.py": "replaces the program on this machine",
    "hosts/join.py": "makes this very machine take tasks, by settings that it has just written",
    "hosts/add.py": "sends the program of this machine to another one, with its store",
    "setup/notify.py": "shows a notice on this machine",
    "demo/dashboard.py": "as queue.py",
    "demo/queue.py": "plays a whole fleet in a scratch home",
    "demo/scratch.py": "as queue.py",
}


def test_a_command_asks_its_client_and_reaches_into_no_app():
    """What a command needs is on `Client`, so that it works for a server elsewhere, too."""
    folder = SOURCE / "cli"
    found = {
        str(path.relative_to(folder))
        for path in MODULES
        if path.is_relative_to(folder)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute) and node.attr in {"app", "_app"}
    }
    assert found == set(THIS_MACHINE)


KNOW_STORES = {"adapters", "config"}


def test_code_asks_what_a_store_can_do_and_not_what_it_is_called():
    """A new kind of store is its module and its row in `config/stores.py`."""
    asked = [
        f"{path.relative_to(SOURCE)}:{call.lineno}"
        for path in MODULES
        if path.relative_to(SOURCE).parts[0] not in KNOW_STORES
        for call in calls(path)
        if ast.unparse(call.func).endswith((".startswith", ".removeprefix"))
        and re.search("sqlite|postgres", "".join(map(ast.unparse, call.args)))
    ]
    asked += [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in MODULES
        if path.relative_to(SOURCE).parts[0] not in KNOW_STORES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.IfExp | ast.Compare)
        and re.search("['\"](sqlite|postgres)", ast.unparse(node))
    ]
    assert asked == []


NODE_KINDS_ALONE = {"vllm", "lmstudio", "llamacpp", "openrouter"}  # the others are wires, too


def compared(tree: ast.Module) -> set[str]:
    """The texts with which a module compares something."""
    return {
        part.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare | ast.MatchValue)
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    }


def test_code_reads_the_row_of_a_node_kind_and_does_not_ask_for_its_name():
    """A new kind of node is its row in `domain/nodes/kinds.py`, and its name in the settings."""
    asking = {str(p.relative_to(SOURCE)): compared(tree_of(p)) & NODE_KINDS_ALONE for p in MODULES}
    assert {path: kinds for path, kinds in asking.items() if kinds} == {}


MAX_FIELDS = 15
MANY_FIELDS = {  # why a type has more: may leave, none may join
    "domain/task.py: Task": "its fields are keys of JSON in every store and on the wire",
    "domain/transcript.py: Conversation": "a fold over the transcript: what was heard so far",
    "operations/compat/issues.py: Issue": "bd's own columns",
    "operations/tasks/at_work.py: AgentRow": "the columns of `fleet list`",
    "server/http/app.py: Server": "the parts of the server, put together once, in `make`",
    "config/settings.py: Settings": "the groups of settings, each with its own type",
    "operations/landing/landing.py: LandingRow": "a row of a list that clients read field by field",
    "operations/catalogue.py: Context": "what handlers may use, put together once, in `app`",
    "operations/compute/nodes.py: NodeRow": "the keys of `fleet nodes --json`",
    "operations/compute/traces.py: TraceRow": "the keys of `fleet trace --json`",
    "operations/tasks/rows.py: TaskRow": "a row of a list that clients read field by field",
    "supervisor/parts.py: Parts": "the parts of the supervisor, put together once",
    "testing/fake_node/manner.py: Manner": "a knob for each way in which a fake node behaves",
}


def fields_of(node: ast.ClassDef) -> int:
    return sum(
        isinstance(part, ast.AnnAssign) and "ClassVar" not in ast.unparse(part.annotation)
        for part in node.body
    )


def test_a_type_has_at_most_15_fields():
    """Group those that belong together; in JSON a group may stay flat: see `FLAT`."""
    many = {
        f"{path.relative_to(SOURCE)}: {node.name}"
        for path in MODULES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef) and fields_of(node) > MAX_FIELDS
    }
    assert many == set(MANY_FIELDS)


SAME_NAME = {
    "Event": "`fleet.api` shows events to programs of users, as plain values",
    "Fleet": "`fleet.api.Fleet` is what programs of users connect to",
    "Say": "a script of a fake model says its steps as verbs: `Say`, `Call`, `Wait`",
    "Wait": "as `Say`",
    # the second is private to one module: may leave, none may join
    "Gate": "of `operations/landing/output.py`",
    "Node": "of `testing/fake_node/work.py`: what it needs of a fake node",
    "Run": "of `adapters/relay/forward.py`",
    "Waiting": "of `adapters/relay/line.py`",
}


def test_two_classes_do_not_share_a_name():
    """Whoever searches for a name finds the one thing that it stands for."""
    names = Counter(
        node.name.strip("_")
        for path in MODULES
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef)
    )
    assert {name for name, count in names.items() if count > 1} == set(SAME_NAME)


CAMEL = re.compile(r"\b[a-z]+(?:[A-Z][a-z0-9]*)+\b")
NOT_THEIRS = {"server/mcp/tool_steps.py: workingDir", "server/mcp/tool_table.py: workingDir"}


def camel_words(path: Path) -> set[str]:
    """The words in camel case in its texts, and its annotated fields as claude-fleet spells them."""
    words: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words |= set(CAMEL.findall(node.value))
        elif isinstance(node, ast.AnnAssign) and "_" in (field := ast.unparse(node.target)):
            words.add(re.sub(r"_([a-z])", lambda m: m[1].upper(), field))
    return words


def test_claude_fleets_field_names_stay_behind_the_fence():
    """But for an MCP tool of ours that happens to have a parameter of that name."""
    fence = SOURCE / "server" / "claude_fleet"
    theirs = {word for path in fence.glob("*.py") for word in camel_words(path)}
    assert {"chatId", "toHandle", "messageType"} <= theirs
    spoken = {
        f"{path.relative_to(SOURCE)}: {word}"
        for path in MODULES
        if path.is_relative_to(SOURCE / "server") and not path.is_relative_to(fence)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for word in CAMEL.findall(node.value)
        if word in theirs
    }
    assert spoken == NOT_THEIRS


def test_no_folder_holds_more_than_22_files():
    """A folder is read like a page: over about twenty names nobody looks at each."""
    found = Counter(name(p.parent) for p in files("src/*") if p.name != "__init__.py")
    assert {folder: count for folder, count in found.items() if count > 22} == {}


def test_a_test_waits_with_the_limit_that_all_share():
    """One of its own is too short for a busy machine sooner or later."""
    own = re.compile(r"monotonic\(\) \+ [0-9]|\.(?:wait|join|communicate)\((?:timeout=)?[1-9]\d*\)")
    elsewhere = ("tests/transcripts/", "tests/real/", "tests/warm.py")  # the last is a program
    tests = [p for p in files("tests/*.py") if not name(p).startswith(elsewhere)]
    found = [
        f"{name(path)}:{number}"
        for path in tests
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if own.search(line)
    ]
    assert found == []


MAY_SLEEP = {  # why: no fact says it
    "chaos/test_full_disk.py: test_a_disk_with_little_room_when_a_keeper_starts_spoils_none_that_"
    "starts_later": "Python tries to write down what it compiled, and says nothing when it cannot",
    "chaos/test_landing_kills.py: once": "a kill at any moment",
    "chaos/test_two_supervisors.py: test_a_host_that_was_killed_and_came_back_in_time_keeps_its_"
    "runs": "the part of a lease for which it was gone",
    "contract/test_git_committing.py: test_it_waits_for_whoever_else_changes_the_repository": (
        "in which it would be done, if it did not wait"
    ),
    "contract/test_keeper_processes.py: test_a_keeper_that_waits_uses_next_to_nothing": (
        "the second for which its CPU time is measured"
    ),
    "e2e/test_trace.py: test_a_log_is_followed_through_rotation_and_truncation": (
        "in which half a line would be shown, and an empty file seen"
    ),
    "integration/test_hostile_time.py: test_a_second_request_on_a_line_has_its_time_too": (
        "longer than a request may take: a line may be idle for longer"
    ),
}


def sleepers(tree: ast.AST, function: str = "", *, loops: bool = False) -> set[str]:
    """The functions that sleep outside of a loop, in which one waits for a fact."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"time.sleep", "sleep"}:
            found |= set() if loops else {function}
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found |= sleepers(node, node.name)
        else:
            is_loop = isinstance(node, ast.While | ast.For | ast.AsyncFor | ast.Lambda)
            found |= sleepers(node, function, loops=loops or is_loop)
    return found


def test_a_test_waits_for_a_fact_and_not_for_a_time():
    tests = [
        p for p in files("tests/*.py") if p.name.startswith("test_") and "/real/" not in name(p)
    ]
    asleep = {
        f"{name(path).removeprefix('tests/')}: {function}"
        for path in tests
        for function in sleepers(tree_of(path))
    }
    assert asleep == set(MAY_SLEEP)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("def test_x():\n    time.sleep(1)\n    assert 1", True),
        ("def test_x():\n    with a:\n        sleep(1)", True),
        ("def test_x():\n    while not a:\n        time.sleep(1)", False),
        ("def test_x():\n    f(lambda: time.sleep(1))", False),
    ],
)
def test_a_sleep_before_an_assertion_is_seen(text, seen):
    assert sleepers(ast.parse(text)) == ({"test_x"} if seen else set())


def test_no_function_is_over_60_lines():
    long = []
    for path in MODULES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                long += [f"{name(path)}: {node.name}, {lines} lines"] if lines > 60 else []
    assert long == []


BREACHES = {
    "the domain reaches for a port": ("domain/errors.py", "import fleet.ports"),
    "the domain reads the clock": ("domain/errors.py", "import time"),
    "the domain needs a library": ("domain/errors.py", "import click"),
    "a port knows an adapter": ("ports/store.py", "import fleet.adapters"),
    "an operation knows an adapter": ("operations/__init__.py", "import fleet.adapters.stores"),
    "the supervisor chooses an adapter": ("supervisor/__init__.py", "import fleet.adapters.git"),
    "the supervisor knows the command line": ("supervisor/__init__.py", "import fleet.cli"),
    "the command line chooses an adapter": ("cli/__init__.py", "import fleet.adapters.coders"),
    "the server's own paths know claude-fleet's": (
        "server/http/app.py",
        "import fleet.server.claude_fleet.paths",
    ),
    "events know claude-fleet's names": (
        "server/live/frames.py",
        "import fleet.server.claude_fleet.frames",
    ),
    "a command of ours is bd's": ("cli/tasks/tasks.py", "import fleet.cli.bd.update"),
    "a command of ours needs bd's words": (
        "cli/terminal/completion.py",
        "import fleet.operations.compat.states",
    ),
    "an operation of ours is made of bd's": (
        "operations/tasks/show.py",
        "import fleet.operations.compat.issues",
    ),
    "a module is in no layer": ("stray.py", ""),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    place = tmp_path_factory.mktemp("contracts")
    shutil.copytree(SOURCE, place / "fleet", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(TOP / ".importlinter", place)
    return place


@pytest.mark.parametrize("breach", BREACHES)
def test_the_import_contracts_refuse_it_when(copy, breach):
    where, line = BREACHES[breach]
    file = copy / "fleet" / where
    module = f"fleet/{where}".removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    before = file.read_text() if file.exists() else None
    file.write_text(f"{before or ''}\n{line}\n")
    try:
        done = lint_imports(copy)
    finally:
        file.unlink() if before is None else file.write_text(before)
    assert done.returncode == 1, done.stdout
    target = line.removeprefix("import ")
    assert (f"{module} -> {target}" if target else module) in done.stdout, done.stdout


def lint_imports(place: Path) -> subprocess.CompletedProcess[str]:
    # With PYTHONPATH the copy is found before the installed package.
    return subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache", "--no-logo"],
        cwd=place,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(place)},
        capture_output=True,
        text=True,
        check=False,
    )
