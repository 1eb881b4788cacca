"""What the pages quote is what the program prints: people search for it."""

from __future__ import annotations

import re

import pytest

from tests.docs.tree import TOP

PAGE = TOP / "docs" / "how-to" / "troubleshooting.md"
QUOTES = re.findall(r'^\*\*"([^"]+)"\*\*', PAGE.read_text("utf-8"), flags=re.MULTILINE)


def printed() -> str:
    files = [*(TOP / "src").rglob("*.py"), *(TOP / "scripts").iterdir(), TOP / "Makefile"]
    texts = (file.read_text("utf-8", "replace") for file in files if file.is_file())
    return re.sub(r'"\s*\n\s*f?"', "", "\n".join(texts))


@pytest.mark.parametrize("quote", QUOTES)
def test_a_message_that_troubleshooting_quotes_is_printed_somewhere(quote):
    assert quote in printed()
