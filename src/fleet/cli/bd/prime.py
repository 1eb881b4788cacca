"""What an agent needs to know about the queue."""

from __future__ import annotations

WORDS = """\
# The queue

Tasks are in Fleet's queue. `bd` here speaks to it: the same words as beads, no database of its own.

## Your task
- `bd show $FLEET_TASK_ID` shows it. It is yours already; it needs no claim.
- Done: `bd close $FLEET_TASK_ID --reason "What you did."`, then end.
- Blocked by something only a person can say: append a `## Q:` block to `$FLEET_ARTIFACT_DIR/Q&A.md`, run
  `bd update $FLEET_TASK_ID --status blocked --notes "QUESTION: in one sentence"`, then end your turn.
  You are resumed with the answer.

## Other work
- `bd ready` lists what could start, `bd list` what there is, `bd blocked` what waits for other tasks.
- Found more to do: `bd create "Title" --description "…"`. It gets a run of its own; do not do it yourself.
- `--deps ID` lets the new task wait for another, `--deps blocks:ID` lets that one wait for it.
- `bd dep add ID NEEDS`: ID waits for NEEDS. `bd comment ID "…"` writes a note for whoever comes next.

Every command takes --json. There is nothing to sync, push or commit for the queue.
"""
