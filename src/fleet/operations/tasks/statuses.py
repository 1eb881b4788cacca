"""The words that a list shows for where a task stands, each with what it means.

They load nothing, for the shell that completes them. `rows` says which one a task has.
"""

from __future__ import annotations

STATUSES = {
    "ready": "Nothing holds it: it starts when there is room.",
    "waiting": "It waits for other tasks.",
    "children": "It has child tasks and no run of its own.",
    "postponed": "It is tried again later, by itself.",
    "assigned": "A member does it by hand.",
    "starting": "Its workspace is being made ready.",
    "running": "A coder works on it.",
    "stopping": "Its coder is being ended.",
    "asking": "It asks something, and waits for the answer.",
    "paused": "It waits for a person: who paused it, or who has to change something first.",
    "held": "A worker asked for it; a team-lead or a coordinator must let it run.",
    "review": "Its agent is done; a person looks first.",
    "failed": "Its attempts are spent: a person must act.",
    "done": "It is done, and its gate passed.",
    "landing": "It is done, and its work waits to come to its branch.",
    "landed": "It is done, and its work is on its branch.",
    "beaten": "It is done, and another task's solution of the same work was picked.",
    "cancelled": "It is not wanted any more.",
}

OPEN = ("ready", "waiting", "postponed", "assigned", "asking", "paused", "held")
AT_WORK = ("starting", "running", "stopping")
ENDED = ("failed", "cancelled", "done")
# The tasks that a command can take: for the shell that completes them, and for patterns.
TAKES = {
    "cancel": (*OPEN, *AT_WORK, "children", "review", "failed"),
    "retry": (*ENDED, "review"),
    "reopen": ("asking", "paused", "postponed", "held", "assigned", "review", *ENDED),
    "close": (*OPEN, "review", "failed"),
    "pause": (*(status for status in OPEN if status != "paused"), *AT_WORK),
    "resume": ("paused", "postponed", "held", "asking"),
    "merge": ("done", "review"),
    "wait": (*OPEN, *AT_WORK, "children"),
}
RETRIED = ("failed",)  # by a pattern: it means no task that somebody cancelled
