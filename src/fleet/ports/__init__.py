"""Everything the core needs from outside, a module for each noun. Fakes ship in `fleet.testing`.

What passes through a port is a named tuple, or the row that an operation replies.
`from fleet.ports import Store` loads `fleet.ports.store` alone: a command pays for what it uses.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fleet.ports.audit import AuditTrail as AuditTrail
    from fleet.ports.checkout import Checkout as Checkout
    from fleet.ports.checkout import Merge as Merge
    from fleet.ports.checkout import Site as Site
    from fleet.ports.clock import Clock as Clock
    from fleet.ports.coder import Brief as Brief
    from fleet.ports.coder import Coder as Coder
    from fleet.ports.coder import InTerminal as InTerminal
    from fleet.ports.coder import Listener as Listener
    from fleet.ports.files import QA as QA
    from fleet.ports.files import QaText as QaText
    from fleet.ports.files import TaskFiles as TaskFiles
    from fleet.ports.hosts import Hosts as Hosts
    from fleet.ports.jobs import Beside as Beside
    from fleet.ports.jobs import Job as Job
    from fleet.ports.jobs import Jobs as Jobs
    from fleet.ports.launcher import NOTHING as NOTHING
    from fleet.ports.launcher import Launch as Launch
    from fleet.ports.launcher import Launcher as Launcher
    from fleet.ports.launcher import Look as Look
    from fleet.ports.launcher import Presence as Presence
    from fleet.ports.nodes import Backend as Backend
    from fleet.ports.nodes import Nodes as Nodes
    from fleet.ports.nodes import Pulse as Pulse
    from fleet.ports.notifier import Mark as Mark
    from fleet.ports.notifier import Notifier as Notifier
    from fleet.ports.report import Report as Report
    from fleet.ports.store import Change as Change
    from fleet.ports.store import EntryQuery as EntryQuery
    from fleet.ports.store import MessageQuery as MessageQuery
    from fleet.ports.store import Put as Put
    from fleet.ports.store import Record as Record
    from fleet.ports.store import Same as Same
    from fleet.ports.store import Store as Store
    from fleet.ports.store import TaskQuery as TaskQuery
    from fleet.ports.store import Totals as Totals
    from fleet.ports.terminal import Screen as Screen
    from fleet.ports.terminal import ScreenState as ScreenState
    from fleet.ports.terminal import Terminal as Terminal
    from fleet.ports.tracker import Bead as Bead
    from fleet.ports.tracker import Tracker as Tracker
    from fleet.ports.transcripts import Chunk as Chunk
    from fleet.ports.transcripts import Transcripts as Transcripts
    from fleet.ports.worktrees import ChangedFile as ChangedFile
    from fleet.ports.worktrees import CommitRow as CommitRow
    from fleet.ports.worktrees import MergeRow as MergeRow
    from fleet.ports.worktrees import PushRow as PushRow
    from fleet.ports.worktrees import WorktreeRow as WorktreeRow
    from fleet.ports.worktrees import Worktrees as Worktrees
    from fleet.ports.world import Chosen as Chosen
    from fleet.ports.world import World as World

NAMES = {
    "audit": "AuditTrail",
    "checkout": "Checkout Merge Site",
    "clock": "Clock",
    "coder": "Brief Coder InTerminal Listener",
    "files": "QA QaText TaskFiles",
    "hosts": "Hosts",
    "jobs": "Beside Job Jobs",
    "launcher": "Launch Launcher Look NOTHING Presence",
    "nodes": "Backend Nodes Pulse",
    "notifier": "Mark Notifier",
    "report": "Report",
    "store": "Change EntryQuery MessageQuery Put Record Same Store TaskQuery Totals",
    "terminal": "Screen ScreenState Terminal",
    "tracker": "Bead Tracker",
    "transcripts": "Chunk Transcripts",
    "worktrees": "ChangedFile CommitRow MergeRow PushRow Worktrees WorktreeRow",
    "world": "Chosen World",
}
_MODULE_OF = {name: module for module, names in NAMES.items() for name in names.split()}


if not TYPE_CHECKING:  # else every name would pass as one of Any

    def __getattr__(name: str) -> Any:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        return value
