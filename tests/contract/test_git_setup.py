"""What a new worktree needs besides its commit."""

import json
import os
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fleet.adapters.git.checkout import GitCheckout, WorkspaceRules
from fleet.adapters.git.set_up.port_blocks import Ports
from fleet.domain.errors import Refused
from fleet.domain.run import Workspace
from fleet.domain.task import Spec
from tests.contract.checkouts import commit, git, make_repo, picture, prepared, site


@pytest.fixture
def repo(tmp_path):
    return make_repo(tmp_path / "shop", README="hello\n", **{".gitignore": "*.env\nlocal/\nbig/\n"})


def checkout(tmp_path, **rules):
    return GitCheckout(
        tmp_path / "worktrees",
        WorkspaceRules(**rules),
        ports=tmp_path / "ports.json",
        log=lambda task: tmp_path / "tasks" / task / "setup.log",
    )


def test_ignored_files_that_worktreeinclude_names_are_brought_along(repo, tmp_path):
    commit(repo, "include", **{".worktreeinclude": "# private\n*.env\n!no.env\nlocal/**\nloose\n"})
    for name in ("a.env", "sub/b.env", "no.env", "local/x/y", "big/data", "loose"):
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(name)
    (repo / "a.env").chmod(0o600)
    (repo / "with\nline.env").write_text("odd")
    root = Path(prepared(checkout(tmp_path), site(repo)).root)
    assert {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()} == {
        *(".git", ".gitignore", ".worktreeinclude", "README"),
        *("a.env", "sub/b.env", "local/x/y", "with\nline.env"),
    }
    assert (root / "a.env").stat().st_mode & 0o777 == 0o600


def test_a_link_that_leads_out_of_the_worktree_is_not_followed(repo, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (repo / "config").symlink_to(outside)
    git(repo, "add", "config")
    git(repo, "commit", "-q", "-m", "link")
    (outside / "key").write_text("theirs\n")
    made = checkout(tmp_path, credential_files=("config/key",))
    prepared(made, site(repo))
    assert (outside / "key").read_text() == "theirs\n"


def test_every_live_workspace_has_ports_of_its_own(repo, tmp_path):
    made = checkout(tmp_path, ports=10)
    places = [prepared(made, site(repo, f"t-{n}")) for n in range(4)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(made.env, places))
    bases = [int(env["FLEET_PORT_BASE"]) for env in found]
    assert len({b + n for b in bases for n in range(10)}) == 40
    assert {env["FLEET_PORT_COUNT"] for env in found} == {"10"}
    assert [int(made.env(p)["FLEET_PORT_BASE"]) for p in places] == bases
    made.remove(places[0], task="t-0")
    assert places[0].root not in Ports(tmp_path / "ports.json").held()
    later = prepared(made, site(repo, "t-9"))
    assert int(made.env(later)["FLEET_PORT_BASE"]) == bases[0]


def test_ports_that_another_program_listens_on_are_passed_over(tmp_path):
    ports = Ports(tmp_path / "ports.json")
    (tmp_path / "one").mkdir()
    first = ports.claim(str(tmp_path / "one"), 5).base
    ports.release(str(tmp_path / "one"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first + 2))
        taken.listen()
        assert ports.claim(str(tmp_path / "one"), 5).base >= first + 5


def test_a_damaged_record_of_ports_is_begun_anew(tmp_path):
    ports = Ports(tmp_path / "ports.json")
    for text in ("", "{", "[]", '{"a": 1}'):
        (tmp_path / "ports.json").write_text(text)
        assert ports.claim(str(tmp_path), 1).base
    assert list(json.loads((tmp_path / "ports.json").read_text())) == [str(tmp_path)]


def test_compose_projects_have_names_of_their_own(repo, tmp_path):
    made = checkout(tmp_path)
    places = [
        prepared(made, site(repo, f"t-{n}", spec=Spec(cwd=str(repo), branch=branch)))
        for n, branch in enumerate(("a/b", "a-b", "A.b", "店", "x" * 200))
    ]
    names = [made.env(p)["COMPOSE_PROJECT_NAME"] for p in places]
    assert len(set(names)) == 5
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,62}", name) for name in names)


def test_nothing_is_added_where_we_made_nothing(tmp_path):
    assert checkout(tmp_path, ports=5).env(Workspace(str(tmp_path))) == {}


def test_set_up_knows_its_ports_and_is_written_down(repo, tmp_path):
    setup = ("echo $FLEET_PORT_BASE $COMPOSE_PROJECT_NAME $FLEET_BRANCH > env.txt", "echo two")
    made = checkout(tmp_path, setup=setup, ports=3)
    place = prepared(made, site(repo))
    env = made.env(place)
    said = (Path(place.root) / "env.txt").read_text().split()
    assert said == [env["FLEET_PORT_BASE"], env["COMPOSE_PROJECT_NAME"], "fleet/t-1"]
    assert (tmp_path / "tasks" / "t-1" / "setup.log").read_text().endswith("$ echo two\ntwo\n")


def test_a_set_up_is_written_down_while_it_goes_on(repo, tmp_path):
    folder = tmp_path / "tasks" / "t-1"
    seen = f"cat {folder}/setup.now {folder}/setup.log > {tmp_path}/seen"
    prepared(checkout(tmp_path, setup=(f"echo one; {seen}",)), site(repo))
    now, _, log = (tmp_path / "seen").read_text().partition("$ ")
    assert now == f"echo one; {seen}"
    assert log == f"echo one; {seen}\none\n"
    assert not (folder / "setup.now").exists()


def test_a_failed_set_up_shows_the_last_lines_and_where_all_of_them_are(repo, tmp_path):
    before = picture(repo)
    made = checkout(tmp_path, setup=("seq 1 50 >&2; exit 4",))
    with pytest.raises(Refused) as caught:
        prepared(made, site(repo))
    assert caught.value.message.endswith("\n48\n49\n50")
    assert "\n1\n" not in caught.value.message
    log = tmp_path / "tasks" / "t-1" / "setup.log"
    assert str(log) in caught.value.fix
    assert "\n1\n2\n" in log.read_text()
    assert picture(repo) == before


def test_a_quick_task_is_not_set_up(repo, tmp_path):
    made = checkout(tmp_path, setup=("touch set-up",), credential_files=("a.env",))
    (repo / "a.env").write_text("KEY\n")
    place = prepared(made, site(repo, spec=Spec(cwd=str(repo), quick=True)))
    assert not (Path(place.root) / "set-up").exists()
    assert (Path(place.root) / "a.env").exists()


def test_tear_down_runs_before_a_worktree_goes_and_a_failure_is_told(repo, tmp_path):
    teardown = (f"pwd >> {tmp_path}/torn", "echo no >&2; exit 2", f"echo last >> {tmp_path}/torn")
    made = checkout(tmp_path, teardown=teardown)
    place = prepared(made, site(repo))
    done = made.remove(place, task="t-1")
    assert (tmp_path / "torn").read_text() == f"{place.root}\nlast\n"
    assert done.removed
    assert done.said == ("Tear-down failed (2): echo no >&2; exit 2: no",)
    assert "(status 2)" in (tmp_path / "tasks" / "t-1" / "setup.log").read_text()


def test_a_tear_down_that_hangs_is_ended(repo, tmp_path):
    made = checkout(tmp_path, teardown=("sleep 60",), setup_timeout=0.3)
    place = prepared(made, site(repo))
    done = made.remove(place, task="t-1")
    assert done.removed
    assert "took more than" in done.said[0]
    assert not os.path.lexists(place.root)
