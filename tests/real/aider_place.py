"""A place for Aider, whose requests have no tools: the script answers all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.adapters.coders.aider.coder import AiderCoder
from fleet.testing.model_server import say
from tests.real.driver import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fleet.testing.model_server import Asked, Reply
    from tests.real.programs import Drive


class AiderPlace(Place):
    def __init__(self, folder: Path) -> None:
        super().__init__(AiderCoder(), folder)

    def drive(self, script: Sequence[Reply], **fields: Any) -> Drive:
        made = super().drive(answering(script), **fields)
        self.servers[-1].aside = None
        return made


def answering(script: Sequence[Reply]) -> Callable[[Asked], Reply]:
    """Beside the conversation it asks for words to commit with."""

    def answer(asked: Asked) -> Reply:
        if "commit message" in asked.system:
            return say("Greet the fleet", input=30)
        return script[min(asked.number, len(script) - 1)]

    return answer


def edit(text: str, *, file: str = "hello.txt", **tokens: int) -> Reply:
    """The whole file anew, which is how Aider lets an unknown model edit."""
    return say(f"I shall greet.\n\n{file}\n```\n{text}\n```\n", **tokens)
