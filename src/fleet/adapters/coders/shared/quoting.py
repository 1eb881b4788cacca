"""Any text as a string that YAML, TOML and JSON all read back as it was."""

from __future__ import annotations

import json
import re

UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def quoted(text: str) -> str:
    plain = json.dumps(text, ensure_ascii=False)
    return UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", plain)
