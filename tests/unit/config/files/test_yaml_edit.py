import stat
import threading

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fleet.config.commands.set import SettingFiles, apply, parsed
from fleet.config.files.problems import Problems
from fleet.config.files.yaml_edit import drop, put, rendered
from fleet.config.files.yaml_read import load_text, plain
from fleet.config.keys.table import PROJECT, USER
from fleet.domain.errors import BadConfig, BadInput, FleetError, NotFound

FILE = """\
# Mine.
coder: claude   # the good one

run:
    attempts: 2  # twice
    # grace: 3
    backoff: 5

agents:
  planner:
    coder: claude
    prompt: |
      Plan.

      # not a comment
    tools:
    - Read   # always
    - Grep
workspace: {setup: [make], quick: no}  # flow
empty:
# the end
"""

EDITS = {
    "a value keeps the comment behind it": (
        "coder",
        "codex",
        ("coder: claude   #", "coder: codex   #"),
    ),
    "a nested value": ("run.attempts", 3, ("attempts: 2  #", "attempts: 3  #")),
    "a new key goes to the end of its section": (
        "run.time_limit",
        60,
        ("    backoff: 5\n", "    backoff: 5\n    time_limit: 60\n"),
    ),
    "a new key after a block of text": (
        "agents.planner.model",
        "m",
        ("    - Grep\n", "    - Grep\n    model: m\n"),
    ),
    "a block of text": (
        "agents.planner.prompt",
        "Plan well.",
        ("|\n      Plan.\n\n      # not a comment\n", "Plan well.\n"),
    ),
    "a block list": (
        "agents.planner.tools",
        ["Edit", "a: b"],
        ("- Read   # always\n    - Grep\n", '- Edit\n    - "a: b"\n'),
    ),
    "a block list emptied": (
        "agents.planner.tools",
        [],
        ("    - Read   # always\n    - Grep\n", "      []\n"),
    ),
    "a value in braces": ("workspace.quick", True, ("quick: no}", "quick: true}")),
    "a new key in braces": (
        "workspace.root",
        "~/t",
        ("quick: no}", "quick: no, root: ~/t}"),
    ),
    "a list in brackets": (
        "workspace.setup",
        ["a, b", "c"],
        ("[make]", '["a, b", c]'),
    ),
    "a section with nothing in it": ("empty.a.b", 1, ("empty:\n", "empty: {a: {b: 1}}\n")),
    "a new section goes to the end": (
        "store.url",
        "sqlite:///x",
        ("empty:\n", "empty:\nstore:\n  url: sqlite:///x\n"),
    ),
    "a new entry": (
        "agents.reviewer.coder",
        "codex",
        ("    - Grep\n", "    - Grep\n  reviewer:\n    coder: codex\n"),
    ),
}


@pytest.mark.parametrize("what", EDITS)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_only_the_value_changes_and_everything_else_stays_byte_for_byte(what, newline):
    path, value, (old, new) = EDITS[what]
    before = FILE.replace("\n", newline)
    after = put(before, [tuple(path.split("."))], value)
    assert FILE.count(old) == 1
    assert after == FILE.replace(old, new).replace("\n", newline)


@pytest.mark.parametrize(
    "text",
    ["", "\n", "# only a comment\n", "# no newline", "---\n", "\ufeff# mark\n", "{}\n", "{}"],
)
def test_a_file_with_nothing_in_it_gets_its_first_setting(text):
    after = put(text, [("run", "attempts")], 3)
    assert data(after) == {"run": {"attempts": 3}}
    assert after.startswith(text.rstrip("\n").rstrip("}")[:1])


def test_a_file_that_ends_without_a_newline_is_continued_on_a_new_line():
    assert put("a: 1", [("b",)], 2) == "a: 1\nb: 2\n"


def test_an_older_name_in_the_file_is_the_one_that_is_changed():
    paths = [("models", "m", "upstream"), ("models", "m", "ollama_model")]
    assert put("models: {m: {ollama_model: q}}", paths, "r") == "models: {m: {ollama_model: r}}"


def test_a_gateway_at_the_top_is_where_its_settings_go():
    paths = [("project", "gateway", "port"), ("gateway", "port")]
    assert put("gateway:\n  host: a\n", paths, 1) == "gateway:\n  host: a\n  port: 1\n"


def test_an_alias_can_be_replaced_without_touching_its_anchor():
    text = "a: &x one\nb: *x\n"
    assert put(text, [("b",)], "two") == "a: &x one\nb: two\n"


def test_a_merged_value_is_overridden_in_its_own_mapping():
    text = "x-b: &b {k: 1}\nm:\n  <<: *b\n"
    assert put(text, [("m", "k")], 2) == "x-b: &b {k: 1}\nm:\n  <<: *b\n  k: 2\n"


@pytest.mark.parametrize(
    "text", ["a: &x one\nb: *x\n", "a: &x {k: 1}\nb: *x\n", "a:\n  k: 1\n...\n# more\n"]
)
def test_a_change_that_would_reach_further_is_refused(text):
    path = ("a",) if "one" in text else ("a", "k")
    if "..." in text:
        assert data(put(text, [path], 5)) == {"a": {"k": 5}}
        return
    with pytest.raises(BadInput, match="cannot be changed on its own"):
        put(text, [path], "new")


def data(text):
    problems = Problems()
    item = load_text(text.removeprefix("\ufeff"), "f", problems)
    assert problems.all == []
    return None if item is None else plain(item)


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=40)
scalars = st.one_of(
    texts, st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)
)
values = st.one_of(scalars, st.lists(texts, max_size=4))


@settings(deadline=None)
@given(value=values)
@example(value="- a")
@example(value="a: b # c")
@example(value="'\"")
@example(value="null")
@example(value="2001-01-01")
@example(value="1_000")
@example(value="=")
@example(value="\u2028\x85\ufeff")
def test_a_rendered_value_reads_back_as_itself_in_any_place(value):
    written = rendered(value)
    assert "\n" not in written
    assert yaml.safe_load(f"k: {written}") == {"k": value}
    assert yaml.safe_load(f"{{k: {written}, l: 1}}") == {"k": value, "l": 1}
    assert yaml.safe_load(f"[{written}, 1]") == [value, 1]


names = st.text(st.sampled_from("abcdefg-_"), min_size=1, max_size=5).filter(
    lambda n: n[0] not in "-_"
)
trees = st.recursive(
    st.one_of(scalars, st.none(), st.lists(texts, max_size=3)),
    lambda below: st.dictionaries(names, below, max_size=4),
    max_leaves=12,
)
paths = st.lists(names, min_size=1, max_size=3).map(tuple)


def commented(text):
    """The text with a comment before every line that begins a key at the top, and at the end."""
    lines = text.splitlines(keepends=True)
    return "".join(f"# c\n{line}" if line[:1].isalpha() else line for line in lines) + "# c\n"


@settings(deadline=None)
@given(
    tree=st.dictionaries(names, trees, min_size=1, max_size=5),
    path=paths,
    value=values,
    flow=st.sampled_from([None, True, False]),
    width=st.sampled_from([20, 1000]),
)
def test_any_file_survives_any_change(tree, path, value, flow, width):
    before = yaml.safe_dump(tree, default_flow_style=flow, width=width, allow_unicode=True)
    if flow is False:
        before = commented(before)
    try:
        after = put(before, [path], value)
    except BadInput:
        return  # the file cannot be changed there alone: nothing was
    want = data(before)
    below = want
    for name in path[:-1]:
        if not isinstance(below.get(name), dict):
            below[name] = {}
        below = below[name]
    below[path[-1]] = value
    assert data(after) == want
    if flow is False:
        assert after.count("# c\n") == before.count("# c\n")


@settings(deadline=None)
@given(tree=st.dictionaries(names, trees, min_size=1, max_size=5), value=scalars)
def test_a_file_as_people_write_them_is_hardly_ever_refused(tree, value):
    before = yaml.safe_dump(tree, default_flow_style=False)
    after = put(before, [("zz", "new")], value)
    assert after.startswith(before)


@settings(deadline=None, max_examples=40)  # each writes to the disk
@given(text=texts)
@example(text="a 'b' \"c\" # d: e")
@example(text="")
def test_what_is_set_from_the_command_line_is_what_is_loaded(tmp_path_factory, text):
    home = tmp_path_factory.mktemp("home")
    context = SettingFiles(home, home, {"HOME": str(home)})
    file = home / "config.yaml"
    file.write_text("# mine\n")
    try:
        change = parsed(f"agents.rev.prompt={text}")
    except BadInput:
        assert not text.isprintable()
        return
    loaded = apply(
        [parsed("agents.rev.coder=codex"), change], file=file, layer=USER, context=context
    )
    assert loaded.values["agents.rev.prompt"] == text
    assert file.read_text(encoding="utf-8").startswith("# mine\n")


@pytest.fixture
def context(world):
    return SettingFiles(world.project, world.home, world.env)


BAD = [
    ("max_concurrent=0", "max_concurrent: needs a number from 1 to 1000, not 0."),
    ("max_concurrent=many", "needs a whole number"),
    ("max_concurent=5", "There is no setting 'max_concurent'."),
    ("run=5", "'run' is a section, not a setting."),
    ("nodes.n.tagz=a", "There is no setting 'nodes.n.tagz'."),
    ("max_concurrent", "'max_concurrent' is not a NAME=VALUE pair."),
    ("coder=cluade", "'cluade' is not a valid value."),
    ("workspace.setup=[a", "is not a list."),
    ("workspace.quick=maybe", "needs true or false"),
    ("nodes.n.endpoint=nope", "is not an http or https address"),
    ("nodes.a b.endpoint=http://h:1", "'a b' is not a safe name."),
    ("models.m.node=nowhere", "'nowhere' is not a node."),
    ("agents.x.model=m", "agents.x: has no `description`."),
]


@pytest.mark.parametrize(("assignment", "said"), BAD)
def test_a_bad_value_is_refused_and_changes_nothing(world, context, assignment, said):
    world.user("# mine\n")

    def change():
        changes = [parsed("team=red"), parsed(assignment)]
        apply(changes, file=world.user_file, layer=USER, context=context)

    with pytest.raises(FleetError) as caught:
        change()
    assert said in caught.value.message
    assert caught.value.exit_status == 2
    assert world.user_file.read_text() == "# mine\n"


def test_a_mistake_elsewhere_does_not_stop_it_from_being_put_right(world, context):
    world.user("max_concurrent: 0\nteam: '!'\n")
    result = apply([parsed("max_concurrent=3")], file=world.user_file, layer=USER, context=context)
    assert result is None
    assert world.user_file.read_text() == "max_concurrent: 3\nteam: '!'\n"


@pytest.mark.parametrize("text", ["a: [\n", "a: b: c\n", "[" * 500, "- " * 500, "a: 1\na: 2\n"])
def test_a_file_that_is_not_yaml_is_named_and_left_alone(world, context, text):
    world.user(text)
    with pytest.raises(BadConfig) as caught:
        apply([parsed("team=b")], file=world.user_file, layer=USER, context=context)
    assert str(world.user_file) in caught.value.message
    assert world.user_file.read_text() == text


def test_a_link_is_followed_and_the_files_mode_is_kept(world, context, tmp_path):
    real = tmp_path / "dotfiles.yaml"
    real.write_text("team: a\n")
    real.chmod(0o640)
    world.user_file.symlink_to(real)
    apply([parsed("team=b")], file=world.user_file, layer=USER, context=context)
    assert world.user_file.is_symlink()
    assert real.read_text() == "team: b\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_a_new_file_of_your_own_is_private(world, context):
    apply([parsed("team=b")], file=world.user_file, layer=USER, context=context)
    assert stat.S_IMODE(world.user_file.stat().st_mode) == 0o600


def test_a_setting_that_is_not_for_projects_is_refused(world, context):
    with pytest.raises(BadInput, match="cannot be set in a project's file"):
        apply([parsed("max_concurrent=3")], file=world.file, layer=PROJECT, context=context)
    assert not world.file.exists()


def test_writers_at_the_same_time_lose_nothing(world, context):
    def write(number):
        change = parsed(f"agents.a{number}.coder=codex")
        apply([change], file=world.user_file, layer=USER, context=context)

    writers = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(world.load().fleet.agents) == [f"a{n}" for n in range(8)]
    assert [p.name for p in world.home.iterdir() if p.name.startswith(".config.yaml")] == []


DROPS = {
    "a value goes with its line": ("coder", "coder: claude   # the good one\n"),
    "a nested value": ("run.attempts", "    attempts: 2  # twice\n"),
    "a block of text": (
        "agents.planner.prompt",
        "    prompt: |\n      Plan.\n\n      # not a comment\n",
    ),
    "a list": ("agents.planner.tools", "    tools:\n    - Read   # always\n    - Grep\n"),
    "an empty one": ("empty", "empty:\n"),
}


@pytest.mark.parametrize("what", DROPS)
def test_what_is_dropped_goes_and_everything_else_stays_byte_for_byte(what):
    path, lines = DROPS[what]
    assert FILE.count(lines) == 1
    assert drop(FILE, [tuple(path.split("."))]) == FILE.replace(lines, "")


def test_a_section_that_is_left_empty_goes_too():
    text = "team: red\ngateway:\n  ports:\n    first: 1\n# end\n"
    assert drop(text, [("gateway", "ports", "first")]) == "team: red\n# end\n"


def test_what_is_not_there_cannot_be_dropped_and_what_is_in_a_line_with_others_is_refused():
    with pytest.raises(NotFound, match="team is not set in mine"):
        drop("a: 1\n", [("team",)], name="mine")
    with pytest.raises(BadInput, match="cannot be changed on its own"):
        drop("run: {a: 1, b: 2}\n", [("run", "a")])
