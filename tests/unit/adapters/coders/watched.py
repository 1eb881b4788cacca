"""A coder in a terminal, for tests that were made for its lines."""

from __future__ import annotations

import json

from fleet.domain.transcript import Conversation, hear
from fleet.ports import Brief


class Watched:
    """Its transcripts are in `<name>-terminal`."""

    def __init__(self, coder) -> None:
        self.coder, self.name = coder, f"{coder.name}-terminal"

    def listen(self, opening):
        return self.coder.watch(opening)


def launched(coder, prompt="Do it.", **fields):
    options = fields.pop("options", {})
    brief = Brief("t-1.1", prompt, "/repo", "/tasks/t-1", options=options, **fields)
    return coder.launch_in_terminal(brief)


def heard(coder, *lines, opening="s"):
    """All that is said, and what it comes to."""
    listener, so_far = coder.watch(opening), Conversation()
    said = [one for line in lines for one in listener.hear(json.dumps(line))]
    for one in said:
        so_far = hear(so_far, one)
    return said, so_far
