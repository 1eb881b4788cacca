"""Every request that a program can send with `fleet.connect`, by name.

Made from the catalogue by `scripts/reference_requests.py`; do not edit.
"""

# ruff: noqa: PLC0414  # an import under its own name is one that others may import here

from __future__ import annotations

from fleet.operations.messages.alerts import RaiseAlert as RaiseAlert
from fleet.operations.messages.alerts import SendNotice as SendNotice
from fleet.operations.messages.ask_answer_send import Answer as Answer
from fleet.operations.messages.ask_answer_send import Ask as Ask
from fleet.operations.messages.ask_answer_send import Comment as Comment
from fleet.operations.messages.ask_answer_send import ListQuestions as ListQuestions
from fleet.operations.messages.ask_answer_send import ReadMessage as ReadMessage
from fleet.operations.messages.ask_answer_send import SendWords as SendWords
from fleet.operations.messages.ask_answer_send import TakeAnswer as TakeAnswer
from fleet.operations.messages.ask_answer_send import Unsend as Unsend
from fleet.operations.messages.boards import ArchivePosts as ArchivePosts
from fleet.operations.messages.boards import MarkRead as MarkRead
from fleet.operations.messages.boards import Post as Post
from fleet.operations.messages.boards import ReadBoard as ReadBoard
from fleet.operations.messages.chats import ListChats as ListChats
from fleet.operations.messages.chats import MarkChat as MarkChat
from fleet.operations.messages.chats import OpenChat as OpenChat
from fleet.operations.messages.chats import ReadChat as ReadChat
from fleet.operations.messages.chats import Say as Say
from fleet.operations.messages.mail import Broadcast as Broadcast
from fleet.operations.messages.mail import ListMail as ListMail
from fleet.operations.messages.mail import ReadMail as ReadMail
from fleet.operations.messages.mail import SendMail as SendMail
from fleet.operations.messages.mail import TakeMail as TakeMail
from fleet.operations.tasks.assign import AssignTask as AssignTask
from fleet.operations.tasks.at_work import ListAgents as ListAgents
from fleet.operations.tasks.change import AddTask as AddTask
from fleet.operations.tasks.change import CancelTask as CancelTask
from fleet.operations.tasks.change import CloseTask as CloseTask
from fleet.operations.tasks.change import PauseTask as PauseTask
from fleet.operations.tasks.change import ResumeTask as ResumeTask
from fleet.operations.tasks.change import RetryTask as RetryTask
from fleet.operations.tasks.dependencies import AddDependency as AddDependency
from fleet.operations.tasks.dependencies import RemoveDependency as RemoveDependency
from fleet.operations.tasks.edit import EditTask as EditTask
from fleet.operations.tasks.list import ListTasks as ListTasks
from fleet.operations.tasks.list import ReadyTasks as ReadyTasks
from fleet.operations.tasks.show import ShowTask as ShowTask
from fleet.operations.tasks.spawn import SpawnAgent as SpawnAgent
from fleet.operations.tasks.stop import StopRuns as StopRuns
from fleet.operations.tasks.transcript import ReadTranscript as ReadTranscript
from fleet.operations.team.audit import ListAudit as ListAudit
from fleet.operations.team.checkpoints import AcceptCheckpoint as AcceptCheckpoint
from fleet.operations.team.checkpoints import LatestCheckpoint as LatestCheckpoint
from fleet.operations.team.checkpoints import ListCheckpoints as ListCheckpoints
from fleet.operations.team.checkpoints import LoadCheckpoint as LoadCheckpoint
from fleet.operations.team.checkpoints import RejectCheckpoint as RejectCheckpoint
from fleet.operations.team.checkpoints import SaveCheckpoint as SaveCheckpoint
from fleet.operations.team.enrolments import CreateEnrolment as CreateEnrolment
from fleet.operations.team.enrolments import Enrol as Enrol
from fleet.operations.team.enrolments import ListEnrolments as ListEnrolments
from fleet.operations.team.enrolments import RevokeEnrolment as RevokeEnrolment
from fleet.operations.team.enrolments import ShowEnrolment as ShowEnrolment
from fleet.operations.team.file_claims import ClaimFile as ClaimFile
from fleet.operations.team.file_claims import ListFiles as ListFiles
from fleet.operations.team.file_claims import ReleaseFile as ReleaseFile
from fleet.operations.team.members import BeSeen as BeSeen
from fleet.operations.team.members import ListMembers as ListMembers
from fleet.operations.team.members import ShowMember as ShowMember
from fleet.operations.team.memory import ListMemory as ListMemory
from fleet.operations.team.memory import Recall as Recall
from fleet.operations.team.memory import SearchMemory as SearchMemory
from fleet.operations.team.memory import StoreMemory as StoreMemory
from fleet.operations.team.swarms import CreateSwarm as CreateSwarm
from fleet.operations.team.swarms import KillSwarm as KillSwarm
from fleet.operations.team.swarms import ListSwarms as ListSwarms
from fleet.operations.team.swarms import ShowSwarm as ShowSwarm
from fleet.operations.team.tokens import CreateToken as CreateToken
from fleet.operations.team.tokens import ListTokens as ListTokens
from fleet.operations.team.tokens import RevokeToken as RevokeToken
from fleet.operations.worktrees import CommitWorktree as CommitWorktree
from fleet.operations.worktrees import MergeWorktree as MergeWorktree
from fleet.operations.worktrees import ProposeWorktree as ProposeWorktree
from fleet.operations.worktrees import PushWorktree as PushWorktree
from fleet.operations.worktrees import ShowWorktree as ShowWorktree
