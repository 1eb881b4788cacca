"""Write a generated page; with `--check` only say whether it is stale."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def main(page: Path, text: str) -> int:
    if sys.argv[1:] != ["--check"]:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
        return 0
    if page.exists() and page.read_text(encoding="utf-8") == text:
        return 0
    print(f"{page} is stale: run `python {sys.argv[0]}`.", file=sys.stderr)
    return 1
