"""The folder of a task is written when it starts, wherever it works."""

from __future__ import annotations

import json


def test_a_task_that_works_in_place_has_its_folder(supervised):
    task = supervised.add("say Hi.", in_place=True)
    supervised.start()
    supervised.wait(task)
    folder = supervised.home / "tasks" / task
    assert json.loads((folder / "task.json").read_text())["id"] == task
    assert (folder / "artifacts" / "Q&A.md").is_file()
