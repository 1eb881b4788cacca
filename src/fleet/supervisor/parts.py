"""The ports a supervisor works with. `app` passes the real ones, a test passes fakes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.data import dataclass
from fleet.domain.hosts.lease import ALONE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from fleet.config import Settings
    from fleet.domain.fleet import Gateway
    from fleet.domain.run import Choice, Workspace
    from fleet.ports import (
        Checkout,
        Clock,
        Coder,
        Jobs,
        Launcher,
        Nodes,
        Store,
        TaskFiles,
        Terminal,
        Transcripts,
        World,
    )


@dataclass(frozen=True, slots=True)
class Parts:
    store: Store
    launcher: Launcher
    transcripts: Transcripts
    clock: Clock
    jobs: Jobs
    quick: Jobs  # for jobs that must not queue behind the set-up of a workspace
    coder: Callable[
        [str, str], Coder
    ]  # of (name, project); raise `Refused` when fleet cannot drive it
    world: Callable[[str], World[Settings]]  # of a project; raise `BadConfig`
    checkout: Callable[[str], Checkout]  # of a project
    task_dir: Callable[[str], Path]
    env: Callable[[str, str], Mapping[str, str]]  # of (task, run): the environment of its coder
    workspace_env: Callable[
        [str, Workspace], Mapping[str, str]
    ]  # of (project, workspace): what the workspace adds
    gateway_key: Callable[[Gateway], str]  # empty when the gateway has no key yet
    provider_keys: Callable[[str], tuple[str, ...] | None]  # see `for_coder`
    jitter: Callable[[], float]
    files: TaskFiles
    nodes: Nodes
    terminal: Terminal
    missing_program: Callable[[Choice, str], str] = lambda _choice, _project: (
        ""
    )  # its program, if that is not on PATH
    gate_environment: Callable[[str], tuple[str, ...]] = lambda _project: ()  # see `result_id`
    is_here: Callable[[str], bool] = lambda _path: True  # whether a directory is on this host
    ahead: Path | None = None  # the file that records workspaces made ahead; None: none are


@dataclass(frozen=True, slots=True)
class ThisSupervisor:
    """This host, this process of its supervisor, and how `fleet run` was called."""

    host: str
    name: str
    boot: str
    holder: str
    coder: str = ""  # `fleet run --coder`
    max_concurrent: int = 0  # `fleet run --max`; 0: as the settings say
    shared: bool = False  # other hosts use this store, so keepers have leases
    lease: int = ALONE  # seconds
    labels: tuple[str, ...] = ()  # besides its id and name
    release: str = ""  # of this fleet
