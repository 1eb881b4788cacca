"""Write src/fleet/requests.py from the catalogue; `--check` only says whether it is stale."""

from __future__ import annotations

import sys
from pathlib import Path

from fleet.operations.catalogue import operations

PAGE = Path(__file__).parent.parent / "src" / "fleet" / "requests.py"
HEAD = '''\
"""Every request that a program can send with `fleet.connect`, by name.

Made from the catalogue by `scripts/reference_requests.py`; do not edit.
"""

# ruff: noqa: PLC0414  # an import under its own name is one that others may import here

from __future__ import annotations

'''


def main() -> int:
    requests = {operation.request for operation in operations()}
    ours = (r for r in requests if not r.__module__.startswith("fleet.operations.compat"))
    text = HEAD + "".join(sorted(map(line, ours)))
    if sys.argv[1:] != ["--check"]:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{PAGE} is stale: run `python scripts/reference_requests.py`.", file=sys.stderr)
    return 1


def line(request: type) -> str:
    return f"from {request.__module__} import {request.__name__} as {request.__name__}\n"


if __name__ == "__main__":
    sys.exit(main())
