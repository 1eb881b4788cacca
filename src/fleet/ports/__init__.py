"""Everything the core needs from outside, a module for each noun. Fakes ship in `fleet.testing`.

Ports take and return named tuples, or the rows that operations reply.
`from fleet.ports import Store` loads only `fleet.ports.store`: a command pays for what it uses.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fleet.ports.audit import AuditTrail as AuditTrail
    from fleet.ports.checkout import Checkout as Checkout
    from fleet.ports.checkout import Merge as Merge
    from fleet.ports.checkout import Site as Site
    from fleet.ports.checkout import Tip as Tip
    from fleet.ports.clock import Clock as Clock
    from fleet.ports.coder import Brief as Brief
    from fleet.ports.coder import Coder as Coder
    from fleet.ports.coder import Forks as Forks
    from fleet.ports.coder import InTerminal as InTerminal
    from fleet.ports.coder import Listener as Listener
    from fleet.ports.commit_log import CommitLog as CommitLog
    from fleet.ports.files import QA as QA
    from fleet.ports.files import QaText as QaText
    from fleet.ports.files import TaskFiles as TaskFiles
    from fleet.ports.forge import Forge as Forge
    from fleet.ports.forge import Forges as Forges
    from fleet.ports.forge import Ticket as Ticket
    from fleet.ports.forge import Tracking as Tracking
    from fleet.ports.hosts import Hosts as Hosts
    from fleet.ports.hosts import ProjectPaths as ProjectPaths
    from fleet.ports.hosts import StoreLogin as StoreLogin
    from fleet.ports.hosts import StoreLogins as StoreLogins
    from fleet.ports.jobs import Beside as Beside
    from fleet.ports.jobs import Job as Job
    from fleet.ports.jobs import Jobs as Jobs
    from fleet.ports.landing import Arrival as Arrival
    from fleet.ports.landing import Branches as Branches
    from fleet.ports.landing import Built as Built
    from fleet.ports.landing import Fit as Fit
    from fleet.ports.landing import GateWorktrees as GateWorktrees
    from fleet.ports.landing import MemberWork as MemberWork
    from fleet.ports.landing import Target as Target
    from fleet.ports.launcher import NOTHING as NOTHING
    from fleet.ports.launcher import Launch as Launch
    from fleet.ports.launcher import Launcher as Launcher
    from fleet.ports.launcher import Look as Look
    from fleet.ports.launcher import Presence as Presence
    from fleet.ports.machines import GatewaySeen as GatewaySeen
    from fleet.ports.machines import Machines as Machines
    from fleet.ports.machines import NodesSeen as NodesSeen
    from fleet.ports.machines import ServiceSeen as ServiceSeen
    from fleet.ports.nodes import Backend as Backend
    from fleet.ports.nodes import GatewayPulse as GatewayPulse
    from fleet.ports.nodes import Nodes as Nodes
    from fleet.ports.nodes import Pulse as Pulse
    from fleet.ports.notifier import Mark as Mark
    from fleet.ports.notifier import Notifier as Notifier
    from fleet.ports.report import Report as Report
    from fleet.ports.store import STANDINGS as STANDINGS
    from fleet.ports.store import Change as Change
    from fleet.ports.store import EntryQuery as EntryQuery
    from fleet.ports.store import LandingQuery as LandingQuery
    from fleet.ports.store import MessageQuery as MessageQuery
    from fleet.ports.store import Offer as Offer
    from fleet.ports.store import Put as Put
    from fleet.ports.store import Record as Record
    from fleet.ports.store import Same as Same
    from fleet.ports.store import Store as Store
    from fleet.ports.store import TaskQuery as TaskQuery
    from fleet.ports.store import TaskSearch as TaskSearch
    from fleet.ports.store import Totals as Totals
    from fleet.ports.terminal import Agents as Agents
    from fleet.ports.terminal import FileSeen as FileSeen
    from fleet.ports.terminal import GateSeen as GateSeen
    from fleet.ports.terminal import Screen as Screen
    from fleet.ports.terminal import ScreenState as ScreenState
    from fleet.ports.terminal import SeatedAt as SeatedAt
    from fleet.ports.terminal import Sight as Sight
    from fleet.ports.terminal import Subject as Subject
    from fleet.ports.terminal import Terminal as Terminal
    from fleet.ports.tracker import Bead as Bead
    from fleet.ports.tracker import Tracker as Tracker
    from fleet.ports.transcripts import Chunk as Chunk
    from fleet.ports.transcripts import Passage as Passage
    from fleet.ports.transcripts import SaidLine as SaidLine
    from fleet.ports.transcripts import SaidQuery as SaidQuery
    from fleet.ports.transcripts import SaidSearch as SaidSearch
    from fleet.ports.transcripts import Transcripts as Transcripts
    from fleet.ports.worktrees import Ahead as Ahead
    from fleet.ports.worktrees import ChangedFile as ChangedFile
    from fleet.ports.worktrees import CommitRow as CommitRow
    from fleet.ports.worktrees import DiffRow as DiffRow
    from fleet.ports.worktrees import DiffWish as DiffWish
    from fleet.ports.worktrees import FileDiff as FileDiff
    from fleet.ports.worktrees import Finished as Finished
    from fleet.ports.worktrees import Hunk as Hunk
    from fleet.ports.worktrees import MergeRow as MergeRow
    from fleet.ports.worktrees import Outlook as Outlook
    from fleet.ports.worktrees import PushRow as PushRow
    from fleet.ports.worktrees import TaskDiff as TaskDiff
    from fleet.ports.worktrees import WorktreeRow as WorktreeRow
    from fleet.ports.worktrees import Worktrees as Worktrees
    from fleet.ports.world import Chosen as Chosen
    from fleet.ports.world import Gated as Gated
    from fleet.ports.world import Landed as Landed
    from fleet.ports.world import ShownSetting as ShownSetting
    from fleet.ports.world import Spending as Spending
    from fleet.ports.world import World as World

NAMES = {
    "audit": "AuditTrail",
    "checkout": "Checkout Merge Site Tip",
    "clock": "Clock",
    "coder": "Brief Coder Forks InTerminal Listener",
    "commit_log": "CommitLog",
    "files": "QA QaText TaskFiles",
    "forge": "Forge Forges Ticket Tracking",
    "hosts": "Hosts ProjectPaths StoreLogin StoreLogins",
    "jobs": "Beside Job Jobs",
    "landing": "Arrival Branches Built Fit GateWorktrees MemberWork Target",
    "launcher": "Launch Launcher Look NOTHING Presence",
    "machines": "GatewaySeen Machines NodesSeen ServiceSeen",
    "nodes": "Backend GatewayPulse Nodes Pulse",
    "notifier": "Mark Notifier",
    "report": "Report",
    "store": "Change EntryQuery LandingQuery MessageQuery Offer Put Record STANDINGS Same Store TaskQuery TaskSearch Totals",
    "terminal": "Agents FileSeen GateSeen Screen ScreenState SeatedAt Sight Subject Terminal",
    "tracker": "Bead Tracker",
    "transcripts": "Chunk Passage SaidLine SaidQuery SaidSearch Transcripts",
    "worktrees": "Ahead ChangedFile CommitRow DiffRow DiffWish FileDiff Finished Hunk MergeRow Outlook PushRow TaskDiff Worktrees WorktreeRow",
    "world": "Chosen Gated Landed ShownSetting Spending World",
}
_MODULE_OF = {name: module for module, names in NAMES.items() for name in names.split()}


if not TYPE_CHECKING:  # otherwise mypy would take every name here for Any

    def __getattr__(name: str) -> Any:
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        return value
