"""What git does with a task's worktree here, as the operations on worktrees say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.ports import CommitRow, MergeRow, PushRow, WorktreeRow

if TYPE_CHECKING:
    from fleet.adapters.git.land import Pushed
    from fleet.app import App
    from fleet.domain.task import Task


class HostTrees:
    def __init__(self, app: App) -> None:
        self._app = app

    def status(self, task: Task) -> WorktreeRow:
        from fleet.adapters.git.commit import status

        return status(task.id, self._app.workspaces.of(task), _project(task))

    def commit(self, task: Task, message: str) -> CommitRow:
        from fleet.adapters.git.commit import commit

        private = self._app.worlds(task.project).settings.workspace.credential_files
        workspace = self._app.workspaces.of(task)
        return commit(task.id, workspace, _project(task), message, private=private)

    def push(self, task: Task) -> PushRow:
        return _pushed(task, self._app.workspaces.push(task))

    def merge(self, task: Task, onto: str) -> MergeRow:
        done = self._app.workspaces.merge(task, onto)
        return MergeRow(
            task.id, done.branch, done.onto, done.commit, done.fast_forward, done.nothing,
            done.before, done.checkout,
        )  # fmt: skip

    def propose(self, task: Task, title: str, body: str, base: str) -> PushRow:
        from fleet.adapters.git.land import open_pull_request

        workspace = self._app.workspaces.of(task)
        return _pushed(task, open_pull_request(workspace, _project(task), title, body, base))


def _pushed(task: Task, done: Pushed) -> PushRow:
    return PushRow(task.id, done.branch, done.remote, done.nothing, done.url)


def _project(task: Task) -> str:
    return task.spec.cwd or task.project
