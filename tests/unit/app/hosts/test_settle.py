"""What joining a queue changes on a machine, and that undoing it changes nothing else."""

from __future__ import annotations

import pytest

from fleet.app.hosts.settle import settle, undo

THEIRS = """\
# what I use at home
store:
  url: postgresql://me@here/mine
host:
  labels: [desk]
max_concurrent: 2
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("FLEET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def wish(**settings):
    given = {"store.url": "postgresql://fleet_box:hush@db/fleet"} | settings
    return {"settings": given, "root": "", "program": "true", "start": False}


def test_what_joining_set_is_gone_when_it_is_undone(home):
    settle(wish())
    settle(wish())
    assert "hush" in (home / "config.yaml").read_text()
    assert undo()["undone"] == ["store.url"]
    assert "hush" not in (home / "config.yaml").read_text()


def test_the_users_own_settings_are_back_when_joining_is_undone(home):
    config = home / "config.yaml"
    config.write_text(THEIRS)
    settle(wish(**{"host.labels": '["box"]'}))
    settle(wish(**{"host.labels": '["box", "gpu"]'}))
    assert "gpu" in config.read_text()
    undo()
    assert config.read_text() == THEIRS


def test_what_the_user_changed_since_stays_when_joining_is_undone(home):
    settle(wish(**{"host.labels": '["box"]', "host.server": "http://there:1"}))
    config = home / "config.yaml"
    text = config.read_text().replace("box]", "mine]").replace("server: http://there:1", "")
    assert "mine" in text
    assert "http://there" not in text
    config.write_text(text)
    undo()
    assert "mine" in config.read_text()
    assert "hush" not in config.read_text()


def test_the_password_is_the_users_alone_also_in_a_file_that_others_could_read(home):
    config = home / "config.yaml"
    config.write_text("max_concurrent: 2\n")
    config.chmod(0o644)
    settle(wish())
    assert config.stat().st_mode & 0o077 == 0
