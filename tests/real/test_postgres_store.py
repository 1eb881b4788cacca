"""What only PostgreSQL can do to us: it restarts, is shared with others, belongs to somebody else."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from fleet.adapters.stores.postgres.store import open_url
from fleet.app import open_store
from fleet.domain.errors import BadStore, Unavailable
from fleet.domain.event import Event
from fleet.domain.run import Choice, Host, Progress, Run, RunState
from fleet.domain.task import Spec, Task, TaskState
from fleet.ports import Put, Same, TaskQuery
from tests.contract.old_stores import old_postgres
from tests.e2e.scratch import Scratch
from tests.e2e.served import Served

pytestmark = pytest.mark.real

WORKER = str(Path(__file__).parents[1] / "chaos" / "store_worker.py")


def one(url: str, sql: str) -> object:
    with psycopg.connect(url, autocommit=True) as db:
        found = db.execute(sql.encode())
        return found.fetchone()[0] if found.description else None


def cut(url: str) -> None:
    """As a restart of the server, or a firewall that forgets, does it."""
    one(url, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
             "WHERE datname = current_database() AND pid <> pg_backend_pid()")  # fmt: skip


def test_a_connection_that_broke_is_said_so_once_and_made_anew(postgres_url):
    store = open_store(postgres_url)
    store.commit([], [Event("before", "t-1", "me", 1)])
    cut(postgres_url)
    with pytest.raises(Unavailable):
        store.events()
    assert [e.type for e in store.events()] == ["before"]
    cut(postgres_url)
    with pytest.raises(Unavailable):
        store.commit([], [Event("lost", "t-1", "me", 1)])
    store.commit([], [Event("after", "t-1", "me", 1)])
    assert [e.type for e in store.events()] == ["before", "after"]


def test_a_waiter_whose_connection_broke_listens_again(postgres_url):
    store, other = open_store(postgres_url), open_store(postgres_url)
    store.wait(0)
    cut(postgres_url)
    with pytest.raises(Unavailable):
        store.wait(5)
    with pytest.raises(Unavailable):
        other.events()
    store.wait(0)
    other.commit([], [Event("x", "t-1", "me", 1)])
    began = time.monotonic()
    store.wait(20)
    assert time.monotonic() - began < 10


def test_its_own_commits_wake_nobody_but_the_others(postgres_url):
    store = open_store(postgres_url)
    store.wait(0)
    store.commit([], [Event("x", "t-1", "me", 1)])
    began = time.monotonic()
    store.wait(0.3)
    assert time.monotonic() - began > 0.25


def test_a_writer_that_is_to_wake_the_others_is_the_only_one_of_that_moment(postgres_url):
    store = open_store(postgres_url)
    store.commit([Put(Host("h", 0, "h", "#1", "boot", 1))], [])
    assert one(postgres_url, "SELECT is_called FROM fleet.woke_at") is False  # nobody waits for it
    ((is_due,),) = store._db.call("commit", '{"writes":[],"tasks":[],"locks":[],"recount":[]}')
    assert is_due
    seconds = "last_value / 1000.0 - extract(epoch FROM clock_timestamp())"
    assert one(postgres_url, f"SELECT abs({seconds}) < 60 FROM fleet.woke_at")


def test_how_far_a_run_is_wakes_nobody(postgres_url):
    store = open_store(postgres_url)
    run = Run("t-1.1", 0, "t-1", RunState.RUNNING, Choice("a", "c"), "h", "#1", 5)
    (run,) = store.commit([Put(run)], [])
    one(postgres_url, "SELECT setval('fleet.woke_at', 1)")
    store.commit([Put(Progress("t-1.1", 0, 1)), Same(run)], [])
    assert one(postgres_url, "SELECT last_value FROM fleet.woke_at") == 1
    store.commit([Put(run)], [])
    assert one(postgres_url, "SELECT last_value FROM fleet.woke_at") > 1


def test_two_fleets_in_one_database_neither_see_nor_wake_nor_hold_up_each_other(postgres_url):
    ours = open_url(postgres_url, None, None, schema="ours")
    theirs = open_url(postgres_url, None, None, schema="theirs")
    ours.wait(0)
    theirs.commit([], [Event("x", "t-1", "me", 1)])
    assert ours.new_id("t") == theirs.new_id("t") == "t-1"
    assert ours.events() == []
    with theirs._db.writing(wake=False):
        ours.commit([], [])
    began = time.monotonic()
    ours.wait(0.3)
    assert time.monotonic() - began > 0.25


def test_a_newer_store_is_refused_and_left_alone(postgres_url):
    open_store(postgres_url).close()
    one(postgres_url, "UPDATE fleet.meta SET value = '99' WHERE key = 'schema'")
    one(
        postgres_url, "DELETE FROM fleet.meta WHERE key IN ('writes', 'reads')"
    )  # for no older fleet
    with pytest.raises(BadStore, match="newer fleet"):
        open_store(postgres_url)
    assert one(postgres_url, "SELECT value FROM fleet.meta") == "99"


def test_somebody_elses_schema_is_refused_and_left_alone(postgres_url):
    one(postgres_url, "CREATE SCHEMA fleet")
    one(postgres_url, "CREATE TABLE fleet.meta (truck TEXT)")
    with pytest.raises(BadStore, match="another program"):
        open_store(postgres_url)
    assert one(postgres_url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'fleet'") == 1


def test_tables_of_other_programs_in_the_same_database_are_no_matter(postgres_url):
    one(postgres_url, "CREATE TABLE meta (truck TEXT)")
    one(postgres_url, "CREATE TABLE task (done BOOLEAN)")
    store = open_store(postgres_url)
    assert store.counts() == {}


def test_a_user_without_rights_is_told_so_without_the_password(postgres_url):
    one(postgres_url, "CREATE ROLE guest LOGIN PASSWORD 'hush'")
    url = postgres_url.replace("fleet@", "guest:hush@")
    with pytest.raises(Unavailable) as caught:
        open_store(url)
    assert "hush" not in caught.value.message
    assert "permission denied" in caught.value.message


def test_a_server_that_is_not_there_is_named_without_the_password():
    with pytest.raises(Unavailable) as caught:
        open_store("postgresql://me:hush@127.0.0.1:1/fleet")
    assert "127.0.0.1" in caught.value.message
    assert "hush" not in caught.value.message


def test_many_that_open_it_first_make_it_once(postgres_url):
    workers = [
        subprocess.Popen([sys.executable, WORKER, "ids", postgres_url, "5"], stdout=subprocess.PIPE)
        for _ in range(6)
    ]
    given = [line for w in workers for line in w.communicate(timeout=60)[0].splitlines()]
    assert [w.returncode for w in workers] == [0] * 6
    assert len(set(given)) == 30


def test_kill_nine_in_the_middle_of_commits_leaves_every_commit_whole_or_absent(postgres_url):
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    rng = random.Random(seed)
    acknowledged: set[str] = set()
    for kill in range(30):
        argv = [sys.executable, WORKER, "pairs", postgres_url, f"k{kill}"]
        worker = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        lines = [worker.stdout.readline()]
        time.sleep(rng.uniform(0.0, 0.03))
        worker.kill()
        lines += worker.communicate()[0].splitlines(keepends=True)
        acknowledged.update(i for line in lines if line.endswith("\n") for i in line.split()[1:])
    store = open_store(postgres_url)
    tasks = {t.id: t for t in store.tasks(TaskQuery(limit=1_000_000))}
    assert acknowledged <= set(tasks)
    assert all(other in tasks for t in tasks.values() for other in t.title.split("+"))
    assert Counter(e.task for e in store.events(limit=1_000_000)) == Counter(list(tasks))
    assert {t.id for t in store.candidates(now=store.now(), limit=1_000_000)} == set(tasks)


def test_the_schema_and_the_number_of_connections_are_those_of_the_seeds_variables(
    tmp_path, postgres_url
):
    scratch = Scratch(tmp_path)
    env = {"STORAGE_BACKEND": "postgresql", "DATABASE_URL": postgres_url}
    env |= {"POSTGRESQL_SCHEMA": "public", "POSTGRESQL_POOL_SIZE": "10"}
    served = Served(scratch, "--no-run", env=env)
    try:
        token = scratch.data("token", "create", "ann", "--role", "coordinator", env=env)["token"]
        body = {"title": "x"}
        for _ in range(5):
            assert served.ask("POST", "/v1/task/add", body, token=token)[0] in {200, 201}
        assert one(postgres_url, "SELECT count(*) FROM public.task") == 5
        sql = "SELECT count(*) FROM pg_tables WHERE schemaname = 'fleet'"
        assert one(postgres_url, sql) == 0
    finally:
        served.end()
    few = scratch.type("tasks", env=env | {"POSTGRESQL_POOL_SIZE": "2"})
    assert few.returncode == 2
    assert "POSTGRESQL_POOL_SIZE" in few.stderr


def test_a_process_opens_no_more_connections_than_it_may(postgres_url, monkeypatch):
    monkeypatch.setattr("fleet.adapters.stores.postgres.session.ROOM_SECONDS", 0.05)
    stores = [open_store(postgres_url, most=9) for _ in range(9)]
    with pytest.raises(Unavailable, match="All connections"):
        open_store(postgres_url, most=9)
    stores.pop().close()
    stores.append(open_store(postgres_url, most=9))
    for store in stores:
        store.close()


def a_task(number: int, **given) -> Task:
    return Task(f"t-{number}", 0, TaskState.OPEN, "Do it", "", "/p", "me", number, **given)


def test_an_event_is_not_seen_before_those_with_lower_numbers(postgres_url):
    slow, quick, reader = (open_store(postgres_url) for _ in range(3))
    with slow.together():
        slow.commit([], [Event("first", "t-1", "me", 1)])
        quick.commit([], [Event("second", "t-2", "me", 2)])
        assert reader.events() == reader.events(newest=True) == reader.events(task="t-2") == []
        assert [e.type for e in slow.events()] == ["first", "second"]
    assert [e.type for e in reader.events()] == ["first", "second"]


def test_what_other_programs_do_in_the_database_holds_up_no_event(postgres_url):
    store = open_store(postgres_url)
    with psycopg.connect(postgres_url) as other:
        other.execute("CREATE TABLE theirs (x int)")
        store.commit([], [Event("x", "t-1", "me", 1)])
        assert [e.type for e in store.events()] == ["x"]


def test_a_client_that_stops_in_the_middle_holds_up_nobody_else(postgres_url):
    stopped, other = open_store(postgres_url), open_store(postgres_url)
    other.commit([Put(a_task(1)), Put(a_task(2))], [])
    mine, theirs = other.task("t-1"), other.task("t-2")
    with suppress(Unavailable), stopped.together():
        stopped.commit([Put(replace(mine, title="Mine"))], [Event("x", "t-1", "me", 1)])
        other.commit([Put(replace(theirs, title="Theirs"))], [])  # waits for nothing
        other.commit([Put(replace(mine, title="Theirs"))], [])  # the server ends the stopped one
        stopped.events()
    assert {t.title for t in other.tasks(TaskQuery())} == {"Theirs"}


def test_hosts_begin_behind_the_dead_entries_of_a_long_queue_but_only_for_a_moment(postgres_url):
    store = open_store(postgres_url)
    for start in range(1, 8001, 1000):
        some = [a_task(n) for n in range(start, start + 1000)]
        store.commit([Put(task) for task in some], [])
    one(postgres_url, "ALTER TABLE fleet.task SET (autovacuum_enabled = off)")
    one(postgres_url, "UPDATE fleet.task SET state = 'cancelled' WHERE seq < 7990")
    front = "SELECT tasks[3] FROM fleet.offered WHERE host = ''"

    def look(host: str) -> list[str]:
        return [task.id for task in store.offer(host, now=store.now(), limit=3).tasks]

    assert look("a") == ["t-7990", "t-7991", "t-7992"]
    assert one(postgres_url, front) == 7990
    one(postgres_url, "UPDATE fleet.offered SET until = until + 3600000000 WHERE host = ''")
    store.commit([Put(a_task(8001, spec=Spec(priority=0)))], [])
    assert look("b") == ["t-7993", "t-7994", "t-7995"], "it begins where the first one was"
    one(postgres_url, "UPDATE fleet.offered SET until = 0 WHERE host = ''")
    assert look("b") == ["t-8001", "t-7993", "t-7994"], "then it looks at the whole again"
    last = (
        "SELECT until / 1e6 - extract(epoch FROM clock_timestamp()) FROM fleet.offered"
        " WHERE host = ''"
    )
    assert one(postgres_url, last) < 0.6


def test_a_short_queue_is_always_looked_at_as_a_whole(postgres_url):
    store = open_store(postgres_url)
    store.commit([Put(a_task(n)) for n in range(1, 100)], [])
    assert store.offer("a", now=store.now(), limit=3).tasks
    assert one(postgres_url, "SELECT count(*) FROM fleet.offered WHERE host = ''") == 0


def test_many_finish_what_many_wait_for_and_every_count_is_right(postgres_url):
    store = open_store(postgres_url)
    needs = [a_task(n) for n in range(1, 41)]
    after = tuple(t.id for t in needs)
    store.commit([Put(t) for t in needs], [])
    store.commit([Put(a_task(n, after=after)) for n in range(100, 110)], [])
    workers = [
        subprocess.Popen([sys.executable, WORKER, "drain", postgres_url, f"w{n}"]) for n in range(6)
    ]
    assert [w.wait(timeout=100) for w in workers] == [0] * 6
    assert store.counts() == {"done": 50}
    assert one(postgres_url, "SELECT count(*) FROM fleet.task WHERE blockers <> 0") == 0


def test_a_store_that_counted_in_rows_goes_on_with_its_numbers(postgres_url):
    old_postgres(postgres_url)
    last = one(postgres_url, "SELECT last FROM fleet.counter WHERE kind = 't'")
    number = one(postgres_url, "SELECT max(number) FROM fleet.event")
    store = open_store(postgres_url)
    assert store.new_id("t") == f"t-{last + 1}"
    store.commit([], [Event("x", "t-1", "me", 1)])
    assert store.events(newest=True, limit=1)[0].number == number + 1
