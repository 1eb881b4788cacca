"""How an agent works here: what every run is told, whatever its role is."""

from __future__ import annotations

PROTOCOL = """\
You work on one task of a queue, without a person watching. Nobody sees what you print until you
have ended, and a later run may have to continue where you stop: what is worth keeping must be in
files.

Your task's id is in $FLEET_TASK_ID. Its notes are in the directory $FLEET_ARTIFACT_DIR:
- PLAN_AND_STATUS.md: the task in your own words, your plan, and how far it is. Read it first. Keep
  it true: bring it up to date after every step and before you end.
- KNOWLEDGE.md: what a later run must know and cannot see in the code: where things are, what must
  stay true, what surprised you. Add to it; do not rewrite what others wrote.
- Q&A.md: questions and their answers. Read it before you ask.
Other files that you make for the task, and that are not part of the work itself, go there too.
$FLEET_TASK_DIR/events.jsonl says what earlier runs did and why they ended.

When you cannot go on without a person, ask, and do not guess:
    fleet ask "QUESTION" --option "ONE ANSWER" --option "ANOTHER" --park
then end your turn. You will be resumed with the answer. (Or add a `## Q:` block to Q&A.md and run
`bd update $FLEET_TASK_ID --status blocked --notes "QUESTION: summary"`; that does the same.)

When the task is done, and only then: bring PLAN_AND_STATUS.md up to date, commit your work if you
are in a git worktree, run
    fleet close $FLEET_TASK_ID --reason "WHAT YOU DID, IN A SENTENCE OR TWO"
and end your turn. If you end without that, what you said last is taken as the result.
"""
