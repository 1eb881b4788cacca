"""Several machines on one PostgreSQL. Here a machine is a home and a clone of its own."""

from __future__ import annotations

import shutil
import signal
import time

import pytest

from fleet.app import open_store
from fleet.domain.task import TaskState
from tests.real.several_hosts import LEASE, RealHost
from tests.wait import until

pytestmark = pytest.mark.real


@pytest.fixture
def hosts(tmp_path, postgres_url):
    """Two; `a.repo` is the path of the project on both."""
    a = RealHost(tmp_path / "a", postgres_url)
    b = RealHost(tmp_path / "b", postgres_url)
    yield a, b
    for host in (a, b):
        host.end(signal.SIGKILL)
        host.kill_keepers()


@pytest.fixture
def store(postgres_url):
    opened = open_store(postgres_url)
    yield opened
    opened.close()


def at_work(store, *tasks: str) -> bool:
    return all(store.task(task).state is TaskState.RUNNING for task in tasks) and all(
        run.started_at for run in store.live_runs()
    )


def test_two_machines_made_from_one_home_have_two_ids_and_start_every_task_once(hosts, store):
    a, b = hosts
    a.supervise()
    shutil.rmtree(b.home, ignore_errors=True)
    shutil.copytree(a.home, b.home, ignore=shutil.ignore_patterns("bell", "*.sock"))
    b.supervise()
    assert a.host_id != b.host_id
    assert "This home was copied" in b.log.read_text()
    tasks = [a.add(f"Task {n}", script="run sleep 0.2") for n in range(8)]
    for task in tasks:
        a.wait_for(task, "done")
    runs = [run for task in tasks for run in store.runs(task)]
    assert len(runs) == len(tasks)
    assert {run.host for run in runs} <= {a.host_id, b.host_id}


def test_the_tasks_of_a_machine_that_was_shut_down_in_good_order_go_on_elsewhere(hosts, store):
    a, b = hosts
    script = "run sh -c 'case $FLEET_RUN_ID in *.1) sleep 300;; esac'"
    task = a.add("Long", script=script)
    a.supervise()
    until(lambda: at_work(store, task), why=a.log.read_text)
    a.end(signal.SIGTERM)
    a.kill_keepers()
    began = time.monotonic()
    b.supervise()
    until(lambda: len(store.runs(task)) == 2, why=b.log.read_text)
    assert time.monotonic() - began < LEASE + 15
    assert store.run(f"{task}.2").host == b.host_id


def test_an_agent_goes_on_for_a_day_after_a_person_stopped_its_supervisor(hosts, store):
    a, _ = hosts
    task = a.add("Long", script="run sleep 300")
    a.supervise()
    until(lambda: at_work(store, task), why=a.log.read_text)
    a.end(signal.SIGINT)
    (row,) = store.hosts().values()
    assert (row.holder, row.lease) == ("", 24 * 3600)


def test_what_is_created_in_a_directory_starts_on_that_machine(hosts, store):
    """Both have the project, at the same path."""
    a, b = hosts
    b.repo = a.repo
    a.supervise("--max", "1")
    b.supervise()
    for number in range(3):
        a("create", f"quick-{number}", "--headless", "--prompt", "say Done.")
    runs = [run for n in range(1, 4) for run in store.runs(f"t-{n}")]
    assert [run.host for run in runs] == [a.host_id] * 3
    assert store.task("t-1").spec.limits.needs == (a.host_id,)


def test_a_machine_without_the_project_or_its_trust_spoils_no_task(hosts, store):
    a, b = hosts
    (a.repo / "fleet.yaml").write_text("agents:\n  own: {coder: command, command: [echo, hi]}\n")
    a.git("add", ".")
    a.git("commit", "-qm", "Own")
    a("trust")
    b.supervise()  # in a project of its own: it has a.repo, but has never trusted it
    tasks = [a.add(f"Task {n}", "--agent", "own") for n in range(6)]
    gone = a.root / "gone"
    shutil.copytree(a.repo, gone)
    elsewhere = a.add("Elsewhere", "--cwd", str(gone))
    shutil.rmtree(gone)
    until(lambda: len(store.hosts()[b.host_id].without) == 2, why=b.log.read_text)
    assert [store.runs(task) for task in (*tasks, elsewhere)] == [[]] * 7
    why = a.data("show", tasks[0])["waits"]
    assert [wait["code"] for wait in why] == ["no_host"]
    assert "the project's settings are not trusted there" in why[0]["why"]
    a.supervise()
    for task in tasks:
        a.wait_for(task, "done")
    assert {run.host for task in tasks for run in store.runs(task)} == {a.host_id}


@pytest.fixture
def clones(tmp_path, postgres_url):
    """Two machines that have nothing in common but the store and a path: each its own clone there.

    Separate machines have one at the same path. Here the second's takes the place of the first's.
    """
    a = RealHost(tmp_path / "a", postgres_url)
    b = RealHost(tmp_path / "b", postgres_url, clone=a.repo)
    yield a, b
    for host in (a, b):
        host.end(signal.SIGKILL)
        host.kill_keepers()


def move(a: RealHost, b: RealHost) -> None:
    """From now on the path of the project is the second's clone."""
    a.repo.rename(a.repo.with_name("of-a"))
    b.repo.rename(a.repo)
    b.repo = a.repo
    b.git("remote", "set-url", "origin", str(a.root / "nowhere"))


def test_a_machine_works_in_its_own_clone_wherever_that_is(tmp_path, store, postgres_url):
    a = RealHost(tmp_path / "a", postgres_url)
    b = RealHost(tmp_path / "b", postgres_url, clone=a.repo)
    b.repo = b.repo.rename(tmp_path / "b" / "my-clone")
    first = a.add("First", script="write first.txt x\ncommit first")
    a.repo.rename(a.repo.with_name("of-a"))  # no machine has the other's files
    try:
        b.supervise(cwd=tmp_path)  # as a service: it does not know of the clone
        until(
            lambda: store.hosts()[b.host_id].without == (f"absent {a.repo}",), why=b.log.read_text
        )
        b("status")
        b.wait_for(first, "done")
        until(lambda: not store.hosts()[b.host_id].without)
        script = "run test -f first.txt\nwrite second.txt x\ncommit second"
        second = b.add("Second", "--after", first, script=script)
        b.wait_for(second, "done")
        assert {row["id"] for row in b.data("tasks", "--all")} == {first, second}
        tip = store.task(second).tally.checkpoint.commit
        assert "second" in b.git("log", "--format=%s", tip)
        a.repo.with_name("of-a").rename(a.repo)
        assert "second.txt" in a("diff", second, "--stat")
        a("merge", second)
        assert (a.repo / "second.txt").exists()
        far = a.add("Far", "--needs", b.host_id, script="write far.txt x\ncommit far")
        a.wait_for(far, "done")
        b.kill_all()
        a("land", far)
        a.work()
        assert (a.repo / "far.txt").exists()
        assert {row["id"] for row in a.data("tasks", "--all")} == {first, second, far}
        third = a.add("Third", "--after", second, script="run test -f second.txt")
        a.supervise()
        a.wait_for(third, "done")
        assert store.run(store.task(third).run_id).host == a.host_id
    finally:
        for host in (a, b):
            host.end(signal.SIGKILL)
            host.kill_keepers()


def test_a_dependent_on_another_machine_has_the_work_that_it_waited_for(clones, store):
    a, b = clones
    b("status")  # makes its home
    b_id = b.host_id
    large = "run sh -c 'head -c 9000000 /dev/urandom >large.bin'"  # three rows of the store
    first = a.add("First", script=f"{large}\nwrite first.txt x\ncommit first")
    second = a.add("Second", "--after", first, "--needs", b_id, script="run test -f large.bin")
    a.supervise()
    until(lambda: store.task(first).state is TaskState.DONE, why=a.log.read_text)
    a.kill_all()
    move(a, b)
    tip = store.task(first).tally.checkpoint.commit
    assert [need for need in store.pieces([tip])[tip].needs if "/" in need] == [
        f"{tip}/1",
        f"{tip}/2",
    ]
    b.supervise()
    b.wait_for(second, "done")
    assert store.run(store.task(second).run_id).host == b.host_id
    assert "first" in b.git("log", "--format=%s", tip)


def test_a_run_whose_machine_died_goes_on_elsewhere_with_its_commits(clones, store):
    a, b = clones
    script = (
        "write half.txt x\ncommit half\n"
        "run sh -c 'case $FLEET_RUN_ID in *.1) sleep 300;; *) test -f half.txt;; esac'"
    )
    task = a.add("Long", script=script)
    a.supervise()
    until(lambda: saved(store, task), why=a.log.read_text)
    a.kill_all()
    move(a, b)
    b.supervise()
    b.wait_for(task, "done")
    assert [run.host for run in store.runs(task)] == [a.host_id, b.host_id]
    branch = store.runs(task)[1].workspace.branch
    assert "half" in b.git("log", "--format=%s", branch).splitlines()


def saved(store, task: str) -> str:
    row = store.progress([f"{task}.1"]).get(f"{task}.1")
    return row.commit if row else ""
