"""Checks before a task is queued or started on this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.domain.errors import BadInput, Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.adapters.git.repo import Repo
    from fleet.app.app import App
    from fleet.domain.run import Choice
    from fleet.domain.task import Spec
    from fleet.ports import Merge


def check_start(app: App, spec: Spec, project: str, after: Sequence[str] = ()) -> None:
    """Raise what would keep a task from getting its workspace, before it is queued.

    `after`: the ids of the tasks it waits for; their work is known once all of them are done.
    """
    from fleet.adapters.git.repo import Repo

    cwd = spec.cwd or project
    repo = Repo.of(Path(cwd))
    if spec.branch:
        exists = app.checkout(project).check_branch(repo, spec.branch)
        _check_free(app, spec.branch, project, exists=exists)
    check_base(cwd, spec.base)
    if not after:  # otherwise it starts from their work, which is not known yet
        _check_directory(repo, Path(cwd), spec.base)
    if merges := _merges(app, after, project):
        app.checkout(project).check_merges(repo, spec.base, merges)
    else:
        repo.commit(spec.base or "HEAD")


def _merges(app: App, after: Sequence[str], project: str) -> tuple[Merge, ...]:
    """Return the work that these tasks left; empty while one of them is not done."""
    if not after:
        return ()
    from fleet.domain.task import TaskState
    from fleet.supervisor.attempt.site import merges_of

    needs = app.store.tasks_by_id(after).values()
    done = all(need.state is TaskState.DONE for need in needs)
    return merges_of(app.store, after, project) if done else ()


def _check_free(app: App, branch: str, project: str, *, exists: bool) -> None:
    """Raise `Refused` when the branch exists, or a task that has not ended asked for it."""
    from fleet.domain.task import ENDED
    from fleet.ports import TaskQuery

    tasks = app.store.tasks(TaskQuery(project=project, branches=(branch,)))
    task = next((task for task in tasks if task.state not in ENDED), None)
    if task is not None:
        raise Refused(
            f"{task.id} already works on the branch {branch}.",
            fix=f"Use it with fleet attach {branch} or fleet prompt {branch}, or end it with fleet kill "
            f"{branch}. For another agent, choose another name.",
            code="branch_taken",
        )
    if exists:
        raise Refused(
            f"There is already a branch {branch}.",
            fix=f"Choose another name; --base {branch} starts from it. Or delete it, if it is "
            f"merged: git branch -d {branch}",
            code="branch_taken",
        )


def _check_directory(repo: Repo, cwd: Path, base: str) -> None:
    """Raise `BadInput` when the base commit, and so a worktree, does not have this directory."""
    directory = cwd.resolve()
    if directory == repo.top or not directory.is_relative_to(repo.top):
        return
    name = directory.relative_to(repo.top)
    if repo.git("cat-file", "-e", f"{base or 'HEAD'}:{name}", check=False).status:
        raise BadInput(
            f"{name} is not in {base or 'the last commit'}, so the task's worktree would lack it.",
            fix=f"Commit a file in it, or work at the top: cd {repo.top}",
            code="no_directory",
        )


def check_base(cwd: str, base: str) -> None:
    """Raise `BadInput` when the repository there has no such commit; empty: none is named."""
    from fleet.adapters.git.repo import Repo

    repo = Repo.of(Path(cwd))
    if base and not repo.has_commit(base):
        raise BadInput(
            f"There is no commit '{base}' in {repo.top} to start from.",
            fix="Name a branch, a tag or a commit: `git branch --all` lists branches.",
            code="no_commit",
        )


def check_agent(app: App, spec: Spec, project: str) -> None:
    """Raise what would keep an agent from starting here at once."""
    check_start(app, spec, project)
    choice = _chosen(app, spec, project)
    _check_terminal(app, spec, choice, project)
    _check_gateway(app, choice, project)
    if not app.home.supervisor_pid():  # a supervisor would start it, with its own PATH
        _check_program(app, choice, project)


def _check_gateway(app: App, choice: Choice, project: str) -> None:
    """Raise `Unavailable` when the agent needs the gateway and that does not answer."""
    from fleet.supervisor.attempt.launch import gateway_of

    gateway = gateway_of(app.worlds(project).fleet, choice)
    if gateway is None:
        return
    from urllib.parse import urlsplit

    from fleet.adapters.machine.doctor_checks import is_taken
    from fleet.domain.fleet import url_of

    address = urlsplit(url_of(gateway))
    if not is_taken(gateway.port, address.hostname or ""):
        raise Unavailable(
            f"The gateway at {address.geturl()} does not answer, so {choice.agent} could not"
            f" reach its model {choice.model}.",
            fix="Start it: fleet up",
            code="no_gateway",
        )


def _check_program(app: App, choice: Choice, project: str) -> None:
    """Raise `Refused` when the program of its coder is not on PATH."""
    if program := missing_program(app, choice, project):
        raise Refused(
            f"{program} is not on PATH.",
            fix=f"Install {program}, or choose another agent: `fleet coders` lists the coders.",
            code="no_program",
        )


def _check_terminal(app: App, spec: Spec, choice: Choice, project: str) -> None:
    """Raise `Refused` when the task asks for a terminal and its coder cannot run in one."""
    from fleet.domain.task import Mode
    from fleet.supervisor.attempt.launch import must_run_in_terminal

    if spec.mode == Mode.TERMINAL:
        must_run_in_terminal(app.coder(choice.coder, project))


def _chosen(app: App, spec: Spec, project: str) -> Choice:
    """Return the agent and coder for a task; raise `NotFound` when one does not exist."""
    from fleet.operations.shared.choice import choose_in

    world = app.worlds(project)
    if spec.coder:
        world.fleet.check_coder(spec.coder)
    return choose_in(world, spec)[1]


def missing_program(app: App, choice: Choice, project: str) -> str:
    """Return the coder's program if it is not on PATH; empty for a path inside the worktree."""
    import shutil

    from fleet.adapters.coders.shared.programs import executable

    command = app.worlds(project).fleet.agent(choice.agent).command
    program = command[0] if command else executable(app.coder(choice.coder, project))
    if not program or ("/" in program and not program.startswith("/")):
        return ""
    path = os.pathsep.join([str(Path(sys.executable).parent), app.env.get("PATH", os.defpath)])
    return "" if shutil.which(program, path=path) else program


def uncommitted(cwd: str) -> int:
    """How many tracked files differ there from HEAD."""
    from fleet.adapters.git.repo import uncommitted

    return uncommitted(Path(cwd))
