"""The folder of a run: what is in it, who may read it, and what it proves."""

import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path

import pytest

from fleet.adapters.processes.keepers import LONGEST_LINE
from fleet.base import machine
from fleet.domain.errors import Unavailable
from fleet.ports import Launch, Presence
from tests.contract.launching import ENV, Rig, is_alive, shell
from tests.wait import LIMIT, until

RUN = "t-1.1"
ROOT = Path(__file__).parents[2]  # what `tests` is imported from


@pytest.fixture
def rig(tmp_path):
    made = Rig(tmp_path)
    yield made
    made.close()


def test_nobody_else_can_read_what_a_run_says_or_hears(rig):
    before = os.umask(0)
    try:
        rig.keepers.renew([RUN], until=machine.since_boot() + 60)
        rig.start(RUN, shell("cat; echo oops >&2; sleep 0.2", stdin="secret\n", keep_stdin=True))
        until(lambda: rig.said(RUN))
        rig.keepers.tell(RUN, "more\n", key="m-1")
        until(lambda: rig.file(RUN, "input.pos").exists())
        found = [_modes(rig)]
        rig.keepers.close(RUN)
        rig.ended(RUN)
        found.append(_modes(rig))
    finally:
        os.umask(before)
    for modes in found:
        assert modes.pop(".") == 0o700
        assert set(modes.values()) == {0o600}, modes
    kept = {"launch.json", "keeper.json", "keeper.lock", "keeper.log", "input", "input.pos"}
    assert set(found[1]) == kept | {"transcript", "stderr", "wake", "lease", "exit.json"}


def _modes(rig):
    folder = rig.runs / RUN
    modes = {".": stat.S_IMODE(folder.stat().st_mode)}
    for path in folder.iterdir():
        with suppress(FileNotFoundError):  # one that was just renamed
            modes[path.name] = stat.S_IMODE(path.stat().st_mode)
    return modes


def test_the_mark_is_random_and_the_same_in_every_place(rig):
    for run in ("t-1.1", "t-1.2"):
        rig.start(run, shell("echo $FLEET_RUN_MARK"))
        rig.ended(run)
        assert rig.said(run).decode().strip() == rig.mark(run)
    assert rig.mark("t-1.1") != rig.mark("t-1.2")
    assert len(rig.mark("t-1.1")) == 32


def test_every_record_of_a_run_names_its_format(rig):
    rig.start(RUN, shell("exit 3"))
    rig.ended(RUN)
    for name in ("launch.json", "keeper.json", "exit.json"):
        assert json.loads(rig.file(RUN, name).read_text())["format"] == 1


def test_a_run_of_an_earlier_boot_is_gone_and_nothing_is_signalled_for_it(rig):
    rig.start(RUN, shell(f"echo $$ > {rig.note('pid')}; sleep 61"))
    coder = rig.pid("pid")
    record = rig.file(RUN, "keeper.json")
    held = json.loads(record.read_text())
    record.write_text(json.dumps(held | {"boot": "another"}))
    assert rig.keepers.look(RUN).presence is Presence.GONE
    assert rig.keepers.end(RUN) is True
    assert is_alive(coder)
    record.write_text(json.dumps(held))
    assert rig.keepers.look(RUN).presence is Presence.ALIVE


def test_a_boot_id_that_is_not_known_proves_nothing(rig):
    rig.start(RUN, shell("sleep 61"))
    record = rig.file(RUN, "keeper.json")
    record.write_text(json.dumps(json.loads(record.read_text()) | {"boot": ""}))
    assert rig.keepers.look(RUN).presence is Presence.ALIVE
    assert rig.keepers.end(RUN) is False


@pytest.mark.parametrize("content", [None, "", "{", "[]", '"x"', '{"format": 1}'])
def test_a_record_that_cannot_be_read_asserts_nothing(rig, content):
    record = rig.file(RUN, "keeper.json")
    record.parent.mkdir(parents=True)
    record.mkdir() if content is None else record.write_text(content)
    assert rig.keepers.look(RUN).presence is Presence.UNKNOWN
    assert rig.keepers.end(RUN) is False


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_folder_that_may_not_be_read_asserts_nothing(rig):
    rig.start(RUN, shell("sleep 61"))
    look = f"""
    import os, sys
    from pathlib import Path
    from fleet.adapters.processes.keepers import Keepers
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
    keepers = Keepers(Path({str(rig.runs)!r}))
    print(keepers.look({RUN!r}).presence)
    """
    assert _python(look).stdout == "unknown\n"
    assert rig.keepers.look(RUN).presence is Presence.ALIVE


def test_a_keeper_that_cannot_start_is_an_error_that_says_why(rig):
    folder = rig.runs / RUN
    folder.mkdir(parents=True)
    (folder / "launch.json").write_text("{}")
    (folder / "input").write_text("")
    rig.keepers.launch(RUN, shell("true"))
    with pytest.raises(Unavailable, match=rf"keeper of {RUN} could not start: .*KeyError: 'mark'"):
        until(lambda: rig.keepers.launch(RUN, shell("true")))


FORSAKEN = """
import sys
from fleet import keeper
keeper.FORSAKEN = 0.3  # a minute is long for a test
keeper.main()
"""


def test_a_keeper_whose_folder_was_deleted_ends_its_coder_since_nobody_else_could(rig):
    folder = rig.runs / RUN
    folder.mkdir(parents=True)
    script = f"sleep 61 & echo $! > {rig.note('pid')}; wait"
    order, env = rig.keepers._order(shell(script), "f" * 32, RUN)
    (folder / "env").write_text(json.dumps(env))
    (folder / "launch.json").write_text(json.dumps(order))
    keeper = subprocess.Popen(
        [sys.executable, "-c", FORSAKEN, folder], start_new_session=True, stderr=subprocess.DEVNULL
    )
    child = rig.pid("pid")
    folder.rename(folder.with_name("hidden"))
    keeper.wait(LIMIT)
    assert not is_alive(child)


def _python(script, **more):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True, text=True, timeout=LIMIT, check=True, **more,
    )  # fmt: skip


FULL = """
set -e
mount -t tmpfs -o size=128k tmpfs "$1"
exec "$2" -c "import sys; sys.path.insert(0, '$3'); from tests.contract import test_keeper_files as t; t.full_disk('$1')"
"""


def test_a_full_disk_swallows_no_ending_and_no_request_to_stop(tmp_path):
    argv = ["unshare", "-m", "sh", "-c", FULL, "sh", tmp_path, sys.executable, ROOT]
    asked = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
    if asked.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {asked.stderr.decode().strip()}")
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "the disk was full\n"


def full_disk(place):
    """In a mount namespace of its own, on 128 KB."""
    rig = Rig(Path(place))
    filler = Path(place, "filler")
    try:
        for run in ("t-1.1", "t-2.1"):
            rig.start(run, Launch(("cat",), "/", ENV, keep_stdin=True))
            rig.keepers.tell(run, "hello\n", key="m-1")
            until(lambda run=run: rig.said(run) == b"hello\n")
        for run in ("t-1.1", "t-2.1"):
            _fill_last_block(rig.file(run, "input"))
        _fill(filler)
        with pytest.raises(OSError, match="No space left"):
            rig.keepers.tell("t-1.1", "lost\n", key="m-2")
        print("the disk was full")
        coder = next(iter(machine.marked(rig.mark("t-1.1"))))
        os.kill(coder, signal.SIGKILL)
        assert rig.ended("t-1.1").code == -signal.SIGKILL
        rig.keepers.stop("t-2.1", grace=5)
        assert rig.ended("t-2.1").code == -signal.SIGTERM
    finally:
        filler.unlink()
        rig.close()


def _fill_last_block(file):
    """With a record that says nothing, so that the next one needs another block."""
    left = -file.stat().st_size % 4096
    record = b'{"n": 2, "pad": "' + b"x" * (left - 20) + b'"}\n'
    with file.open("ab") as out:
        out.write(record)
    assert file.stat().st_size % 4096 == 0


def _fill(file):
    with file.open("wb", buffering=0) as out:
        for size in (4096, 1):
            try:
                while out.write(b"x" * size):
                    pass
            except OSError:
                continue


@pytest.fixture
def transcript(rig):
    """Write to a run's transcript, as a coder would."""
    file = rig.file(RUN, "transcript")
    file.parent.mkdir(parents=True)

    def write(data: bytes):
        with file.open("ab") as out:
            out.write(data)

    return write


def test_a_line_is_read_once_it_is_whole(rig, transcript):
    transcript(b"one\ntwo\nthr")
    first = rig.keepers.read(RUN, 0)
    assert first.lines == ("one", "two")
    assert rig.keepers.read(RUN, first.offset).lines == ()
    transcript(b"ee\n")
    assert rig.keepers.read(RUN, first.offset).lines == ("three",)


def test_a_last_half_line_counts_when_nothing_more_comes(rig, transcript):
    transcript(b"one\nhalf a li")
    assert rig.keepers.read(RUN, 0, final=True).lines == ("one", "half a li")
    end = rig.keepers.read(RUN, 0, final=True).offset
    assert rig.keepers.read(RUN, end, final=True) == rig.keepers.read(RUN, end)


@pytest.mark.parametrize("limit", range(1, 30))
@pytest.mark.parametrize("ending", [b"", b"\n"])
def test_whatever_the_limit_every_line_is_read_once(rig, transcript, limit, ending):
    lines = ["one", "", "a rather long line", "x", "the last one"]
    transcript("\n".join(lines).encode() + ending)
    read, offset = [], 0
    while (chunk := rig.keepers.read(RUN, offset, limit=limit, final=True)).offset != offset:
        read += chunk.lines
        offset = chunk.offset
    assert read == lines


def test_a_line_longer_than_the_limit_is_one_line(rig, transcript):
    transcript(b"x" * 5000 + b"\nnext\n" + b"y" * 5000)
    chunk = rig.keepers.read(RUN, 0, limit=100)
    assert chunk.lines == ("x" * 5000,)
    chunk = rig.keepers.read(RUN, chunk.offset, limit=100)
    assert chunk.lines == ("next",)
    assert rig.keepers.read(RUN, chunk.offset, limit=100).lines == ()
    assert rig.keepers.read(RUN, chunk.offset, limit=100, final=True).lines == ("y" * 5000,)


@pytest.mark.parametrize("what", ["link", "pipe"])
def test_what_an_agent_puts_in_place_of_a_file_is_not_read_for_it(rig, tmp_path, what):
    """It may write in the folder of its run, and not read what the server may."""
    secret = tmp_path / "server.key"
    secret.write_text("the key\n")
    for name in ("transcript", "stderr", "input", "keeper.json", "removed"):
        file = rig.file(RUN, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        if what == "link":
            file.symlink_to(secret)
        else:
            os.mkfifo(file)
    assert rig.keepers.read(RUN, 0, final=True).lines == ()
    assert rig.keepers.count(RUN, final=True) == 0
    assert rig.keepers.lines(RUN, 0, 9) == (0, ())
    assert rig.keepers.stderr(RUN) == ""
    assert rig.keepers.first(RUN) == ""
    assert rig.keepers.delivered(RUN) == []


def test_a_link_in_place_of_its_bell_is_not_written_to(rig, tmp_path):
    other = tmp_path / "other"
    other.write_text("mine")
    rig.start(RUN, shell("sleep 60"))
    until(rig.file(RUN, "wake").exists)
    rig.file(RUN, "wake").unlink()
    rig.file(RUN, "wake").symlink_to(other)
    rig.keepers.stop(RUN, grace=0)
    rig.ended(RUN)
    assert other.read_text() == "mine"


@pytest.mark.parametrize("trap", ["a FIFO", "a lock"])
def test_an_agent_that_spoils_its_input_is_stopped_all_the_same(rig, trap):
    rig.start(RUN, shell("echo up; exec sleep 60"))
    until(lambda: rig.said(RUN))
    path = rig.file(RUN, "input")
    if trap == "a FIFO":
        path.unlink()
        os.mkfifo(path)
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if trap == "a lock":
            fcntl.flock(fd, fcntl.LOCK_EX)
        rig.keepers.stop(RUN, grace=0)
        assert rig.ended(RUN).code == -signal.SIGTERM
    finally:
        os.close(fd)


@pytest.mark.parametrize("offset", [9, 1 << 40, 1 << 62])
def test_beyond_its_end_a_transcript_has_nothing(rig, transcript, offset):
    transcript(b"one\n")
    assert rig.keepers.read(RUN, offset).lines == ()


def test_bytes_that_are_no_text_spoil_only_themselves(rig, transcript):
    transcript(b"caf\xe9 \xff\n\xf0\x9f\x9a\xa2 ok\n")
    chunk = rig.keepers.read(RUN, 0)
    assert chunk.lines == ("caf\ufffd \ufffd", "🚢 ok")
    assert chunk.offset == 15


def test_a_character_cut_by_the_limit_is_not_lost(rig, transcript):
    text = "ü" * 50
    transcript(f"{text}\n{text}\n".encode())
    chunk = rig.keepers.read(RUN, 0, limit=150)
    assert chunk.lines == (text,)
    assert rig.keepers.read(RUN, chunk.offset, limit=150).lines == (text,)


def test_only_a_newline_ends_a_line(rig, transcript):
    transcript("a\rb\x0bc\u2028d\x85e\n".encode())
    assert rig.keepers.read(RUN, 0).lines == ("a\rb\x0bc\u2028d\x85e",)


def test_the_end_of_what_went_to_stderr_is_kept_apart(rig):
    rig.start(
        RUN, shell("echo out; i=0; while [ $i -lt 900 ]; do echo err $i >&2; i=$((i+1)); done")
    )
    rig.ended(RUN)
    assert rig.said(RUN) == b"out\n"
    assert rig.keepers.stderr(RUN, tail=16) == "err 898\nerr 899\n"
    assert len(rig.keepers.look(RUN).stderr) == 4096


def test_the_last_lines_are_read_without_the_rest(rig, transcript):
    transcript("".join(f"line {n}\n" for n in range(1000)).encode())
    chunk = rig.keepers.read(RUN, -18)
    assert chunk.lines == ("line 998", "line 999")
    assert rig.keepers.read(RUN, chunk.offset).lines == ()
    assert rig.keepers.read(RUN, -19).lines == ("line 998", "line 999")
    assert len(rig.keepers.read(RUN, -1_000_000).lines) == 1000


def test_a_line_that_does_not_end_comes_in_pieces(rig, transcript):
    transcript(b"x" * (LONGEST_LINE + 5))
    first = rig.keepers.read(RUN, 0)
    assert [len(line) for line in first.lines] == [LONGEST_LINE]
    assert rig.keepers.read(RUN, first.offset).lines == ()
    rest = rig.keepers.read(RUN, first.offset, final=True)
    assert [len(line) for line in rest.lines] == [5]
