"""How full a context is, for coders that do not say: about four characters are a token.

What is counted is what passes through our hands. The coder's own instructions and the files that
it reads in silence do not, so the figure is low; it is shown with a `~`.
"""

from __future__ import annotations

from fleet.domain.run import Usage
from fleet.domain.transcript import Said, SaidKind

CHARACTERS = 4


class ContextEstimate:
    def __init__(self, *texts: str) -> None:
        self._characters = sum(map(len, texts))
        self._reported = 0  # characters, at the last report

    def add(self, text: str) -> None:
        self._characters += len(text)

    @property
    def tokens(self) -> int:
        return -(-self._characters // CHARACTERS)

    def has_grown(self) -> bool:
        """Whether the context has grown by over 1 % since the last report, and should be reported again."""
        return self._characters * 100 > self._reported * 101

    def usage(self) -> Said:
        """The estimated usage: only the size of the context; tokens and cost are unknown."""
        self._reported = self._characters
        return Said(SaidKind.USAGE, usage=Usage(context=self.tokens, estimated=True))
