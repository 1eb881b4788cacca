"""tmux itself, on a server of our own."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fleet.adapters.tmux.tmux import RECORDED, Tmux
from fleet.domain.errors import Unavailable
from tests.contract.panes import Panes
from tests.wait import until

BRANCHES = [
    "main", "feature/login", "v1.2", "a:b", "a.b", "-lead", "täglich/übung", "日本語", "x" * 200,
    "$(touch x)", "a'b\"c", "#{pid}", "a;b", "spaces are not legal in git", "=exact", "@1", "%1",
]  # fmt: skip


@pytest.fixture
def rig(tmp_path):
    made = Panes(tmp_path)
    yield made
    made.close()


@pytest.fixture
def start(rig):
    def started(session, script="sleep 60", *, run="t-1.1", cwd="/"):
        argv = ["/bin/sh", "-c", script]
        rig.tmux.start(session, argv, run=run, cwd=str(cwd), log=str(rig.place / f"{run}.log"))
        return next(pane for pane in rig.tmux.panes() if pane.run == run)

    return started


@pytest.mark.parametrize("branch", BRANCHES)
def test_any_branch_can_be_in_the_name_of_a_session(rig, start, branch):
    name = rig.tmux.name("t-31.2", branch)
    assert name.startswith("fleet_t-31-2")
    assert len(name) < 70
    assert start(name).session == name


def test_no_two_runs_share_a_name_whatever_their_branches_are_called(rig):
    runs = ["t-1.1", "t-1.2", "t-11", "t-1.11", "t-11.1"]
    names = {rig.tmux.name(run, branch) for run in runs for branch in ("a/b", "a-b", "a.b")}
    assert {name.removesuffix("_a-b") for name in names} == {rig.tmux.name(run) for run in runs}
    assert len({rig.tmux.name(run) for run in runs}) == len(runs)


def test_the_prefix_is_kept_as_far_as_tmux_allows(tmp_path):
    assert Tmux(tmp_path, prefix="ai_").name("t-1.1", "x") == "ai_t-1-1_x"
    assert Tmux(tmp_path, prefix="my.ai:").name("t-1.1") == "my-ai-t-1-1"


def test_every_home_has_a_server_of_its_own(tmp_path):
    one, other = Tmux(tmp_path / "one"), Tmux(tmp_path / "other")
    assert one.socket != other.socket
    assert one.socket == Tmux(tmp_path / "x" / ".." / "one").socket
    assert one.line("attach", "-t", "a b") == f"tmux -L {one.socket} attach -t 'a b'"


def test_the_users_own_server_never_hears_of_us(rig, start):
    start("fleet_t-1-1")
    mine = subprocess.run(["tmux", "ls"], capture_output=True, text=True, check=False)
    assert "fleet_t-1-1" not in mine.stdout
    assert [pane.session for pane in rig.tmux.panes()] == ["fleet_t-1-1"]


def test_without_a_server_there_are_no_panes_and_nothing_to_kill(rig):
    assert rig.tmux.panes() == []
    assert rig.tmux.capture("%0") is None
    assert rig.tmux.look("%0") is None
    assert rig.tmux.paste("%0", b"x") is None
    assert rig.tmux.press("%0", "Enter") is False
    rig.tmux.kill("fleet_t-1-1")


def test_a_session_is_made_once(rig, start):
    first = start("one", f"echo x >> {rig.note('ran')}; sleep 60")
    assert start("one", f"echo x >> {rig.note('ran')}; sleep 60") == first
    until((rig.place / "ran").exists)
    assert (rig.place / "ran").read_text() == "x\n"


def test_a_name_that_begins_another_is_not_taken_for_it(rig, start):
    start("one", run="t-1.1")
    start("one-more", run="t-2.1")
    rig.tmux.kill("on")
    rig.tmux.kill("one")
    assert [pane.session for pane in rig.tmux.panes()] == ["one-more"]


@pytest.mark.parametrize(("script", "status"), [("exit 7", 7), ("kill -9 $$", -9), ("exit 0", 0)])
def test_a_pane_whose_command_ended_stays_and_says_how(rig, start, script, status):
    pane = start("one", script)
    until(lambda: rig.tmux.look(pane.id).dead or rig.tmux.look(pane.id).status is not None)
    assert rig.tmux.look(pane.id).status in {status, None}  # tmux 3.3 sometimes forgets it


def test_what_is_typed_into_a_dead_pane_harms_nobody(rig, start):
    dead = start("one", "exit 7", run="t-1.1")
    living = start("two", run="t-2.1")
    until(lambda: rig.tmux.look(dead.id).dead)
    assert rig.tmux.paste(dead.id, b"hello") is None
    assert rig.tmux.press(dead.id, "Enter") is False
    assert rig.tmux.look(living.id).dead is False
    assert rig.tmux._ask(["list-buffers"]) == ""


def test_a_pane_that_dies_while_it_is_typed_into_harms_nobody(rig, start):
    living = start("living", run="t-0.1")
    for number in range(1, 15):
        pane = start(f"s{number}", "sleep 0.02", run=f"t-{number}.1")
        while rig.tmux.paste(pane.id, b"x" * 5000):
            pass
    assert rig.tmux.look(living.id).dead is False


def test_all_that_was_on_the_screen_is_kept_in_a_file_with_any_name(tmp_path):
    odd = tmp_path / "it's #{pid} $(touch x) %H"
    odd.mkdir()
    rig = Panes(odd)
    try:
        argv = ["/bin/sh", "-c", "pwd; printf '\\033[31mred\\033[0m\\n'; sleep 60"]
        rig.tmux.start("one", argv, run="t-1.1", cwd=str(odd), log=str(odd / "screen"))
        until(lambda: b"\x1b[31mred" in _read(odd / "screen"))
        assert str(odd).encode() in _read(odd / "screen")
        assert sorted(p.name for p in odd.iterdir()) == ["screen"]
    finally:
        rig.close()


def test_of_a_loud_program_the_last_megabytes_are_kept(rig, start):
    start("loud", "head -c 14000000 /dev/zero | tr '\\0' x; echo; echo The end.; sleep 60")
    log = rig.place / "t-1.1.log"
    before = rig.place / "t-1.1.log.1"
    until(lambda: b"The end." in _read(log)[-100:])
    until(lambda: RECORDED < len(_read(before) + _read(log)) < 12_000_000)
    assert log.stat().st_mode & 0o777 == 0o600


def _read(file):
    return file.read_bytes() if file.exists() else b""


def test_what_scrolled_away_can_still_be_read_with_its_long_lines_whole(rig, start):
    pane = start("one", "seq 1 3000; printf '%0300d\\n' 7; echo end; sleep 60")
    until(lambda: "end" in rig.tmux.capture(pane.id)[1])
    assert "\n2000\n" not in rig.tmux.capture(pane.id)[1]
    whole = rig.tmux.capture(pane.id, history=5000)[1]
    assert whole.startswith("1\n2\n3\n")
    assert "\n" + "7".zfill(300) + "\n" in whole


def test_the_server_is_given_no_secrets_and_no_mark_of_a_run(rig, start, monkeypatch):
    monkeypatch.setenv("MY_SECRET", "s3cret")
    monkeypatch.setenv("FLEET_RUN_MARK", "0" * 32)
    monkeypatch.setenv("TMUX", "/tmp/tmux-0/other,1,0")
    monkeypatch.setenv("TMUX_TMPDIR", str(rig.place))
    start("one", f"env > {rig.note('env')}; sleep 60")
    until(lambda: "PWD=" in _read(rig.place / "env").decode())
    given = (rig.place / "env").read_text()
    assert "s3cret" not in given
    assert "FLEET_RUN_MARK" not in given
    server = Path(f"/proc/{rig.server_pid()}/environ")
    assert b"s3cret" not in server.read_bytes()


def test_an_attach_goes_to_our_server_from_wherever_one_is(rig):
    plain = ["tmux", "-u", "-L", rig.tmux.socket, "attach-session", "-t", "=one"]
    assert rig.tmux.attach_argv("one", {}) == plain
    elsewhere = rig.tmux.attach_argv("one", {"TMUX": "/tmp/tmux-0/default,1,0"})
    assert elsewhere == ["env", "-uTMUX", *plain]
    inside = {"TMUX": f"/tmp/tmux-0/{rig.tmux.socket},1,0"}
    assert rig.tmux.attach_argv("one", inside)[4:] == ["switch-client", "-t", "=one"]


def test_somebody_who_scrolled_back_does_not_catch_the_keys(rig, start):
    pane = start("one", f'seq 1 300; read line; echo "$line" > {rig.note("got")}; sleep 60')
    until(lambda: "300" in rig.tmux.capture(pane.id)[1])
    rig.tmux._ask(["copy-mode", "-t", pane.id])
    assert rig.tmux.paste(pane.id, b"hello")
    assert rig.tmux.press(pane.id, "Enter")
    until(lambda: _read(rig.place / "got") == b"hello\n")


def test_32_sessions_start_side_by_side_on_a_server_that_was_not_there(rig):
    def one(number):
        argv = ["/bin/sh", "-c", "sleep 60"]
        log = str(rig.place / f"{number}.log")
        rig.tmux.start(f"s{number}", argv, run=f"t-{number}.1", cwd="/", log=log)

    with ThreadPoolExecutor(32) as pool:
        list(pool.map(one, range(32)))
    panes = rig.tmux.panes()
    assert len(panes) == 32
    assert not any(pane.dead for pane in panes)


def test_a_server_that_ends_as_its_last_session_does_is_started_again(rig, start):
    for number in range(20):
        pane = start(f"s{number}", run=f"t-{number}.1")
        rig.tmux.kill(pane.session_id)


def test_a_server_that_does_not_answer_is_an_error_that_says_so(rig, start, monkeypatch):
    import fleet.adapters.tmux.tmux as module

    start("one")
    monkeypatch.setattr(module, "TMUX_SECONDS", 0.5)
    server = rig.server_pid()
    os.kill(server, 19)
    try:
        with pytest.raises(Unavailable, match="did not answer") as raised:
            rig.tmux.panes()
        assert f"tmux -L {rig.tmux.socket} list-sessions" in raised.value.fix
    finally:
        os.kill(server, 18)


def test_a_machine_without_tmux_is_told_to_install_it(rig, monkeypatch):
    monkeypatch.setenv("PATH", str(rig.place))
    with pytest.raises(Unavailable) as raised:
        rig.tmux.version()
    assert raised.value.code == "no_tmux"
    assert "Install tmux" in raised.value.fix


def test_inside_ones_own_tmux_the_key_on_the_status_line_leaves_only_ours(rig, start):
    start("one")
    outer = ["tmux", "-L", f"{rig.tmux.socket}-outer", "-f", "/dev/null"]
    attach = rig.tmux.attach_argv("one", {"TMUX": "/tmp/tmux-0/default,1,0"})

    def attached() -> int:
        return rig.tmux.panes()[0].attached

    try:
        size = ["-x", "120", "-y", "40"]
        subprocess.run([*outer, "new-session", "-d", "-s", "mine", *size], check=True)
        subprocess.run([*outer, "send-keys", "-t", "mine", " ".join(attach), "Enter"], check=True)
        until(lambda: attached() == 1, "somebody to be attached")
        shown = [*outer, "capture-pane", "-p", "-t", "mine"]
        until(lambda: b"C-q leaves it running" in subprocess.check_output(shown), "the hint")
        subprocess.run([*outer, "send-keys", "-t", "mine", "C-q"], check=True)
        until(lambda: attached() == 0, "nobody to be attached")
        assert b"[detached (from session one)]" in subprocess.check_output(shown)
    finally:
        subprocess.run([*outer, "kill-server"], check=False)
