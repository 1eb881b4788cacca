"""Continue a copy of an OpenCode conversation in another directory.

    copy_session.py SESSION COPY WORDS opencode … --session COPY

WORDS is how many of the words after it name the program. OpenCode's own `--fork` leaves the copy in
the directory of the first conversation, where it would edit the first agent's files; what
`opencode import` reads belongs to the directory in which it runs.

It runs by itself, of the standard library alone, and becomes the program in the end.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from typing import Any, NoReturn

SECONDS = 120  # for one call of the program; its first start in a home is slow
HEAD = 16  # the kind of an id and its time, by which OpenCode sorts
NOT_FOUND = 127


def copy_id(old: str, salt: str) -> str:
    """The id of the copy: the same one whenever it is made for the same `salt`."""
    return old[:HEAD] + hashlib.sha256(f"{salt} {old}".encode()).hexdigest()[:14]


def copied(export: dict[str, Any], copy: str) -> dict[str, Any]:
    """What `opencode export` printed, under ids of its own, the session's being `copy`."""
    names = {export["info"]["id"]: copy}
    for message in export["messages"]:
        for one in (message["info"], *message["parts"]):
            names[one["id"]] = copy_id(one["id"], copy)
    renamed: dict[str, Any] = _renamed(export, names)
    return renamed


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _renamed(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [_renamed(one, names) for one in value]
    return names.get(value, value) if isinstance(value, str) else value


def main(argv: list[str]) -> NoReturn:
    session, copy, words, *launch = argv
    program = launch[: int(words)]
    sys.stdout.write("Copying the conversation …\r\n")
    sys.stdout.flush()
    try:
        _copy(program, session, copy)
        os.execvp(launch[0], launch)  # noqa: S606  # the program that this one stands in for
    except FileNotFoundError as error:
        sys.exit(_refused(f"{error.filename}: No such file or directory", NOT_FOUND))
    except (OSError, ValueError, KeyError, TypeError, subprocess.SubprocessError) as error:
        sys.exit(_refused(f"OpenCode could not copy the conversation {session}: {error}", 1))


def _copy(program: list[str], session: str, copy: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "session.json")  # noqa: PTH118  # small, and starts at once
        with open(file, "wb") as out:  # noqa: PTH123
            _call([*program, "export", session], out)
        with open(file, encoding="utf-8") as exported:  # noqa: PTH123
            made = copied(json.load(exported), copy)
        with open(file, "w", encoding="utf-8") as ours:  # noqa: PTH123
            json.dump(made, ours)
        _call([*program, "import", file], subprocess.PIPE)


def _call(argv: list[str], out: Any) -> None:
    """Without the settings of the run, whose plugin would write in its transcript."""
    env = {name: text for name, text in os.environ.items() if name != "OPENCODE_CONFIG_CONTENT"}
    ran = subprocess.run(
        argv, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE,
        timeout=SECONDS, check=False,
    )  # fmt: skip
    if ran.returncode:
        lines = ran.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ValueError(lines[-1] if lines else f"`{argv[-2]}` ended with status {ran.returncode}")


def _refused(why: str, status: int) -> int:
    sys.stderr.write(f"fleet: {why}\n")
    return status


if __name__ == "__main__":
    main(sys.argv[1:])
