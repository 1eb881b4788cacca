"""What `fleet gc` and `fleet doctor` ask the store about many tasks."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from fleet.app.app import App
from fleet.domain.run import Choice, Run, RunState, Workspace
from fleet.domain.task import Tally, Task, TaskState
from fleet.ports import Put

MANY = 600


class CountedStore:
    def __init__(self, store) -> None:
        self._store, self.asked = store, Counter()

    def __getattr__(self, name):
        self.asked[name] += 1
        return getattr(self._store, name)


def test_the_worktrees_of_many_tasks_are_known_with_few_questions(tmp_path):
    app = App(tmp_path, {"FLEET_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)})
    root = tmp_path / "tree"
    root.mkdir()
    here = app.home.host_id()
    tree = Workspace(str(root), str(root), "fleet/t-7", made=True)
    old = replace(tree, path=str(tmp_path / "gone"), root=str(tmp_path / "gone"))
    store = app.store
    for n in range(1, MANY + 1):
        task = Task(
            f"t-{n}", 0, TaskState.DONE, "Do it", "do it", str(tmp_path), "me", 1,
            tally=Tally(runs=2),
        )  # fmt: skip
        runs = [
            Run(
                f"t-{n}.{k}",
                0,
                task.id,
                RunState.ENDED,
                Choice("a", "c"),
                here,
                "x",
                1,
                workspace=w,
            )
            for k, w in ((1, tree if n == 7 else old), (2, None))
        ]
        store.commit([Put(task), *map(Put, runs)], [])
    counted = CountedStore(store)
    app.__dict__["store"] = counted
    tidied = app.workspaces.tidy(days=0, dry_run=True)
    assert [(done.task, done.paths) for done in tidied.cleared] == [("t-7", (str(root),))]
    assert sum(counted.asked.values()) < 20
    assert Path(root).is_dir()
