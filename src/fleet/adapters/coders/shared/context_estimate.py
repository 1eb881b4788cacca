"""How full a context is, for coders that do not say: about four characters are a token.

What is counted is what passes through our hands. The coder's own instructions and the files that
it reads in silence do not, so the figure is low; it is shown with a `~`.
"""

from __future__ import annotations

from fleet.domain.run import Usage
from fleet.domain.transcript import Said, SaidKind

CHARACTERS = 4


class Estimate:
    def __init__(self, *texts: str) -> None:
        self._characters = sum(map(len, texts))

    def add(self, text: str) -> None:
        self._characters += len(text)

    @property
    def tokens(self) -> int:
        return -(-self._characters // CHARACTERS)

    def usage(self) -> Said:
        """The context so far; of what was paid for, nothing is known."""
        return Said(SaidKind.USAGE, usage=Usage(context=self.tokens, estimated=True))
