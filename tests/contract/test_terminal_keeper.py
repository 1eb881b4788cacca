"""A keeper as a pane's command: what it starts there, how it ends, and what is left: nothing."""

import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fleet.base import machine
from fleet.domain.errors import Unavailable
from fleet.ports import Presence, ScreenState
from tests.contract.launching import is_alive, sleeps
from tests.contract.panes import RUN, Panes
from tests.wait import LIMIT, until


@pytest.fixture
def rig(tmp_path):
    made = Panes(tmp_path)
    yield made
    made.close()


def coder_of(rig, run=RUN):
    """The program itself: the child of the keeper."""
    return until(lambda: next(iter(machine.children(rig.keeper(run))), None))


def nothing_left(rig, run=RUN):
    until(lambda: rig.keepers.end(run), why="its end was proven")
    assert machine.marked(rig.mark(run)) == set()
    assert [pane for pane in rig.tmux.panes() if pane.run == run] == []


def test_a_program_has_the_terminal_for_itself(rig):
    look = "tty; ps -o pid=,pgid=,tpgid=,sid= -p $$; stty size; echo $TERM; echo $TMUX; sleep 60"
    rig.start(RUN, rig.in_terminal(look))
    until(lambda: "screen-256color" in rig.terminals.screen(RUN).text)
    terminal, ids, size, *_ = rig.terminals.screen(RUN).text.splitlines()
    pid, group, foreground, session = map(int, ids.split())
    assert terminal.startswith("/dev/pts/")
    assert pid == group == foreground == coder_of(rig)
    assert session == rig.keeper(RUN) == rig.terminals.tmux.panes()[0].pid
    assert size == "50 200"
    assert "/tmp/tmux" not in rig.terminals.screen(RUN).text


def test_its_environment_is_the_launchs_and_nothing_of_tmux(rig):
    rig.start(RUN, rig.in_terminal(f"env > {rig.note('env')}; sleep 60"))
    held = until(lambda: (rig.place / "env").exists() and (rig.place / "env").read_text())
    names = {line.partition("=")[0] for line in held.splitlines()}
    assert names - {"PWD", "SHLVL", "_", "OLDPWD"} == {
        "PATH", "HOME", "TERM", "FLEET_RUN_MARK", "FLEET_RUN_DIR",
    }  # fmt: skip
    assert f"FLEET_RUN_DIR={rig.runs / RUN}\n" in held


def test_its_transcript_is_what_its_hooks_append_and_is_there_from_the_start(rig):
    rig.start(
        RUN, rig.in_terminal('echo shown; echo hook >> "$FLEET_RUN_DIR/transcript"; sleep 60')
    )
    until(lambda: rig.said(RUN) == b"hook\n")
    until(lambda: "shown" in rig.terminals.screen(RUN).text)
    until(lambda: b"shown" in (rig.runs / f"{RUN}.screen").read_bytes())
    assert rig.keepers.read(RUN, 0).lines == ("hook",)


def test_nobody_else_can_read_what_it_shows(rig):
    before = os.umask(0)
    try:
        rig.start(RUN, rig.in_terminal("echo shown; exit 3"))
        rig.ended(RUN)
        nothing_left(rig)
    finally:
        os.umask(before)
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in (rig.runs / RUN).iterdir()}
    assert set(modes.values()) == {0o600}, modes
    assert "shown" in rig.file(RUN, "screen.txt").read_text()


@pytest.mark.parametrize("code", [0, 1, 77])
def test_the_status_of_its_program_is_kept_and_shown(rig, code):
    rig.start(RUN, rig.in_terminal(f"echo bye; exit {code}"))
    assert rig.ended(RUN).code == code
    until(lambda: rig.terminals.screen(RUN)[2:4] == (False, code))
    assert "bye" in rig.terminals.screen(RUN, history=100).text
    nothing_left(rig)


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [(("no-such-program",), 127, "no-such-program: No such file"), (("/",), 126, "Permission")],
)
def test_a_program_that_cannot_be_started_is_a_status_with_words(rig, argv, code, words):
    rig.start(RUN, rig.in_terminal("")._replace(argv=argv))
    ended = rig.ended(RUN)
    assert ended.code == code
    assert words in ended.stderr


def test_a_keeper_that_cannot_start_is_an_error_that_says_why(rig):
    folder = rig.runs / RUN
    folder.mkdir(parents=True)
    (folder / "launch.json").write_text(json.dumps({"session": "fleet_t-1-1", "argv": ["x"]}))
    (folder / "input").write_text("")
    rig.keepers.launch(RUN, rig.in_terminal("true"))
    with pytest.raises(Unavailable, match=rf"keeper of {RUN} could not start: .*KeyError: 'mark'"):
        until(lambda: rig.keepers.launch(RUN, rig.in_terminal("true")))
    assert rig.keepers.end(RUN)
    assert rig.tmux.panes() == []


def test_launching_again_and_by_many_starts_one_program(rig):
    launch = rig.in_terminal(f"echo x >> {rig.note('ran')}; sleep 60")
    other = textwrap.dedent(f"""
        from pathlib import Path
        from fleet.adapters.processes.keepers import Keepers
        from fleet.ports import Launch
        Keepers(Path({str(rig.runs)!r})).launch({RUN!r}, Launch(**{launch._asdict()!r}))
    """)
    many = [subprocess.Popen([sys.executable, "-c", other]) for _ in range(6)]
    assert [one.wait(LIMIT) for one in many] == [0] * 6
    rig.seen(RUN)
    rig.keepers.launch(RUN, launch)
    until((rig.place / "ran").exists)
    assert len(rig.tmux.panes()) == 1
    rig.keepers.stop(RUN, grace=5)
    rig.ended(RUN)
    assert (rig.place / "ran").read_text() == "x\n"


def test_nothing_is_told_to_it_but_through_its_terminal(rig):
    rig.start(RUN, rig.in_terminal("sleep 60"))
    with pytest.raises(Unavailable, match="terminal"):
        rig.keepers.tell(RUN, "hello\n", key="m-1")
    with pytest.raises(Unavailable, match="terminal"):
        rig.keepers.close(RUN)


def test_a_run_that_was_forbidden_starts_nothing_and_leaves_no_session(rig):
    assert rig.keepers.end(RUN)
    rig.keepers.launch(RUN, rig.in_terminal("sleep 60"))
    assert rig.keepers.look(RUN).presence is Presence.GONE
    assert rig.tmux.panes() == []


def test_ctrl_c_is_the_programs_and_not_the_keepers(rig):
    script = (
        "trap 'echo caught >> "
        + rig.note("got")
        + "' INT; echo ready; while :; do sleep 0.05; done"
    )
    rig.start(RUN, rig.in_terminal(script))
    until(lambda: "ready" in rig.terminals.screen(RUN).text)
    rig.terminals.press(RUN, "C-c")
    until((rig.place / "got").exists)
    assert rig.keepers.look(RUN).presence is Presence.ALIVE


def test_ctrl_c_ends_a_program_that_does_not_catch_it(rig):
    rig.start(RUN, rig.in_terminal("echo ready; exec sleep 60"))
    until(lambda: "ready" in rig.terminals.screen(RUN).text)
    rig.terminals.press(RUN, "C-c")
    assert rig.ended(RUN).code == -signal.SIGINT


def test_a_program_that_is_stopped_by_a_key_goes_on_since_no_shell_could_resume_it(rig):
    rig.start(RUN, rig.in_terminal("i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done"))

    def count() -> int:
        return max(
            (int(word) for word in rig.terminals.screen(RUN).text.split() if word.isdigit()),
            default=0,
        )

    before = until(count)
    pane = rig.tmux.panes()[0].id
    rig.tmux._ask(["send-keys", "-t", pane, "C-z"])
    until(lambda: count() > before + 20)  # so many do not come before the key does
    assert rig.keepers.look(RUN).presence is Presence.ALIVE


def test_a_stop_is_polite_first(rig):
    rig.ready()
    rig.keepers.stop(RUN, grace=20)
    assert rig.ended(RUN).code == -signal.SIGTERM
    nothing_left(rig)


def test_a_program_that_is_deaf_to_a_stop_is_killed_after_the_grace(rig):
    rig.ready(RUN, "--deaf")
    begun = time.monotonic()
    rig.keepers.stop(RUN, grace=0.6)
    assert rig.ended(RUN).code == -signal.SIGKILL
    assert time.monotonic() - begun >= 0.6
    nothing_left(rig)


def test_what_a_program_leaves_behind_is_ended_with_it(rig):
    script = f"setsid sleep 61 & echo $! > {rig.note('a')}; sleep 61 & echo $! > {rig.note('b')}"
    rig.start(RUN, rig.in_terminal(script))
    left = [rig.pid("a"), rig.pid("b")]
    assert rig.ended(RUN).code == 0
    assert not any(map(is_alive, left))
    nothing_left(rig)


def test_a_killed_program_is_an_exit(rig):
    rig.ready()
    os.kill(coder_of(rig), signal.SIGKILL)
    assert rig.ended(RUN).code == -signal.SIGKILL
    nothing_left(rig)


def test_a_killed_keeper_is_gone_and_so_is_its_program(rig):
    rig.ready()
    coder = coder_of(rig)
    os.kill(rig.keeper(RUN), signal.SIGKILL)
    until(lambda: rig.keepers.look(RUN).presence is Presence.GONE)
    nothing_left(rig)
    assert not is_alive(coder)


def test_a_killed_keeper_whose_program_is_deaf_is_ended_all_the_same(rig):
    rig.start(
        RUN, rig.in_terminal(f"trap '' HUP TERM; echo $$ > {rig.note('pid')}; sleep 61 & wait")
    )
    coder = rig.pid("pid")
    os.kill(rig.keeper(RUN), signal.SIGKILL)
    until(lambda: rig.keepers.look(RUN).presence is Presence.GONE)
    nothing_left(rig)
    assert not is_alive(coder)


def test_when_the_server_is_killed_its_programs_end_and_every_ending_is_recorded(rig):
    runs = ["t-1.1", "t-2.1", "t-3.1"]
    for run in runs:
        rig.ready(run)
    coders = [coder_of(rig, run) for run in runs]
    os.kill(rig.server_pid(), signal.SIGKILL)
    for run in runs:
        assert rig.ended(run).code in {-signal.SIGHUP, 1}
        nothing_left(rig, run)
    assert not any(map(is_alive, coders))
    with pytest.raises(Unavailable):
        rig.terminals.screen("t-1.1")


def test_a_program_that_ignores_the_end_of_its_terminal_is_killed(rig):
    rig.start(RUN, rig.in_terminal(f"trap '' HUP; echo $$ > {rig.note('pid')}; sleep 61 & wait"))
    coder = rig.pid("pid")
    os.kill(rig.server_pid(), signal.SIGKILL)
    assert rig.ended(RUN).code == -signal.SIGKILL
    assert not is_alive(coder)


def test_killing_the_session_ends_the_run(rig):
    rig.ready()
    rig.tmux.kill(rig.tmux.panes()[0].session_id)
    assert rig.ended(RUN).code in {-signal.SIGHUP, 1}
    nothing_left(rig)


def test_a_new_server_whose_panes_have_the_same_numbers_is_not_mistaken(rig):
    rig.ready()
    os.kill(rig.server_pid(), signal.SIGKILL)
    rig.ended(RUN)
    rig.start("t-2.1", rig.program())
    assert rig.tmux.panes()[0].id == json.loads(rig.file(RUN, "keeper.json").read_text())["pane"]
    with pytest.raises(Unavailable):
        rig.terminals.screen(RUN)
    with pytest.raises(Unavailable):
        rig.terminals.paste(RUN, "not for you")


def test_a_program_that_crashes_or_hangs_is_seen_as_such(rig):
    rig.ready()
    rig.terminals.paste(RUN, "crash 9")
    assert rig.ended(RUN).code == 9
    rig.ready("t-2.1")
    rig.terminals.paste("t-2.1", "hang")
    until(lambda: {"kind": "turn", "text": "hang"} in rig.hooks("t-2.1"))
    assert rig.keepers.look("t-2.1").presence is Presence.ALIVE
    rig.keepers.stop("t-2.1", grace=0)
    rig.ended("t-2.1")


def test_a_lease_that_runs_out_ends_it(rig):
    rig.ready()
    rig.keepers.renew([RUN], until=machine.since_boot() + 0.5)
    assert rig.ended(RUN).code == -signal.SIGKILL


def test_32_programs_start_side_by_side_and_nothing_is_left_of_them(rig):
    runs = [f"t-{n}.1" for n in range(32)]
    with ThreadPoolExecutor(32) as pool:
        list(pool.map(lambda run: rig.keepers.launch(run, rig.in_terminal("sleep 60")), runs))
    for run in runs:
        rig.seen(run)
    assert {pane.run for pane in rig.tmux.panes()} == set(runs)
    for run in runs:
        rig.keepers.stop(run, grace=5)
    for run in runs:
        assert rig.ended(run).code == -signal.SIGTERM
        nothing_left(rig, run)
    alive = subprocess.run(["pgrep", "-f", rig.tmux.socket], capture_output=True, check=False)
    assert alive.stdout == b""


def test_a_keeper_in_a_pane_uses_as_little_as_any_other(rig, capsys):
    rig.start(RUN, rig.in_terminal("sleep 60"))
    until(lambda: sleeps(rig.keeper(RUN)), "a keeper that waits for its program")
    lines = Path(f"/proc/{rig.keeper(RUN)}/smaps_rollup").read_text().splitlines()
    sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines if "kB" in line}
    with capsys.disabled():
        print(f"\na keeper in a pane: PSS {sizes['Pss'] / 1024:.1f} MB")
    assert sizes["Pss"] < 12 * 1024


def test_the_screen_says_what_the_program_is_doing(rig):
    rig.ready()
    rig.terminals.paste(RUN, "sleep 60")
    rig.until_state(ScreenState.WORKING)
    rig.terminals.press(RUN, "Escape")
    rig.until_state(ScreenState.READY)
    rig.terminals.paste(RUN, "permission rm -rf build")
    rig.until_state(ScreenState.WANTS)
    kinds = [hook["kind"] for hook in rig.hooks()]
    assert kinds == ["session", "turn", "result", "turn", "tool", "wants"]


def forge(rig, **wrong):
    """What an agent could write into its own record."""
    file = rig.file(RUN, "keeper.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), **wrong}))


def test_a_forged_pane_runs_no_command_of_tmux(rig):
    """What is a pattern of a window's name in one place is a command where tmux parses its words."""
    rig.ready()
    pane = rig.tmux.panes()[0]
    rig.tmux._ask(["rename-window", "-t", pane.id, "a[["])  # as its program can, by its own name
    forge(rig, pane=f"={pane.session}:a[[ ; run-shell 'touch {rig.place}/made' #][")
    with pytest.raises(Unavailable):
        rig.terminals.paste(RUN, "Go on")
    assert not (rig.place / "made").exists()


def test_a_forged_pane_shows_and_ends_no_other_terminal(rig):
    rig.start(RUN, rig.in_terminal("sleep 60"))
    rig.start("t-2.1", rig.in_terminal("echo secret; sleep 60"))
    until(lambda: "secret" in rig.terminals.screen("t-2.1").text)
    other = json.loads(rig.file("t-2.1", "keeper.json").read_text())
    mine = json.loads(rig.file(RUN, "keeper.json").read_text())
    forge(rig, pane=other["pane"], pid=other["pid"])
    with pytest.raises(Unavailable):
        rig.terminals.screen(RUN)
    assert rig.terminals.screens([RUN]) == {}
    order = rig.file(RUN, "launch.json")
    session = json.loads(rig.file("t-2.1", "launch.json").read_text())["session"]
    kept = order.read_text()
    order.write_text(json.dumps({**json.loads(kept), "session": session}))
    rig.terminals.kill(RUN)
    assert "secret" in rig.terminals.screen("t-2.1").text
    order.write_text(kept)
    forge(rig, **mine)
