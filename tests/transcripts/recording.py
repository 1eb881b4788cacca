"""What the recordings of several programs do alike."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.domain.transcript import SaidKind
from fleet.testing.model_server import Call, Reply, Say, Think, Tokens, call, say
from tests.real.driver import is_quiet, record, tear

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.real.driver import Place
    from tests.real.programs import Drive

GREETING = Reply((Say("It greets the fleet."),), Tokens(input=120, output=42, cached=3000))
TRY = Call("bash", {"command": "echo one; exit 3", "description": "x"})
OF_OPENCODE = {  # which speaks its own protocol, and ACP
    "simple-edit": [
        call("read", filePath="{cwd}/hello.txt"),
        call("edit", filePath="{cwd}/hello.txt", oldString="world", newString="fleet"),
        GREETING,
    ],
    "tool-call": [
        Reply((Think("Try it."), TRY)),
        call("read", filePath="{cwd}/nothing.txt"),
        say("It failed."),
    ],
}


def record_each(
    here: Path,
    cases: Iterable[str],
    place_of: Callable[[str, Path], Place],
    act: Callable[[str, Place], Drive],
) -> None:
    """Those that are named on the command line, or all."""
    for case in sys.argv[1:] or cases:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            place = place_of(case, Path(folder))
            record(act(case, place), place, here / case)
            place.close()
        print(case)


def play(
    case: str, run: Drive, place: Place, *, nobody: str = "", dies_after: SaidKind, torn: int = 200
) -> Drive:
    """The run that is to be kept, once it is over. `nobody` is a session that there is not."""
    match case:
        case "two-turns":
            run.start().until_turn_ends().say("And then?").until(lambda: is_quiet(run)).end()
        case "words-mid-turn":
            run.start().until_said(SaidKind.TOOL).say("Also this.").say("And that.")
            run.until(lambda: is_quiet(run)).end()
        case "words-mid-reply":
            run.start().until(lambda: place.asked)
            time.sleep(0.5)
            run.say("Also this.").until(lambda: is_quiet(run)).end()
        case "resume":
            run.run()
            run = place.again(run, prompt="What was it?")
            run.run()
        case "no-such-session":
            run = run.again("t-1.2", session=nobody)
            run.run()
        case "killed":
            run.start().until_said(dies_after)
            run.stop(0).over()
            tear(run, torn)
        case _:
            run.run()
    return run
