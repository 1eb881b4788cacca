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
    "paused": "A person, or its budget, holds it.",
    "held": "A worker asked for it; a team-lead or a coordinator must let it run.",
    "review": "Its agent is done; a person looks first.",
    "failed": "Its attempts are spent: a person must act.",
    "done": "It is done, and its gate passed.",
    "cancelled": "It is not wanted any more.",
}
