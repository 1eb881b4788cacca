"""A project of a shared store is where each machine has its clone."""

from __future__ import annotations

import inspect
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fleet.adapters.git.clone import clone_of
from fleet.adapters.home.clones import Clones
from fleet.adapters.home.home import Home
from fleet.adapters.stores.placed import PlacedStore
from fleet.app.hosts.places import Places
from fleet.domain.run import Host
from fleet.domain.task import Spec, Task, TaskState
from fleet.ports import Put
from fleet.ports.store import Store, TaskQuery
from fleet.testing.memory_store import MemoryStore
from tests.contract.checkouts import git, make_repo

if TYPE_CHECKING:
    from fleet.domain.hosts.clone import Clone

GITHUB = "git@github.com:ada/shop.git"


class Machine:
    """A home of its own on the store that all have."""

    def __init__(self, root: Path, store: MemoryStore) -> None:
        self.root, self._store = root, store
        self.home = Home(root / "home")

    @property
    def places(self) -> Places:
        """As another process of it has them."""
        return Places(self._store, Clones(self.home, "s"), self.home.host_id, self.see)

    def see(self, path: str) -> Clone | None:
        """What is in the folders of another machine it does not see."""
        others = [folder for folder in self.root.parent.glob("?") if folder != self.root]
        return (
            None if any(Path(path).is_relative_to(folder) for folder in others) else clone_of(path)
        )

    @property
    def store(self) -> PlacedStore:
        return PlacedStore(self._store, self.places)

    def clone(self, of: Path, name: str, remote: str = "") -> str:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        git(of.parent, "clone", "-q", str(of), str(path))
        if remote:
            git(path, "remote", "set-url", "origin", remote)
        self.places.clone(str(path))  # as any command that is typed in it
        return str(path)

    def add(self, project: str, **spec) -> str:
        task = Task(
            self._store.new_id("t"), 0, TaskState.OPEN, "T", "P", project, "ada", 1, spec=Spec(**spec)
        )  # fmt: skip
        self.store.commit([Put(task)], [])
        return task.id


@pytest.fixture
def origin(tmp_path):
    return make_repo(tmp_path / "origin", README="hello\n")


@pytest.fixture
def machines(tmp_path):
    store = MemoryStore()
    return [Machine(tmp_path / name, store) for name in "abc"]


def test_a_task_is_in_each_machines_own_clone(origin, machines):
    a, b, _ = machines
    here, there = a.clone(origin, "work/shop", GITHUB), b.clone(origin, "code/my-shop", GITHUB)
    task = a.add(here, cwd=f"{here}/docs")
    seen = b.store.task(task)
    assert (seen.project, seen.spec.cwd) == (there, f"{there}/docs")
    assert [each.id for each in b.store.tasks(TaskQuery(project=there))] == [task]
    assert b.store.counts(project=there)["open"] == 1
    b.store.commit([Put(seen)], [])
    assert a.store.task(task).project == here
    other = b.add(there)
    assert a.store.task(other).project == here
    assert {each.project for each in a.store.tasks(TaskQuery())} == {here}


def test_a_host_that_lacks_a_project_names_it_as_others_do(origin, machines):
    a, b, _ = machines
    here, there = a.clone(origin, "shop"), b.clone(origin, "else/shop")
    a.add(here)
    host = Host("h-b", 0, "b", "holder", "boot", 1, without=(f"untrusted {there}", "absent /x"))
    b.store.commit([Put(host)], [])
    assert a.store.hosts()["h-b"].without == (f"untrusted {here}", "absent /x")


def test_a_machine_without_a_clone_has_the_path_of_another_until_there_is_one(origin, machines):
    a, b, _ = machines
    here = a.clone(origin, "shop", GITHUB)
    task = a.add(here)
    store = b.store
    assert store.task(task).project == here
    there = b.clone(origin, "shop", "https://github.com/ada/shop")
    assert store.task(task).project == there


def test_a_fork_is_another_project(origin, machines):
    a, b, _ = machines
    here = a.clone(origin, "shop", GITHUB)
    fork = b.clone(origin, "fork", "https://github.com/eve/shop")
    task = a.add(here)
    assert b.store.task(task).project == here
    there = b.clone(origin, "shop", GITHUB)
    assert b.store.task(task).project == there
    assert a.store.task(b.add(fork)).project == fork


def test_a_clone_of_a_directory_of_another_machine_is_of_its_project(origin, machines):
    a, b, _ = machines
    here = a.clone(origin, "shop", GITHUB)
    there = b.clone(origin, "shop", "laptop:/home/ada/shop")
    assert b.store.task(a.add(here)).project == there


def test_what_has_the_same_path_on_two_machines_and_is_not_the_same_is_not_confused(
    origin, machines, tmp_path
):
    a, b, _ = machines
    here = a.clone(origin, str(tmp_path / "work"), GITHUB)
    task = a.add(here)
    shutil.rmtree(here)
    make_repo(Path(here), other="1\n")  # what the second machine has there
    seen = b.store.task(task).project
    assert seen != here
    assert not Path(seen).exists()
    store = b.store
    store.commit([Put(store.task(task))], [])
    assert [each.id for each in store.tasks(TaskQuery(project=here))] == []
    own = b.add(here)
    assert [each.id for each in b.store.tasks(TaskQuery(project=here))] == [own]
    there = b.clone(origin, "shop", GITHUB)
    assert b.store.task(task).project == there


def test_two_clones_on_one_machine_are_two_projects(origin, machines):
    a, b, _ = machines
    one, two = a.clone(origin, "one"), a.clone(origin, "two")
    first, second = a.add(one), a.add(two)
    assert [a.store.task(task).project for task in (first, second)] == [one, two]
    there = b.clone(origin, "one")
    assert [b.store.task(task).project for task in (first, second)] == [there, two]
    more = b.clone(origin, "two")
    assert b.store.task(second).project == more


def test_tasks_of_before_keep_their_project_and_a_renamed_folder_keeps_its_tasks(origin, machines):
    a, b, _ = machines
    here, there = a.clone(origin, "shop"), b.clone(origin, "else")
    old = Task("t-900", 0, TaskState.OPEN, "T", "P", here, "ada", 1)
    a._store.commit([Put(old)], [])
    b.add(there)
    assert a.store.task("t-900").project == here
    assert [each.id for each in a.store.tasks(TaskQuery(project=here))] == ["t-900"]
    moved = f"{there}-moved"
    shutil.move(there, moved)
    b.places.clone(moved)
    assert {each.project for each in b.store.tasks(TaskQuery(project=moved))} == {moved}


def test_outside_of_git_a_path_is_a_path(machines, tmp_path):
    a, b, _ = machines
    folder = tmp_path / "plain"
    folder.mkdir()
    assert b.store.task(a.add(str(folder))).project == str(folder)


def test_whatever_a_store_says_of_tasks_landings_and_hosts_has_paths_of_this_machine():
    paths = (
        "Task",
        "Landing",
        "Host",
        "Record",
        "Claim",
        "Offer",
        "Change",
        "TaskQuery",
        "TaskSearch",
    )
    by_id = {"forget_tasks"}  # their ids and versions are all that counts
    for name, method in inspect.getmembers(Store, inspect.isfunction):
        signature = inspect.signature(method)
        types = [str(p.annotation) for p in signature.parameters.values()]
        words = " ".join([*types, str(signature.return_annotation)])
        names = set(words.replace("[", " ").replace("]", " ").replace(",", " ").split())
        if (names & {*paths, "LandingQuery"} or "project" in signature.parameters) and (
            not name.startswith("_") and name not in by_id
        ):
            assert name in vars(PlacedStore), name
