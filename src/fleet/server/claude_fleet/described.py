"""The paths of claude-fleet's clients in words and types, for who reads `/openapi.json`."""

from __future__ import annotations

from typing import Any

from fleet.server.claude_fleet import bodies
from fleet.server.claude_fleet import paths_talk as talk
from fleet.server.claude_fleet import reply_types as replies
from fleet.server.claude_fleet.auth import EnrolBody
from fleet.server.http.compat import Described


def described() -> tuple[Described, ...]:
    """Every path of `paths.PATHS`, and `/auth`."""
    return tuple(_D(*words.split(" ", 1), *rest) for words, *rest in TABLE)


_D = Described
_B, _R, _T = bodies, replies, talk
_TREE = "/orchestrate/worktree/{handle:path}"
TABLE: tuple[tuple[Any, ...], ...] = (
    ("POST /auth", "Exchange a secret for a token.", _R.EnrolledReply, EnrolBody, None, True),
    ("GET /teams/{team}/agents", "List the members of a team.", list[_R.MemberReply], None, _B.PageAsked),
    ("GET /teams/{team}/tasks", "List a team's tasks.", list[_R.TaskReply], None, _B.PageAsked),
    ("POST /teams/{team}/broadcast", "Send mail to the whole team.", _R.SentReply, _B.BroadcastBody),
    ("POST /tasks", "Queue a task, or give it to the member that toHandle names.", _R.TaskReply, _B.TaskBody),
    ("GET /tasks/{id}", "Show one task.", _R.TaskReply),
    ("PATCH /tasks/{id}", "Set a task's status.", _R.TaskReply, _B.StatusBody),
    ("POST /orchestrate/spawn", "Queue an agent.", _R.SpawnedReply, _B.SpawnBody),
    ("POST /orchestrate/dismiss/{handle:path}", "End an agent.", _R.EndedReply),
    ("POST /orchestrate/send/{handle:path}", "Queue a message for an agent.", _R.QueuedWordsReply, _B.WordsBody),
    ("GET /orchestrate/workers", "List the agents at work.", list[_R.WorkerReply]),
    ("GET /orchestrate/output/{handle:path}", "Read an agent's output.", _R.OutputReply),
    ("POST /mail", "Send mail.", _R.MailReply, _B.MailBody),
    ("GET /mail/{handle}", "List a member's mail.", list[_R.MailReply], None, _B.PageAsked),
    ("GET /mail/{handle}/unread", "List a member's unread mail.", list[_R.MailReply], None, _B.PageAsked),
    ("POST /mail/{id}/read", "Mark a mail as read.", _R.ReadReply),
    ("POST /blackboard", "Post to a board.", _R.PostReply, _B.PostBody),
    ("POST /blackboard/mark-read", "Mark posts as read.", _R.MarkedReply, _B.ReadBody),
    ("POST /blackboard/archive", "Archive posts of a board.", _R.ArchivedReply, _B.ArchiveBody),
    ("GET /blackboard/{swarm}", "Read a board.", list[_R.PostReply], None, _B.BoardAsked),
    ("POST /blackboard/{swarm}/archive-old", "Archive the old posts of a board.", _R.ArchivedReply, _B.OldBody),
    ("POST /spawn-queue", "Queue an agent.", _R.QueuedReply, _B.QueueBody),
    ("GET /spawn-queue/status", "List the queued agents.", _R.QueueReply, None, _B.PageAsked),
    ("GET /spawn-queue/{id}", "Show a queued agent.", _R.QueuedReply),
    ("DELETE /spawn-queue/{id}", "Take an agent out of the queue.", _R.EndedReply),
    ("POST /checkpoints", "Save a checkpoint.", _R.CheckpointReply, _B.CheckpointBody),
    ("GET /checkpoints/{id}", "Load a checkpoint.", _R.CheckpointReply),
    ("GET /checkpoints/latest/{handle}", "Load the newest checkpoint.", _R.CheckpointReply),
    (
        "GET /checkpoints/list/{handle}", "List a member's checkpoints.", list[_R.CheckpointReply], None,
        _B.CheckpointsAsked,
    ),
    ("POST /checkpoints/{id}/accept", "Accept a checkpoint and continue from it.", _R.SettledReply),
    ("POST /checkpoints/{id}/reject", "Reject a checkpoint.", _R.SettledReply, _B.RejectBody),
    ("POST /swarms", "Create a swarm.", _R.SwarmReply, _B.SwarmBody),
    ("GET /swarms", "List the swarms.", list[_R.SwarmReply], None, _B.SwarmsAsked),
    ("GET /swarms/{id}", "Show a swarm.", _R.SwarmReply),
    ("POST /swarms/{id}/kill", "End a swarm.", _R.KilledReply, _B.KillBody),
    ("POST /memory/store", "Store a memory under a key.", _R.MemoryReply, _B.MemoryBody),
    ("GET /memory/recall/{agent}/{key:path}", "Recall a memory by its key.", _R.MemoryReply),
    ("POST /memory/search", "Search the memories.", _R.ResultsReply, _B.SearchBody),
    ("GET /memory/{agent}", "List a member's memories.", _R.MemoriesReply, None, _B.PageAsked),
    ("GET /users/{uid}", "Show a team member.", _R.MemberReply),
    ("GET /users/{uid}/chats", "List your chats.", list[_R.ChatReply], None, _T.ChatsAsked),
    ("POST /chats", "Open a chat.", _R.OpenedReply, _T.ChatBody),
    (
        "GET /chats/{chat}/messages", "Read a chat.", list[_R.SayingReply], None, _T.MessagesAsked,
    ),
    ("POST /chats/{chat}/messages", "Send a message to a chat.", _R.SayingReply, _T.SayBody),
    ("POST /chats/{chat}/read", "Mark a chat as read.", _R.SuccessReply, _T.ChatReadBody),
    (f"GET {_TREE}/status", "Show a worktree.", _R.StandingReply),
    (f"POST {_TREE}/commit", "Commit all changes in a worktree.", _R.CommittedReply, _T.CommitBody),
    (f"POST {_TREE}/push", "Push a worktree's branch.", _R.PushedReply),
    (f"POST {_TREE}/merge", "Merge a worktree's branch.", _R.MergedReply, _T.MergeBody),
    (f"POST {_TREE}/pr", "Open a pull request.", _R.ProposedReply, _T.ProposeBody),
)  # fmt: skip
