"""The port `Worktrees`: what operations do with the worktrees of this host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.ports import CommitRow, MergeRow, PushRow, WorktreeRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.adapters.git.landing.merge_and_push import Pushed
    from fleet.adapters.git.repo import Repo
    from fleet.app.app import App
    from fleet.domain.task import Task
    from fleet.ports import Ahead, DiffWish, Finished, Forges, Outlook, TaskDiff


UNTESTED = "untested"


class HostTrees:
    def __init__(self, app: App) -> None:
        self._app = app

    def ahead(self, project: str, branches: Sequence[str]) -> list[Ahead]:
        from fleet.adapters.git.landing.merge_and_push import ahead

        return ahead(project, branches)

    def outlook(self, repository: str, works: Sequence[Finished]) -> dict[str, Outlook | None]:
        from pathlib import Path

        from fleet.adapters.git.diff.merge_preview import outlook
        from fleet.domain.errors import Unavailable

        if not repository or not Path(repository).is_dir():
            raise Unavailable(f"{repository} is not on this machine.")
        return outlook(repository, works)

    def gate_result(self, task: Task, tree: str) -> str:
        from fleet.domain.errors import FleetError

        try:
            return self._gate(task, tree)[1]
        except FleetError:  # `fleet validate` says what is wrong there
            return ""

    def _gate(self, task: Task, tree: str) -> tuple[str, str]:
        """Return the gate's command and the id of its result for this tree; empty: no gate."""
        from fleet.app.agent_environment import gate_environment
        from fleet.domain.landing.landing import gate_command, result_id

        settings = self._app.worlds(task.project).settings
        gate = gate_command([settings.land.gate or settings.run.gate, task.spec.gate])
        setup = () if settings.workspace.quick else settings.workspace.setup
        environment = gate_environment(self._app, task.project)
        return (gate, result_id(tree, gate, setup, environment)) if gate else ("", "")

    def status(self, task: Task) -> WorktreeRow:
        from fleet.adapters.git.commit import status

        return status(task.id, self._app.workspaces.of(task), _project(task))

    def work(self, task: Task) -> tuple[str, bool]:
        from fleet.adapters.git.commit import work_commit

        private = self._app.worlds(task.project).settings.workspace.credential_files
        return work_commit(task.id, self._app.workspaces.of(task), private=private)

    def diff(self, task: Task, *, stat: bool) -> str:
        from fleet.adapters.git.diff.read import text

        return text(self._app.workspaces.span(task), *(["--stat=100"] if stat else []))

    def changes(self, task: Task, wish: DiffWish) -> TaskDiff:
        from fleet.adapters.git.diff.read import read

        span = self._app.workspaces.span(task, against=wish.against, number=wish.run)
        return read(task.id, span, wish.path, stat=wish.stat)

    def count_lines(self, task: Task, path: str) -> int | None:
        from fleet.adapters.git.diff.span import count_lines

        return count_lines(self._app.workspaces.span(task), path)

    def commit(self, task: Task, message: str) -> CommitRow:
        from fleet.adapters.git.commit import commit

        private = self._app.worlds(task.project).settings.workspace.credential_files
        workspace = self._app.workspaces.of(task)
        hooks = not self._app.isolates
        return commit(task.id, workspace, _project(task), message, private=private, hooks=hooks)

    def push(self, task: Task) -> PushRow:
        return _pushed(task, self._app.workspaces.push(task))

    def origin(self, task: Task) -> tuple[str, str]:
        from pathlib import Path

        from fleet.adapters.git.repo import Repo

        repo = Repo.of(Path(_project(task)))
        return str(repo.common), repo.starting_branch(task.spec.base)

    def repository_of(self, task: Task) -> str:
        from fleet.domain.errors import FleetError

        try:
            return self._app.workspaces.of(task).repository
        except FleetError:
            return ""

    def check_branch(self, repository: str, branch: str) -> None:
        from fleet.adapters.git.landing.branches import GitBranches

        GitBranches(_repo(repository)).target(branch)

    def has_work(self, repository: str, branch: str, commit: str, tip: str) -> bool:
        from fleet.adapters.git.landing.branches import GitBranches

        git = GitBranches(_repo(repository))
        return git.has(branch, [commit]) or git.came_home(branch, tip)

    def check_remote(self, repository: str, remote: str) -> None:
        from fleet.adapters.git.landing.branches import RemoteBranches

        RemoteBranches(_repo(repository), remote).check_remote()

    def repository(self, project: str) -> str:
        from pathlib import Path

        from fleet.adapters.git.repo import Repo

        return str(Repo.of(Path(project)).common)

    def revert(self, repository: str, onto: str, span: tuple[str, str], message: str) -> str:
        from fleet.adapters.git.landing.branches import GitBranches

        branches = GitBranches(_repo(repository))
        built = branches.reverted(onto, *span, message)
        if built.commit:  # held by what it undoes, so a retry replaces an interrupted attempt
            branches.hold(f"undo/{span[1][:16]}", built.commit)
        return built.commit

    def forges(self) -> Forges:
        return self._app.forges

    def remote_has(self, repository: str, remote: str, branch: str, commit: str) -> bool:
        from pathlib import Path

        from fleet.adapters.git.landing.branches import RemoteBranches
        from fleet.adapters.git.repo import Repo

        return RemoteBranches(Repo.at(Path(repository)), remote).has(branch, [commit])

    def merge(self, task: Task, onto: str, *, tested: bool) -> MergeRow:
        workspace = self._app.workspaces.of(task)
        land = self._app.worlds(task.project).settings.land
        onto = onto or land.onto or workspace.onto
        done = self._app.workspaces.merge(task, onto, self._check if tested else None)
        return MergeRow(
            task.id, done.branch, done.onto, done.commit, done.fast_forward, done.nothing,
            done.before, done.checkout,
        )  # fmt: skip

    def _check(self, task: Task, tree: str, onto: str) -> None:
        """Raise `Refused` when the project has a gate that this tree has not passed."""
        from fleet.domain.errors import Refused

        world = self._app.worlds(task.project)
        if {"run.gate", "land.gate"} & world.withheld:
            raise Refused(
                "The gate of its project is not trusted, so the work could not be tested.",
                fix=f"In {task.project}: fleet trust",
                code="untrusted",
            )
        gate, name = self._gate(task, tree)
        if not gate:
            return
        result = self._app.store.gate_results([name]).get(name)
        if result is None or not result.passed:
            raise Refused(
                f"{task.id} merged into {onto} has not passed its gate yet ({gate}).",
                fix=f"fleet land {task.id} tests it there, and then lands it.",
                code=UNTESTED,
            )

    def propose(self, task: Task, title: str, body: str, base: str) -> PushRow:
        """Push, and open a pull request, or find the one that the branch has."""
        from dataclasses import replace
        from pathlib import Path

        from fleet.adapters.git.repo import Repo
        from fleet.domain.forges.pull import PullDraft, PullState

        workspace = self._app.workspaces.of(task)
        repository = workspace.repository or str(Repo.of(Path(_project(task))).common)
        settings = self._app.worlds(task.project).settings.land
        base = base or settings.onto or workspace.onto
        check_base(base)
        forge = self._app.forges.of(repository, settings.remote)
        pushed = self._app.workspaces.push(task)
        seen = forge.find(workspace.branch, base)
        if seen is None or seen.state is not PullState.OPEN:
            seen = forge.open(PullDraft(title, body, workspace.branch, base))
        return _pushed(task, replace(pushed, url=seen.url))


def check_base(base: str) -> None:
    from fleet.adapters.git.repo import is_name
    from fleet.domain.errors import BadInput

    if not is_name(base):
        raise BadInput(f"'{base[:80]}' is not the name of a branch.", fix="Try --base main.")


def _pushed(task: Task, done: Pushed) -> PushRow:
    return PushRow(task.id, done.branch, done.remote, done.nothing, done.url, done.address)


def _repo(repository: str) -> Repo:
    from pathlib import Path

    from fleet.adapters.git.repo import Repo
    from fleet.domain.errors import Unavailable

    if not Path(repository).is_dir():
        raise Unavailable(f"{repository} is not on this machine.")
    return Repo.at(Path(repository))


def _project(task: Task) -> str:
    return task.spec.cwd or task.project
