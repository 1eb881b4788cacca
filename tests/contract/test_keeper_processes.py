"""What a keeper starts, and what it ends: all of it, and nothing else."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fleet.base import machine
from fleet.ports import Launch, Presence
from tests.contract.launching import Rig, is_alive, python, shell, sleeps
from tests.wait import until

RUN = "t-1.1"


@pytest.fixture
def rig(tmp_path):
    made = Rig(tmp_path)
    yield made
    made.close()


@pytest.fixture
def innocents():
    """Processes that are not ours, named like those that are."""
    env = {k: v for k, v in os.environ.items() if k != machine.MARK}
    started = [
        subprocess.Popen(["sleep", "61"], env=env),
        subprocess.Popen(["sleep", "61"], env=env | {machine.MARK: "0" * 32}),
        subprocess.Popen(["sleep", "61"], env=env, start_new_session=True),
    ]
    yield [p.pid for p in started]
    for process in started:
        process.kill()
        process.wait()


def test_a_coder_that_is_stopped_may_end_in_its_own_way(rig):
    rig.start(RUN, shell("trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.05; done"))
    until(lambda: rig.said(RUN) == b"ready\n")
    rig.keepers.stop(RUN, grace=30)
    assert rig.ended(RUN).code == 3
    assert rig.said(RUN) == b"ready\nbye\n"


def test_a_coder_that_ignores_the_request_is_killed_after_the_grace_and_not_before(rig):
    deaf = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
    rig.start(RUN, shell(deaf))
    until(lambda: rig.said(RUN) == b"ready\n")
    begun = time.monotonic()
    rig.keepers.stop(RUN, grace=0.6)
    assert rig.ended(RUN).code == -signal.SIGKILL
    assert 0.6 <= time.monotonic() - begun < 30


def test_a_stop_that_comes_before_the_coder_is_itself_is_not_lost(rig):
    runs = [f"t-{n}.1" for n in range(8)]
    for run in runs:
        rig.keepers.launch(run, shell("sleep 60"))
        rig.keepers.stop(run, grace=30)
    assert [rig.ended(run).code for run in runs] == [-signal.SIGTERM] * 8


def test_somebody_in_a_hurry_shortens_the_grace(rig):
    rig.start(RUN, shell("trap '' TERM; echo ready; while :; do sleep 0.05; done"))
    until(lambda: rig.said(RUN) == b"ready\n")
    rig.keepers.stop(RUN, grace=60)
    rig.keepers.stop(RUN, grace=0)
    assert rig.ended(RUN).code == -signal.SIGKILL


def test_a_stop_is_carried_out_also_when_nobody_rings(rig):
    rig.start(RUN, shell("sleep 60"))
    until(lambda: rig.file(RUN, "wake").exists())
    rig.file(RUN, "wake").unlink()
    rig.keepers.stop(RUN, grace=5)
    assert rig.ended(RUN).code == -signal.SIGTERM


GRANDCHILDREN = {
    "in its group": "sleep 61 & echo $! > {pid}",
    "in its own session": "setsid sh -c 'echo $$ > {pid}; exec sleep 61' &",
    "deaf to SIGTERM": "(trap '' TERM; sh -c 'echo $$ > {pid}; exec sleep 61') &",
    "a daemon": "(setsid sh -c '(echo $$ > /dev/null; exec sh -c \"echo \\$\\$ > {pid}; "
    "exec sleep 61\") &' &)",
    "with an empty environment": "env -i /bin/sh -c 'echo $$ > {pid}; exec sleep 61' &",
    "with neither its session nor its environment": (
        "(setsid env -i /bin/sh -c 'echo $$ > {pid}; exec sleep 61' &)"
    ),
}


@pytest.mark.parametrize("kind", GRANDCHILDREN)
@pytest.mark.parametrize("how", ["when it ends", "when it is stopped"])
def test_what_a_coder_leaves_behind_is_ended(rig, innocents, kind, how):
    script = GRANDCHILDREN[kind].format(pid=rig.note("pid"))
    wait = f"\nuntil [ -s {rig.note('pid')} ]; do sleep 0.01; done"
    rig.start(RUN, shell(script + wait + ("" if how == "when it ends" else "; sleep 60")))
    grandchild = rig.pid("pid")
    if how == "when it is stopped":
        assert is_alive(grandchild)
        rig.keepers.stop(RUN, grace=5)
    rig.ended(RUN)
    assert not is_alive(grandchild)
    assert all(is_alive(pid) for pid in innocents)


def test_a_grandchild_that_holds_the_output_holds_up_nothing(rig):
    rig.start(RUN, shell("sleep 61 & echo done"))
    begun = time.monotonic()
    assert rig.ended(RUN).code == 0
    assert time.monotonic() - begun < 30
    assert rig.said(RUN) == b"done\n"


def test_a_family_that_keeps_forking_is_ended_too(rig):
    brood = "import os, time\n"
    brood += "for _ in range(6):\n    os.fork()\n"
    brood += "os.setsid() if os.fork() == 0 else None\ntime.sleep(61)\n"
    rig.start(RUN, python(brood))
    until(lambda: len(machine.marked(rig.mark(RUN))) == 128)
    rig.keepers.stop(RUN, grace=0)
    rig.ended(RUN)
    assert machine.marked(rig.mark(RUN)) == set()


CANNOT = {
    "no such program": (("no-such-program-here",), "/", 127, "no-such-program-here: No such file"),
    "no such path": (("/no/such/program",), "/", 127, "/no/such/program: No such file"),
    "not a program": (("{place}/plain",), "/", 126, "plain: Permission denied"),
    "a directory": (("{place}",), "/", 126, "Permission denied"),
    "no such directory": (("true",), "{place}/gone", 127, "gone: No such file"),
    "not for this machine": (("{place}/broken",), "/", 126, "broken: Exec format error"),
    "a NUL among its words": (("echo", "a\0b"), "/", 126, "embedded null byte"),
}


@pytest.mark.parametrize("what", CANNOT)
def test_a_coder_that_cannot_be_started_is_an_exit_status_with_words(rig, what):
    argv, cwd, code, words = CANNOT[what]
    (rig.place / "plain").write_text("not a program")
    (rig.place / "broken").write_bytes(b"\x7fELF\1\1\1nonsense")
    (rig.place / "broken").chmod(0o755)
    argv = tuple(word.format(place=rig.place) for word in argv)
    rig.start(RUN, Launch(argv, cwd.format(place=rig.place), {"PATH": os.environ["PATH"]}))
    ended = rig.ended(RUN)
    assert ended.code == code
    assert words in ended.stderr
    assert ended.stderr.startswith("fleet: ")
    assert ended.stderr.count("\n") == 1
    assert ("`fleet coders`" in ended.stderr) == (what in {"no such program", "no such path"})


def test_the_program_is_looked_for_on_the_path_it_is_given(rig):
    program = rig.place / "bin" / "my-coder"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\npwd; echo $0 "$@"; echo $WHAT\n')
    program.chmod(0o755)
    env = {"PATH": f"{program.parent}:/usr/bin:/bin", "WHAT": "a b"}
    rig.start(RUN, Launch(("my-coder", "--x", "a b", ""), str(rig.place), env))
    assert rig.ended(RUN).code == 0
    assert rig.said(RUN).decode() == f"{rig.place}\n{program} --x a b \na b\n"


def test_a_coder_has_its_own_environment_signals_and_files_and_nothing_of_ours(rig):
    look = "import os, signal\nprint(sorted(os.environ))\nprint(os.listdir('/proc/self/fd'))\n"
    look += "print([s.name for s in (signal.SIGTERM, signal.SIGPIPE, signal.SIGINT, signal.SIGHUP)"
    look += " if signal.getsignal(s) is signal.SIG_IGN])\nprint(oct(os.umask(0)))\n"
    argv = (sys.executable, "-I", "-S", "-c", look)
    rig.start(RUN, Launch(argv, "/", {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}))
    rig.ended(RUN)
    names, files, ignored, umask = rig.said(RUN).decode().splitlines()
    assert names == str(["FLEET_RUN_MARK", "LC_ALL", "PATH"])
    assert len(eval(files)) == 4  # its three, and the one that looks
    assert ignored == "['SIGPIPE']"  # Python's own habit
    assert umask == oct(_umask())


def _umask():
    mine = os.umask(0)
    os.umask(mine)
    return mine


def test_of_a_killed_keeper_every_process_with_its_mark_is_ended_and_no_other(rig, innocents):
    script = f"setsid sleep 61 & echo $! > {rig.note('a')}; (sleep 61 & echo $! > {rig.note('b')});"
    rig.start(RUN, shell(script + f"echo $$ > {rig.note('c')}; trap '' TERM; sleep 61"))
    family = [rig.pid(name) for name in "abc"]
    os.kill(rig.keeper(RUN), signal.SIGKILL)
    until(lambda: rig.keepers.look(RUN).presence is Presence.GONE)
    assert all(is_alive(pid) for pid in family)
    until(lambda: rig.keepers.end(RUN))
    assert not any(is_alive(pid) for pid in family)
    assert all(is_alive(pid) for pid in innocents)


def test_a_killed_keepers_process_that_lost_its_mark_is_no_proof_of_anything(rig):
    script = f"env -i /bin/sh -c 'echo $$ > {rig.note('pid')}; exec sleep 61' & sleep 61"
    rig.start(RUN, shell(script))
    unmarked = rig.pid("pid")
    os.kill(rig.keeper(RUN), signal.SIGKILL)
    until(lambda: rig.keepers.look(RUN).presence is Presence.GONE)
    for _ in range(20):
        assert rig.keepers.end(RUN) is False
    assert machine.marked(rig.mark(RUN)) == set()
    assert is_alive(unmarked)
    os.kill(unmarked, signal.SIGKILL)
    until(lambda: rig.keepers.end(RUN))


def test_a_coder_that_is_killed_by_somebody_is_an_exit(rig):
    rig.start(RUN, shell(f"echo $$ > {rig.note('pid')}; exec sleep 61"))
    os.kill(rig.pid("pid"), signal.SIGKILL)
    assert rig.ended(RUN).code == -signal.SIGKILL


def test_a_keeper_that_is_asked_to_end_ends_its_coder_first(rig):
    rig.start(RUN, shell(f"sleep 61 & echo $! > {rig.note('pid')}; wait"))
    child = rig.pid("pid")
    os.kill(rig.keeper(RUN), signal.SIGTERM)
    assert rig.ended(RUN).code == -signal.SIGTERM
    assert not is_alive(child)


def test_a_keeper_survives_the_terminal_and_the_death_of_whoever_started_it(rig):
    rig.start(RUN, shell("sleep 0.4; echo still here"))
    for number in (signal.SIGHUP, signal.SIGINT):
        os.kill(rig.keeper(RUN), number)
    assert os.getsid(rig.keeper(RUN)) == rig.keeper(RUN) != os.getsid(0)
    assert rig.ended(RUN).code == 0
    assert rig.said(RUN) == b"still here\n"


def test_a_keeper_that_ends_after_the_last_look_at_it_is_no_zombie_for_ever(rig):
    rig.keepers.launch("t-1.1.gate", shell("true"))
    until(lambda: rig.file("t-1.1.gate", "keeper.json").exists())
    keeper = rig.keeper("t-1.1.gate")
    until(lambda: machine.is_zombie(keeper), "that it has ended, and nobody looked at it")
    rig.keepers.launch(RUN, shell("true"))
    assert not machine.is_zombie(keeper)


def test_a_keeper_that_waits_uses_next_to_nothing(rig, capsys):
    rig.start(RUN, shell("sleep 60"))
    keeper = rig.keeper(RUN)
    until(lambda: sleeps(keeper), "a keeper that waits for its coder")
    lines = Path(f"/proc/{keeper}/smaps_rollup").read_text().splitlines()
    sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines if "kB" in line}
    with capsys.disabled():
        print(f"\na keeper: PSS {sizes['Pss'] / 1024:.1f} MB, RSS {sizes['Rss'] / 1024:.1f} MB")
    assert sizes["Pss"] < 12 * 1024
    ticks = _cpu(keeper)
    time.sleep(1.0)
    assert _cpu(keeper) - ticks <= 3  # hundredths of a second


def _cpu(pid):
    words = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return int(words[11]) + int(words[12])
