"""What the disk keeps of a run's environment, and what its agent is given of the server's."""

from __future__ import annotations

import json

import pytest

from fleet.ports import Presence
from tests.wait import until

SECRETS = {
    "ANTHROPIC_API_KEY": "sk-ant-walnut-1",
    "OPENAI_API_KEY": "sk-walnut-2",
    "DATABASE_URL": "postgresql://u:walnut-3@127.0.0.1/db",
    "JWT_SECRET": "walnut-4-walnut-4-walnut",
    "APP_SECRET": "walnut-5-walnut-5",
}


def leaks(home, *words: str) -> list[str]:
    """The files below the home that have one of the words."""
    files = [file for file in home.rglob("*") if file.is_file()]
    return [
        str(file.relative_to(home))
        for file in files
        if any(word.encode() in file.read_bytes() for word in words)
    ]


def test_after_a_run_the_disk_has_neither_its_keys_nor_its_token(supervised):
    task = supervised.add("run sh -c 'env > env.txt'", "say Ready.", "hear 20")
    supervised.start(**SECRETS)
    supervised.heard(task, "Ready.")
    tokens = [supervised.client.app.home.run_token(f"{task}.1")]
    words = [value for value in (*SECRETS.values(), *tokens) if "://" not in value]
    assert leaks(supervised.home / "runs", *words, "walnut") == []  # not even while it works
    given = (supervised.home / "worktrees").rglob("env.txt")
    env = dict(line.split("=", 1) for line in next(given).read_text().splitlines() if "=" in line)
    assert SECRETS.keys() & env.keys() == {"APP_SECRET"}
    assert env["FLEET_RUN_TOKEN"] == tokens[0]
    supervised.type("send", task, "Go.")
    supervised.wait(task)
    assert leaks(supervised.home / "runs", *words, "walnut") == []


def test_the_setting_passes_more(supervised):
    task = supervised.add("run sh -c 'echo $OPENAI_API_KEY > key.txt'", "say Ready.", "hear 20")
    supervised.start(**SECRETS, FLEET_RUN_ENV="OPENAI_API_KEY")
    supervised.heard(task, "Ready.")
    (key,) = (supervised.home / "worktrees").rglob("key.txt")
    assert key.read_text().strip() == SECRETS["OPENAI_API_KEY"]


def test_a_keeper_that_died_before_it_began_leaves_no_keys_either(supervised):
    keepers = supervised.client.app.keepers
    folder = keepers.folder("t-9.1")
    folder.mkdir(parents=True)
    (folder / "env").write_text(json.dumps(SECRETS))
    until(lambda: keepers.end("t-9.1"))
    assert leaks(folder, "walnut") == []


@pytest.mark.parametrize("began", [True, False])
def test_what_an_older_version_left_is_taken_out(supervised, began):
    folder = supervised.home / "runs" / "t-9.1"
    folder.mkdir(parents=True)
    order = {"argv": ["true"], "cwd": "/", "env": SECRETS | {"FLEET_RUN_ID": "t-9.1"}, "mark": "m"}
    (folder / "launch.json").write_text(json.dumps(order))
    if began:
        (folder / "keeper.json").write_text(json.dumps({"format": 1, "never": True}))
    supervised.start()
    if began:
        until(lambda: leaks(folder, "walnut") == [])
        assert json.loads((folder / "launch.json").read_text())["env"] == {"FLEET_RUN_ID": "t-9.1"}
        assert supervised.client.app.keepers.look("t-9.1").presence is Presence.GONE
    else:
        task = supervised.add("say Hello.")
        supervised.wait(task)
        assert leaks(folder, "walnut")  # its keeper has not read it yet
