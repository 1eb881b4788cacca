import os
import subprocess
import sys

import pytest

from fleet.config import home, load
from fleet.domain.errors import BadInput


def test_a_later_layer_wins(world):
    world.user("coder: codex\nmodel: a\nteam: user\nrun: {attempts: 4, grace: 1}\n")
    world.fleet("model: b\nteam: project\nrun: {attempts: 5}\n")
    loaded = world.load(env={"FLEET_TEAM": "environment"}, flags={"run.attempts": 6})
    settings = loaded.settings
    assert (settings.coder, settings.model, settings.team) == ("codex", "b", "environment")
    assert (settings.run.attempts, settings.run.grace) == (6, 1)
    assert settings.run.backoff == 10
    user = f"{world.user_file}:1"
    found = {
        p: str(loaded.origins[p]) for p in ("coder", "model", "team", "run.attempts", "run.backoff")
    }
    assert found == {
        "coder": user,
        "model": "fleet.yaml:1",
        "team": "FLEET_TEAM",
        "run.attempts": "flag run.attempts",
        "run.backoff": "default",
    }


def test_mappings_merge_by_key_and_lists_replace(world):
    world.user(
        "nodes:\n  mine: {endpoint: 'http://mine:1', tags: [a, b]}\n"
        "models:\n  m: {servings: {mine: q}}\n"
    )
    world.fleet(
        "nodes:\n  mine: {tags: [c]}\n  ours: {endpoint: 'http://ours:1'}\n"
        "models:\n  m: {servings: {ours: r}}\n"
    )
    fleet = world.load().fleet
    assert fleet.nodes["mine"].endpoint == "http://mine:1"
    assert fleet.nodes["mine"].tags == ("c",)
    assert [(s.node.name, s.upstream) for s in fleet.models["m"].servings] == [
        ("mine", "q"),
        ("ours", "r"),
    ]


def test_a_key_with_nothing_after_it_says_nothing(world):
    world.user("coder: codex\n").fleet("coder:\nnodes:\nrun:\n")
    assert world.load().settings.coder == "codex"


def test_merge_keys_and_anchors_work(world):
    world.fleet(
        "x-base: &base {timeout: 9, context: 100}\n"
        "nodes: {n: {endpoint: 'http://n:1'}}\n"
        "models:\n"
        "  a: &a {<<: *base, node: n, upstream: q, context: 200}\n"
        "  b: {<<: [{context: 5}, *a], upstream: r}\n"
    )
    a, b = (world.load().fleet.models[name].servings[0] for name in "ab")
    assert (a.timeout, a.context, a.upstream) == (9, 200, "q")
    assert (b.timeout, b.context, b.upstream, b.node.name) == (9, 5, "r", "n")


def test_a_byte_order_mark_is_no_part_of_the_first_key(world):
    world.file.write_bytes(b"\xef\xbb\xbfteam: red\n")
    assert world.load().settings.team == "red"


def test_a_path_is_relative_to_the_file_that_says_it(world):
    world.user("workspace: {root: trees}\nstore: {url: 'sqlite:///data/fleet.db'}\n")
    settings = world.load().settings
    assert settings.workspace.root == world.home / "trees"
    assert settings.store.url == f"sqlite:///{world.home}/data/fleet.db"


@pytest.mark.parametrize(
    ("written", "below"), [("~/trees", "trees"), ("$FLEET_HOME/t", "home/t"), ("~", "")]
)
def test_a_path_may_begin_with_a_home(world, written, below):
    world.user(f"workspace: {{root: {written!r}}}\n")
    assert world.load().settings.workspace.root == world.home.parent / below


def test_the_defaults_are_under_the_home(world):
    settings = world.load().settings
    assert settings.workspace.root == world.home / "worktrees"
    assert settings.store.url == f"sqlite:///{world.home}/fleet.db"


ALIASES = {
    "CLAUDE_FLEET_TEAM": ({"CLAUDE_FLEET_TEAM": "blue"}, lambda s: s.team, "blue"),
    "our own name wins over it": (
        {"CLAUDE_FLEET_TEAM": "blue", "FLEET_TEAM": "red"},
        lambda s: s.team,
        "red",
    ),
    "DB_PATH": ({"DB_PATH": "/x/f.db"}, lambda s: s.store.url, "sqlite:////x/f.db"),
    "DB_PATH with its backend": (
        {"DB_PATH": "/x/f.db", "STORAGE_BACKEND": "sqlite"},
        lambda s: s.store.url,
        "sqlite:////x/f.db",
    ),
    "DATABASE_URL with its backend": (
        {"DATABASE_URL": "postgres://h/d", "STORAGE_BACKEND": "postgresql", "DB_PATH": "/x"},
        lambda s: s.store.url,
        "postgres://h/d",
    ),
}


@pytest.mark.parametrize("name", ALIASES)
def test_the_older_servers_variables_count(world, name):
    env, read, wanted = ALIASES[name]
    assert read(world.load(env=env).settings) == wanted


def test_a_database_url_alone_is_the_projects_own_business(world):
    settings = world.load(env={"DATABASE_URL": "postgres://h/d"}).settings
    assert settings.store.url.startswith("sqlite:")


def test_an_empty_variable_says_nothing(world):
    assert world.load(env={"FLEET_CODER": ""}).settings.coder == "claude"


def test_a_store_can_come_from_a_variable(world):
    world.user("store: {url: os.environ/MY_STORE}\n")
    url = world.load(env={"MY_STORE": "postgresql://me:pw@h/d"}).settings.store.url
    assert url == "postgresql://me:pw@h/d"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a b\nc", ("a b", "c")),
        ('["a, b", "c"]', ("a, b", "c")),
        ("[]", ()),
        ("[a, b]", ("a", "b")),
    ],
)
def test_a_list_in_a_variable_is_written_by_lines_or_in_brackets(world, text, wanted):
    assert world.load(env={"FLEET_WORKSPACE_SETUP": text}).settings.workspace.setup == wanted


@pytest.mark.parametrize(("text", "wanted"), [("yes", True), ("0", False), ("TRUE", True)])
def test_a_flag_in_a_variable(world, text, wanted):
    assert world.load(env={"FLEET_WORKSPACE_QUICK": text}).settings.workspace.quick is wanted


def test_flags_that_are_none_say_nothing(world):
    assert world.load(flags={"coder": None, "run.attempts": None}).settings.coder == "claude"


def test_a_flag_can_reach_into_an_entry(world):
    world.fleet("agents: {rev: {coder: claude}}\n")
    loaded = world.load(flags={"agents.rev.coder": "codex"})
    assert loaded.fleet.agent("rev").coder == "codex"


def test_another_file_takes_the_place_of_the_projects(world, tmp_path):
    world.fleet("team: red\n")
    other = tmp_path / "other.yaml"
    other.write_text("team: blue\n")
    loaded = world.load(config_file=other)
    assert (loaded.settings.team, loaded.project, loaded.project_file) == (
        "blue",
        world.project,
        other,
    )


def test_outside_a_project_only_the_users_file_counts(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.yaml").write_text("team: mine\n")
    loaded = load(tmp_path, home=tmp_path / "home", env={})
    assert (loaded.settings.team, loaded.project, loaded.fleet.name) == ("mine", None, "")


def test_the_fleet_is_named_after_its_directory_unless_it_says_otherwise(world):
    assert world.load().fleet.name == "project"
    assert world.fleet("project: {name: local-dev}\n").load().fleet.name == "local-dev"


def test_without_files_no_yaml_is_imported(tmp_path):
    code = (
        "import os, sys; from pathlib import Path; from fleet.config import load;"
        "load(Path.cwd(), home=Path('home'), env={'FLEET_TEAM': 'red', 'HOME': '/'});"
        "print('yaml' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


def test_the_home_is_where_the_variable_says(tmp_path):
    assert home({"FLEET_HOME": str(tmp_path)}) == tmp_path
    assert home({"HOME": "/h"}) == home({"HOME": "/h", "FLEET_HOME": ""})
    assert str(home({"HOME": "/h"})) == "/h/.fleet"
    assert str(home({"HOME": "/h", "FLEET_HOME": "~/x"})) == "/h/x"
    with pytest.raises(BadInput, match="depends on the directory"):
        home({"FLEET_HOME": "relative"})


def test_loading_takes_little_time_even_with_both_files(world):
    import time

    world.user("max_concurrent: 5\n").fleet("nodes: {n: {endpoint: 'http://n:1'}}\n")
    world.load()
    begun = time.process_time()  # a busy machine makes it wait, and not work
    for _ in range(10):
        world.load()
    assert (time.process_time() - begun) / 10 < 0.05, os.getloadavg()
