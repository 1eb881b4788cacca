"""A finished set-up is reused while the files that it depends on are the same."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fleet.adapters.git.checkout import GitCheckout, WorkspaceRules
from fleet.adapters.git.set_up.lock_files import LOCK_FILES, depends_on, installs
from fleet.config.project_kind import KINDS, PYTHON, set_up
from fleet.domain.errors import Refused
from tests.contract.checkouts import commit, git, make_repo, prepared, site

NPM = """\
#!/bin/sh
echo "$PWD" >> "$(dirname "$0")/ran"
test -e "$(dirname "$0")/broken" && exit 7
mkdir -p node_modules/left-pad node_modules/.bin
cat package-lock.json > node_modules/left-pad/index.js
ln -sf ../left-pad/index.js node_modules/.bin/left-pad
"""


@pytest.fixture
def repo(tmp_path):
    return make_repo(
        tmp_path / "shop",
        README="hello\n",
        **{"package-lock.json": "1\n", ".gitignore": "node_modules\n.venv\n*.env\n"},
    )


@pytest.fixture
def npm(tmp_path, monkeypatch):
    """A program that installs packages; `ran` has a line for each time."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "npm").write_text(NPM)
    (programs / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return programs


def checkout(tmp_path, **rules):
    given = {"setup": ("npm ci",), "setup_cache": ("auto",)} | rules
    return GitCheckout(
        tmp_path / "worktrees",
        WorkspaceRules(**given),
        log=lambda task: tmp_path / "tasks" / task / "setup.log",
    )


def runs(npm):
    return (npm / "ran").read_text().count("\n") if (npm / "ran").exists() else 0


def log(tmp_path, task):
    return (tmp_path / "tasks" / task / "setup.log").read_text()


def test_the_second_worktree_does_not_run_the_set_up(repo, tmp_path, npm):
    made = checkout(tmp_path)
    first = Path(prepared(made, site(repo, "t-1")).root)
    second = Path(prepared(made, site(repo, "t-2")).root)
    assert runs(npm) == 1
    assert (second / "node_modules" / "left-pad" / "index.js").read_text() == "1\n"
    assert (second / "node_modules" / ".bin" / "left-pad").is_symlink()
    assert git(second, "status", "--porcelain") == ""
    assert "Reused a finished set-up: no change in package-lock.json" in log(tmp_path, "t-2")
    (first / "node_modules" / "left-pad" / "index.js").write_text("broken by an agent\n")
    third = Path(prepared(made, site(repo, "t-3")).root)
    assert (third / "node_modules" / "left-pad" / "index.js").read_text() == "1\n"


@pytest.mark.parametrize(
    ("setup", "files"),
    [
        ("npm ci", ("auto",)),
        ("npm ci", ()),  # not kept for other worktrees
        ("sh -c 'npm ci'", ()),  # not known to install alone
    ],
)
def test_what_a_set_up_installs_is_no_work_where_git_ignores_nothing(
    repo, tmp_path, npm, setup, files
):
    commit(repo, "bare", **{".gitignore": "*.env\n"})
    made = checkout(tmp_path, setup=(setup,), setup_cache=files)
    for number in (1, 2):
        root = Path(prepared(made, site(repo, f"t-{number}")).root)
        assert (root / "node_modules" / "left-pad" / "index.js").exists()
        assert git(root, "status", "--porcelain") == ""


def test_what_another_set_up_command_makes_stays_work(repo, tmp_path, npm):
    made = checkout(tmp_path, setup=("mkdir -p generated && echo 1 > generated/api.js",))
    root = Path(prepared(made, site(repo, "t-1")).root)
    assert git(root, "status", "--porcelain") == "?? generated/"


def test_a_changed_lock_file_runs_it_again_and_only_two_are_kept(repo, tmp_path, npm):
    made = checkout(tmp_path)
    for number, content in enumerate(("1\n", "2\n", "3\n"), 1):
        commit(repo, "locks", **{"package-lock.json": content})
        root = Path(prepared(made, site(repo, f"t-{number}")).root)
        assert (root / "node_modules" / "left-pad" / "index.js").read_text() == content
    assert runs(npm) == 3
    commit(repo, "other", README="changed\n")
    prepared(made, site(repo, "t-4"))
    assert runs(npm) == 3
    kept = [p for p in (tmp_path / "worktrees" / "set-ups").glob("*/*") if p.is_dir()]
    assert len(kept) == 2


def test_a_failed_set_up_is_never_reused(repo, tmp_path, npm):
    made = checkout(tmp_path)
    (npm / "broken").touch()
    with pytest.raises(Refused, match="Set-up failed"):
        prepared(made, site(repo, "t-1"))
    (npm / "broken").unlink()
    prepared(made, site(repo, "t-2"))
    assert runs(npm) == 2
    assert list((tmp_path / "worktrees" / "set-ups").glob("*/.*")) == []


def test_copied_secrets_and_what_a_task_left_are_not_in_it(repo, tmp_path, npm):
    made = checkout(tmp_path, credential_files=("a.env",), pool=2)
    (repo / "a.env").write_text("KEY\n")
    first = prepared(made, site(repo, "t-1"))
    (Path(first.root) / "notes.env").write_text("the first agent's\n")
    kept = {p.name for p in (tmp_path / "worktrees" / "set-ups").rglob("*")}
    assert "left-pad" in kept
    assert "a.env" not in kept
    second = Path(prepared(made, site(repo, "t-2")).root)
    assert (second / "a.env").read_text() == "KEY\n"
    assert not (second / "notes.env").exists()


def test_a_used_worktree_gets_it_fresh(repo, tmp_path, npm):
    made = checkout(tmp_path, pool=2)
    place = prepared(made, site(repo, "t-1"))
    packages = Path(place.root) / "node_modules"
    (packages / "left-pad" / "index.js").unlink()
    (packages / "odd").write_text("left behind\n")
    assert made.remove(place, task="t-1", delete_branch=True).parked
    later = Path(prepared(made, site(repo, "t-2")).root) / "node_modules"
    assert (later / "left-pad" / "index.js").read_text() == "1\n"
    assert not (later / "odd").exists()
    assert runs(npm) == 1


def test_several_that_start_at_once_run_it_once(repo, tmp_path, npm):
    slow = NPM.replace("mkdir", "sleep 0.5; mkdir")
    (npm / "npm").write_text(slow)
    made = checkout(tmp_path)
    threads = [
        threading.Thread(target=prepared, args=(made, site(repo, f"t-{n}"))) for n in range(1, 4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert runs(npm) == 1
    assert len(list((tmp_path / "worktrees").glob("shop-*/t-*/node_modules"))) == 3


@pytest.mark.parametrize(
    ("rules", "times"),
    [
        ({"setup_cache": ()}, 2),
        ({"setup": ("npm ci", "echo also")}, 2),
        ({"setup": ("npm ci && true",)}, 2),
        ({"setup": ("npm ci && true",), "setup_cache": ("package-lock.json",)}, 1),
        ({"setup_cache": ("no-such-file",)}, 2),
    ],
)
def test_only_what_is_known_or_declared_to_be_the_same_is_reused(repo, tmp_path, npm, rules, times):
    made = checkout(tmp_path, **rules)
    for task in ("t-1", "t-2"):
        prepared(made, site(repo, task))
    assert runs(npm) == times


def test_a_set_up_that_changes_tracked_files_is_not_kept(repo, tmp_path, npm):
    (npm / "npm").write_text(NPM + "echo changed > README\n")
    made = checkout(tmp_path)
    for task in ("t-1", "t-2"):
        prepared(made, site(repo, task))
    assert runs(npm) == 2
    assert "Not kept for other worktrees: it changed files that git tracks" in log(tmp_path, "t-1")


def test_gc_removes_what_no_worktree_used(repo, tmp_path, npm):
    made = checkout(tmp_path)
    prepared(made, site(repo, "t-1"))
    (kept,) = (p for p in (tmp_path / "worktrees" / "set-ups").glob("*/*") if p.is_dir())
    assert made.trim_pool(repo, 0.0) == []
    assert made.trim_pool(repo, kept.stat().st_mtime, dry_run=True) == [kept]
    assert made.trim_pool(repo, kept.stat().st_mtime) == [kept]
    assert not kept.exists()


@pytest.mark.parametrize("cache", [("pyproject.toml",), ()])
@pytest.mark.parametrize("pool", [0, 2])
def test_a_virtual_environment_works_in_every_worktree(repo, tmp_path, pool, cache):
    commit(repo, "python", **{"pyproject.toml": "[project]\n", "shop__rooms.py": "ROOMS = 3\n"})
    script = "import shop.rooms; print(shop.rooms.__file__)"
    install = tmp_path / "install"
    install.write_text(
        f"#!/bin/sh\ntest -d .venv || {sys.executable} -m venv --without-pip .venv\n"
        'top=$PWD; cd .venv/lib/python3.*/site-packages; test -e shop.pth || echo "$top" > shop.pth\n'
        f"cd $top; printf '#!%s/.venv/bin/python\\n%s\\n' \"$PWD\" '{script}' > .venv/bin/opens\n"
        "chmod +x .venv/bin/opens\n"
    )
    install.chmod(0o755)
    made = checkout(tmp_path, setup=(str(install),), setup_cache=cache, pool=pool)
    first = prepared(made, site(repo, "t-1"))
    if pool:
        assert made.remove(first, task="t-1", delete_branch=True).parked
    second = Path(prepared(made, site(repo, "t-2")).root)
    program = [second / ".venv" / "bin" / "opens"]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"{second}/shop/rooms.py\n", "")


def test_what_init_proposes_is_known_to_install(tmp_path):
    commands = {c for kind in KINDS for c in set_up(kind, tmp_path).setup}
    commands |= {command for todo in PYTHON.values() for command in todo}
    unknown = {command for command in commands if not installs(command)}
    assert unknown == {"bundle exec rails db:create db:migrate"}
    assert depends_on(("docker compose up -d",), ("auto",)) == ()
    assert depends_on(("uv sync --frozen",), ("auto",)) == LOCK_FILES
