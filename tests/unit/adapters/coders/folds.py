"""What must hold for every coder whose protocol needs replies."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fleet.domain.run import Ending, Wanted
from fleet.domain.transcript import Conversation, Exit, SaidKind, hear, judge
from fleet.ports import Brief

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.ports import Coder

SECRET = "A prompt that nobody should see in a list of processes"


def brief(cwd="/repo", **fields):
    options = fields.pop("options", {})
    return Brief("t-1.1", SECRET, str(cwd), "/tasks/t-1", options=options, **fields)


def read(coder, *messages, opening="{}"):
    """All that is said, and what it comes to."""
    listener, heard = coder.listen(opening), Conversation()
    said = [one for message in messages for one in listener.hear(json.dumps(message))]
    for one in said:
        heard = hear(heard, one)
    return said, heard


def replies(said):
    return [one for one in said if one.kind is SaidKind.REPLY]


def ending(coder, transcript, code):
    _, heard = transcript.read(coder)
    ended = Exit(code)
    return judge(heard, ended, parked=False, wanted=Wanted.NOTHING, cut=None, commit="").ending


class Recorded:
    """What must hold for all that was recorded of a `coder`; `endings` are of what did not succeed."""

    coder: Coder
    endings: Mapping[str, Ending]

    def test_what_the_real_program_said_reads_as_expected(self, transcript):
        transcript.check(self.coder)

    def test_no_recorded_success_is_an_error_and_no_recorded_error_a_success(self, transcript):
        case = transcript.folder.name
        expected = self.endings.get(case, Ending.SUCCEEDED)
        assert ending(self.coder, transcript, -9 if case == "killed" else 0) is expected

    def test_whoever_takes_over_at_any_line_replies_the_same(self, transcript):
        """What has been replied so far is what the next one replies, under those names."""
        said, _ = transcript.read(self.coder)
        whole = [(one.name, one.text) for _, one in said if one.name and one.text]
        for cut in range(len(transcript.lines()) + 1):
            listener = self.coder.listen(transcript.opening())
            said = [one for line in transcript.lines()[:cut] for one in listener.hear(line)]
            again = [(one.name, one.text) for one in said if one.name and one.text]
            assert again == whole[: len(again)]

    def test_no_two_replies_have_one_name(self, transcript):
        said, _ = transcript.read(self.coder)
        names = [one.name for one in replies([one for _, one in said])]
        assert all(names)
        assert len(set(names)) == len(names)

    @pytest.mark.parametrize("change", ["gone", 7])
    def test_another_release_with_other_shapes_breaks_nothing(self, transcript, change):
        assert_no_change_of_shape_is_fatal(self.coder, transcript, change)


def assert_no_change_of_shape_is_fatal(coder, transcript, change):
    """Every value of every line, left out or replaced, as another release might do."""
    for number, line in enumerate(transcript.lines()):
        if not line.startswith("{") or not line.endswith("}"):
            continue
        for path in _paths(json.loads(line)):
            listener = coder.listen(transcript.opening())
            for before in transcript.lines()[:number]:
                listener.hear(before)
            listener.hear(json.dumps(_changed(json.loads(line), path, change)))


def _paths(value, path=()):
    if path:
        yield path
    pairs = value.items() if isinstance(value, dict) else ()
    for key, inner in pairs:
        if len(path) < 5:
            yield from _paths(inner, (*path, key))


def _changed(value, path, change):
    holder = value
    for key in path[:-1]:
        holder = holder[key]
    if change == "gone":
        del holder[path[-1]]
    else:
        holder[path[-1]] = change
    return value
