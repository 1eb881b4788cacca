"""What reaches a coder: byte for byte, once, in order."""

import json
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from fleet.ports import Launch, Presence
from tests.contract.launching import ENV, Rig, python, shell
from tests.wait import LIMIT, until

RUN = "t-1.1"
CAT = Launch(("cat",), "/", ENV)


@pytest.fixture
def rig(tmp_path):
    made = Rig(tmp_path)
    yield made
    made.close()


TEXTS = {
    "quotes": 'it\'s "quoted" and `ticked`\n',
    "shell": "$(touch /tmp/never) ${HOME} && rm -rf / ; echo \\n * ~ | > <\n",
    "lines": "one\n\ntwo\r\nthree\ttabbed\n\n",
    "no newline at the end": "one line",
    "emoji": "Grüße, 世界 👩‍💻 🏳️‍🌈\n",
    "control characters": "\x01\x03\x04\x1b[31mred\x1b[0m\x7f\n",
    "NUL": "before\0after\n",
    "bytes that are no text": b"\xff\xfe caf\xe9\n".decode("utf-8", "surrogateescape"),
    "100 KB": "0123456789abcde\n" * 6400,
    "several pipes full": "ü" * 700_000,
    "nothing": "",
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_coder_hears_its_prompt_byte_for_byte_and_then_the_end(rig, name):
    text = TEXTS[name]
    rig.start(RUN, Launch(CAT.argv, "/", ENV, stdin=text))
    assert rig.ended(RUN).code == 0
    assert rig.said(RUN) == text.encode("utf-8", "surrogateescape")


def test_a_coder_that_is_told_nothing_finds_its_input_at_its_end(rig):
    rig.start(RUN, CAT)
    assert rig.ended(RUN).code == 0
    assert rig.said(RUN) == b""


def test_a_coder_that_reads_slowly_gets_everything(rig):
    slow = "import sys, time\nwhile piece := sys.stdin.buffer.read(40_000):\n"
    slow += "    sys.stdout.buffer.write(piece); time.sleep(0.02)\n"
    text = "x" * 400_000
    rig.start(RUN, python(slow, stdin=text))
    assert rig.ended(RUN).code == 0
    assert rig.said(RUN) == text.encode()


def test_a_coder_that_closes_its_input_early_is_not_held_up(rig):
    rig.start(RUN, shell("exec <&-; echo deaf; sleep 0.2; exit 5", stdin="x" * 500_000))
    assert rig.ended(RUN).code == 5
    assert rig.said(RUN) == b"deaf\n"


def test_what_is_told_in_the_middle_follows_the_prompt(rig):
    rig.start(RUN, Launch(CAT.argv, "/", ENV, stdin="prompt\n", keep_stdin=True))
    until(lambda: rig.said(RUN) == b"prompt\n")
    for text in ("one\n", "two 🚢\n", "x" * 200_000 + "\n"):
        rig.keepers.tell(RUN, text, key=text[:9])
    told = "prompt\none\ntwo 🚢\n" + "x" * 200_000 + "\n"
    until(lambda: rig.said(RUN) == told.encode())
    assert rig.keepers.look(RUN).presence is Presence.ALIVE


def test_many_can_speak_to_one_coder_at_once(rig):
    rig.start(RUN, Launch(CAT.argv, "/", ENV, keep_stdin=True))

    def speak(who: int) -> None:
        for n in range(25):
            rig.keepers.tell(RUN, f"{who}:{n}\n", key=f"{who}:{n}")

    threads = [threading.Thread(target=speak, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    records = [json.loads(line) for line in rig.file(RUN, "input").read_text().splitlines()]
    assert [r["n"] for r in records] == list(range(1, 101))
    until(lambda: rig.said(RUN).count(b"\n") == 100)
    for who in range(4):
        mine = [line for line in rig.said(RUN).decode().split() if line.startswith(f"{who}:")]
        assert mine == [f"{who}:{n}" for n in range(25)]


def test_how_far_the_keeper_got_is_on_disk(rig):
    rig.start(RUN, Launch(CAT.argv, "/", ENV, stdin="prompt\n", keep_stdin=True))
    rig.keepers.tell(RUN, "more\n", key="m-1")
    until(lambda: rig.file(RUN, "input.pos").exists())
    until(lambda: rig.file(RUN, "input.pos").read_text() == "2")


def test_half_a_record_left_by_a_crash_spoils_nothing_that_follows(rig):
    rig.start(RUN, Launch(CAT.argv, "/", ENV, keep_stdin=True))
    rig.keepers.tell(RUN, "one\n", key="one\n")
    with rig.file(RUN, "input").open("ab") as file:
        file.write(b'{"n": 2, "key": "two\\n", "text": "tw')
    rig.keepers.tell(RUN, "two\n", key="two\n")
    rig.keepers.tell(RUN, "three\n", key="three\n")
    until(lambda: rig.said(RUN) == b"one\ntwo\nthree\n")


def test_a_record_whose_writer_is_slow_is_read_once_it_is_whole(rig):
    rig.start(RUN, Launch(CAT.argv, "/", ENV, keep_stdin=True))
    record = json.dumps({"n": 1, "text": "slow\n"}).encode() + b"\n"
    with rig.file(RUN, "input").open("ab", buffering=0) as file:
        file.write(record[:9])
        rig.keepers._ring(rig.runs / RUN)
        file.write(record[9:])
    rig.keepers.tell(RUN, "next\n", key="next\n")
    until(lambda: rig.said(RUN) == b"slow\nnext\n")


def test_words_from_a_later_version_are_passed_over(rig):
    rig.start(RUN, Launch(CAT.argv, "/", ENV, keep_stdin=True))
    with rig.file(RUN, "input").open("ab") as file:
        file.write(b'{"n": 1, "shout": true}\n7\n[]\nnonsense\n{"text": "unnumbered\\n"}\n')
    rig.keepers.tell(RUN, "still here\n", key="still here\n")
    until(lambda: b"still here\n" in rig.said(RUN))
    assert rig.keepers.look(RUN).presence is Presence.ALIVE


LAUNCHER = """
import os, sys, time
from pathlib import Path
from fleet.adapters.processes.keepers import Keepers
from fleet.ports import Launch
runs, begin, who = Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
keepers = Keepers(runs)
env = {"PATH": os.environ["PATH"]}
argv = ("sh", "-c", 'echo started; cat')
while time.time() < begin:
    pass
for number in range(int(sys.argv[4])):
    for _ in range(2):
        keepers.launch(f"t-{number}.1", Launch(argv, "/", env, stdin="prompt"))
"""


def test_of_many_processes_that_launch_one_run_at_once_one_starts_it(rig):
    rounds, begin = 5, time.time() + 0.4
    argv = [sys.executable, "-c", LAUNCHER, str(rig.runs), str(begin)]
    crowd = [subprocess.Popen([*argv, str(who), str(rounds)]) for who in range(5)]
    assert [p.wait(LIMIT) for p in crowd] == [0] * 5
    for number in range(rounds):
        rig.ended(f"t-{number}.1")
        assert rig.said(f"t-{number}.1") == b"started\nprompt"
    until(lambda: not _keepers_alive(rig), why="keepers that came too late have left")


def _keepers_alive(rig):
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes()
            if str(rig.runs).encode() in words and b"keeper" in words:
                found.append(process.name)
    return found
