"""Agents in terminals of their own, by the commands that a person types; tmux is the real one."""

from __future__ import annotations

import fcntl
import json
import re
import subprocess
from pathlib import Path

import pytest

from fleet.adapters.tmux.tmux import Tmux
from tests.e2e.crashes import LONG
from tests.e2e.scratch import Scratch
from tests.wait import LIMIT, until

ODD = ["it's", "$(touch x)", "two\nlines", "C-c", "-x --help", "tab\there", "ünï 🚀", "end\\"]


@pytest.fixture
def scratch(tmp_path):
    made = Scratch(tmp_path)
    yield made
    for agent in made.data("list", "--everywhere"):
        made.type("kill", agent["task"], "--force")


def agents(scratch, *words: str) -> dict[str, dict]:
    return {a["branch"]: a for a in scratch.data("list", *words)}


def rests(scratch, branch: str) -> None:
    """Its turn is over."""
    until(lambda: agents(scratch)[branch]["doing"] == "waiting", f"{branch} to have done its turn")


def heard(scratch, task: str) -> list[str]:
    """What its program took as prompts, exactly."""
    lines = (scratch.home / "runs" / f"{task}.1" / "transcript").read_text().splitlines()
    said = [json.loads(line) for line in lines]
    return [s["text"] for s in said if s["kind"] in {"turn", "heard"} and s.get("text")]


def test_create_makes_a_branch_a_worktree_and_a_terminal_and_its_prompt_is_taken(scratch):
    said = scratch("create", "fix-auth", "--prompt", "say Fix the login")
    assert said.startswith("Created fix-auth (t-1): scripted")
    assert "fleet attach fix-auth" in said
    rests(scratch, "fix-auth")
    agent = agents(scratch)["fix-auth"]
    assert (agent["doing"], agent["terminal"]) == ("waiting", True)
    assert agent["memory"] > 1_000_000
    assert "fix-auth" in scratch.git("branch", "--list", "fix-auth")
    assert heard(scratch, "t-1") == ["say Fix the login"]
    assert "t-1" in scratch("tasks")


def test_a_branch_that_is_called_like_a_task_is_sat_down_at_by_its_own_task(scratch):
    said = scratch("create", "t-7", "--prompt", "say Hi")
    assert said.startswith("Created t-7 (t-1)")
    assert "fleet attach t-1\n" in said


def test_without_a_prompt_it_waits_for_the_first_word(scratch):
    scratch("create", "empty")
    assert agents(scratch)["empty"]["doing"] in {"idle", "starting"}
    assert scratch("prompt", "empty", "say Hello") == "t-1 has read the message (m-1).\n"
    assert heard(scratch, "t-1") == ["say Hello"]


@pytest.mark.parametrize("text", ODD)
def test_text_arrives_byte_for_byte_as_the_first_prompt_and_as_a_later_one(scratch, text):
    scratch("create", "odd", "--prompt", text)
    rests(scratch, "odd")
    assert scratch("prompt", "odd", "--", text) == "t-1 has read the message (m-1).\n"
    assert heard(scratch, "t-1") == [text, text]


def test_so_does_a_first_prompt_that_is_too_long_for_an_argument(scratch):
    scratch("create", "long", "--prompt", LONG)
    assert heard(scratch, "t-1") == [LONG]


def test_words_that_are_sent_while_it_starts_wait_for_its_first_prompt_and_are_not_taken_for_it(
    scratch,
):
    created = scratch.start("create", "slow", "--prompt", "late 2\nsleep 1")
    until((scratch.home / "runs" / "t-1.1" / "transcript").exists, "its program")
    said = scratch("prompt", "slow", "say Later", "--queue", "--wait", "30")
    assert said == "t-1 has read the message (m-1).\n"
    assert heard(scratch, "t-1") == ["late 2\nsleep 1", "say Later"]
    assert created.wait(LIMIT) == 0
    created.communicate()


def test_a_first_prompt_that_begins_no_turn_is_not_waited_for_for_ever(scratch):
    scratch.type("create", "never", "--prompt", "late 600", "--wait", "1")
    said = scratch("prompt", "never", "say Now", "--queue", "--wait", "60")
    assert said == "t-1 has read the message (m-1).\n"
    assert heard(scratch, "t-1") == ["say Now"]


def test_the_command_waits_for_the_last_of_several(scratch):
    setup = 'case "$FLEET_BRANCH" in *-B) sleep 2;; esac'
    scratch("fanout", "3", "few", "--prompt", "say Hi", env={"FLEET_WORKSPACE_SETUP": setup})
    assert [heard(scratch, f"t-{n}") for n in (2, 3, 4)] == [["say Hi"]] * 3


def test_a_prompt_is_confirmed_or_refused_with_the_reason(scratch):
    scratch("create", "busy", "--prompt", "sleep 3")
    refused = scratch.fails("prompt", "busy", "say More", status=1)
    assert "is busy with its turn" in refused
    assert "--queue" in refused
    queued = scratch("prompt", "busy", "say More", "--queue", "--wait", "20")
    assert queued == "t-1 has read the message (m-1).\n"
    assert heard(scratch, "t-1") == ["sleep 3", "say More"]


def test_the_same_words_are_heard_as_often_as_they_are_sent(scratch):
    scratch("create", "again", "--prompt", "say More")
    for _ in range(2):
        rests(scratch, "again")
        scratch("prompt", "again", "say More")
    assert heard(scratch, "t-1") == ["say More"] * 3


def test_an_agent_whose_program_ended_is_not_typed_into(scratch):
    scratch("create", "short", "--prompt", "say Hello.")
    rests(scratch, "short")
    scratch("prompt", "short", "exit 3")
    until(lambda: agents(scratch)["short"]["doing"] == "exited", "its end")
    assert agents(scratch)["short"]["exit"] == 3
    assert "exited 3" in scratch("list")
    refused = scratch.fails("prompt", "short", "rm -rf nothing", status=1)
    assert "has exited with status 3" in refused
    assert "Record how it ended: fleet list --repair." in refused
    shown = scratch.type("show", "short").stderr
    assert "It has exited with status 3  → Record how it ended: fleet list --repair." in shown
    scratch("list", "--repair")
    assert (scratch.home / "runs" / "t-1.1" / "screen.txt").exists()
    assert Tmux(scratch.home).panes() == []  # its terminal is closed with its run
    assert scratch.data("show", "t-1")["task"]["status"] == "failed"
    assert "has exited" in scratch.fails("prompt", "short", "rm -rf nothing", status=1)
    assert scratch.data("show", "t-1")["task"]["status"] == "failed"


def press(scratch, key: str) -> None:
    """As somebody who sits at the terminal of the first agent."""
    pane = json.loads((scratch.home / "runs" / "t-1.1" / "keeper.json").read_text())["pane"]
    argv = ["tmux", "-L", Tmux(scratch.home).socket, "send-keys", "-t", pane, key]
    subprocess.run(argv, check=True, timeout=LIMIT)


def test_a_dialog_is_seen_never_typed_into_and_over_once_it_is_answered(scratch):
    scratch("create", "asks", "--prompt", "errand 30 rm -rf build")
    until(lambda: agents(scratch)["asks"]["doing"] == "permission", "its dialog")
    assert "asks for a permission" in scratch.fails("prompt", "asks", "yes", status=1)
    assert "permission" in scratch("list")
    assert "it said wants: rm -rf build" in scratch("explain", "asks")
    press(scratch, "Enter")
    until(lambda: agents(scratch)["asks"]["doing"] == "working", "that it goes on")
    assert "full_screen.spinner" in scratch("explain", "asks")
    press(scratch, "Escape")
    until(lambda: agents(scratch)["asks"]["doing"] == "waiting", "that it was interrupted")


def test_a_command_of_the_program_that_begins_no_turn_is_delivered_and_blocks_nothing(scratch):
    scratch("create", "tidy", "--prompt", "say Hi")
    rests(scratch, "tidy")
    assert scratch("prompt", "tidy", "/clear") == "t-1 has read the message (m-1).\n"
    assert scratch("prompt", "tidy", "say More") == "t-1 has read the message (m-2).\n"
    assert heard(scratch, "t-1") == ["say Hi", "say More"]


def test_an_open_panel_is_a_state_of_its_own_and_says_what_closes_it(scratch):
    scratch("create", "help", "--prompt", "say Hi")
    rests(scratch, "help")
    done = scratch.type("prompt", "help", "/help")
    assert done.stdout == "t-1 has read the message (m-1).\n"
    assert "It shows a panel now. Close it with Esc: fleet attach t-1" in done.stderr
    until(lambda: agents(scratch)["help"]["doing"] == "panel", "its panel")
    assert "Close it with Esc" in scratch.fails("prompt", "help", "say More", status=1)
    panel = "It shows a panel of its program  → Close it with Esc: fleet attach t-1\n"
    assert panel in scratch.type("show", "help").stderr
    assert "fleet attach help" in scratch("status")
    press(scratch, "Escape")
    until(lambda: agents(scratch)["help"]["doing"] == "waiting", "that the panel is closed")
    waits = "It waits for you  → fleet prompt t-1 TEXT, or fleet attach t-1\n"
    assert waits in scratch.type("show", "help").stderr
    assert "has read the message" in scratch("prompt", "help", "say More")


def test_a_message_that_was_not_read_is_withdrawn(scratch):
    scratch("create", "busy", "--prompt", "sleep 600")
    first, second = (
        scratch.data("prompt", "busy", "--queue", "--wait", "0", text)["id"]
        for text in ("say One", "say Two")
    )
    assert scratch("unsend", first) == f"Withdrew {first} from t-1.\n"
    statuses = {m["id"]: m["status"] for m in scratch.data("show", "t-1")["messages"]}
    assert statuses == {first: "withdrawn", second: "queued"}
    (row,) = [line for line in scratch("show", "t-1").splitlines() if line.startswith(first)]
    assert row.split()[2] == "withdrawn"
    assert f"{first} was already withdrawn" in scratch.fails("unsend", first, status=1)


def test_an_agent_whose_model_needs_the_gateway_is_refused_without_one(scratch):
    (scratch.repo / "fleet.yaml").write_text(
        "gateway: {port: 1}\n"
        "nodes: {gpu: {endpoint: 'http://127.0.0.1:1'}}\n"
        "models: {big: {node: gpu, upstream: llama}}\n"
        "agents: {implementer: {coder: scripted, model: big}}\n"
    )
    said = scratch.fails("create", "impl", "-a", "implementer", "--prompt", "say Hi", status=3)
    assert "The gateway at http://127.0.0.1:1 does not answer, so implementer could not" in said
    assert "fleet up" in said
    assert scratch.data("tasks", "--all") == []


def test_run_once_ends_beside_an_agent_in_a_terminal_and_says_so(scratch):
    scratch("create", "seat", "--prompt", "say Hi")
    rests(scratch, "seat")
    task = scratch.add("Beside it")
    said = scratch.work()
    assert scratch.status(task) == "done"
    assert re.search(r"^t-1 +left +it goes on in its terminal +fleet show t-1$", said, re.MULTILINE)
    assert agents(scratch)["seat"]["doing"] == "waiting"


def test_a_turn_that_ended_without_a_word_is_over_by_its_screen(scratch):
    scratch("create", "mute", "--prompt", "forget")
    until(lambda: agents(scratch)["mute"]["doing"] == "waiting", "that its screen is looked at")
    assert "full_screen.empty-box" in scratch("explain", "mute")
    assert scratch("prompt", "mute", "say More") == "t-1 has read the message (m-1).\n"
    assert heard(scratch, "t-1") == ["forget", "say More"]


def test_a_name_that_no_branch_can_have_is_refused_before_anything_is_made(scratch):
    for name in ("..", ".", "", "a..b", "a b", "-x", "a.lock"):
        assert "is not a valid branch name" in scratch.fails("create", "--", name, status=2)
    assert scratch.data("tasks", "--all") == []
    assert not list((scratch.home / "worktrees").glob("*/*")) if scratch.home.exists() else True


def test_a_base_that_is_not_there_is_refused_before_anything_is_made(scratch):
    said = scratch.fails("create", "x", "--base", "nope", "--prompt", "say Hi", status=2)
    assert "There is no commit 'nope'" in said
    assert "git branch" in said
    scratch.fails("fanout", "2", "x", "--base", "nope", "--prompt", "say Hi", status=2)
    assert scratch.data("tasks", "--all") == []


@pytest.mark.parametrize("name", ["a/b", "v1.2", "größe", "x" * 200])
def test_any_valid_branch_will_do(scratch, name):
    scratch("create", name, "--prompt", "say Hi")
    assert scratch.data("show", name)["task"]["id"] == "t-1"
    rests(scratch, name)


def test_a_fan_out_is_a_task_with_children_named_by_letters(scratch):
    said = scratch("fanout", "3", "auth", "--prompt", "say Refactor")
    assert [line.split()[1] for line in said.splitlines()[:3]] == ["auth-A", "auth-B", "auth-C"]
    found = agents(scratch)
    assert {a["batch"] for a in found.values()} == {"t-1"}
    assert "Batch t-1" in scratch("list", "--grouped")
    assert (
        scratch.data("show", "auth-A2")["task"]["id"]
        == scratch.data("show", "auth-B")["task"]["id"]
    )


def test_multi_gives_each_its_own_prompt(scratch):
    scratch("multi", "one:say First", "two:say Second: with a colon")
    assert heard(scratch, "t-2") == ["say First"]
    assert heard(scratch, "t-3") == ["say Second: with a colon"]


def test_multi_with_a_pair_that_is_none_starts_nothing(scratch):
    assert "has no prompt" in scratch.fails("multi", "one:say First", "two", status=2)
    assert "is given twice" in scratch.fails("multi", "a:x", "a:y", status=2)
    assert scratch.data("tasks", "--all") == []


def test_kill_keeps_the_work_then_clears_everything_away(scratch):
    scratch("create", "gone", "--prompt", "write note.txt precious")
    path = agents(scratch)["gone"]["path"]
    said = scratch("kill", "gone")
    assert f"Removed {path}." in said
    assert "Kept what was not merged: t-1/1" in said
    assert agents(scratch) == {}
    scratch("kept", "restore", "t-1/1", "--branch", "back")
    assert "precious" in scratch.git("show", "back:note.txt")


def test_a_name_that_was_killed_before_means_the_agent_that_has_it_now(scratch):
    scratch("create", "twice", "--prompt", "say One")
    scratch("kill", "twice", "--delete-branch")
    said = scratch("create", "twice", "--prompt", "say Two")
    branch = said.split()[1]
    assert f"fleet attach {branch}" in said
    scratch("kill", "twice")
    assert scratch.data("show", "t-2")["task"]["status"] == "cancelled"
    assert agents(scratch) == {}


def test_a_pattern_kills_all_that_are_like_it_and_no_other(scratch):
    scratch("multi", "auth-a:say x", "auth-b:say x", "docs:say x")
    scratch("kill", "auth-*", "--force")
    assert set(agents(scratch)) == {"docs"}


def test_one_that_cannot_be_cleared_away_holds_up_none_of_the_others(scratch):
    scratch("multi", "a:say x", "b:write note.txt x", "c:say x")
    paths = {branch: Path(agent["path"]) for branch, agent in agents(scratch).items()}
    rests(scratch, "b")
    with Path(f"{paths['b']}.removing").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = scratch.type("kill", "*", "--force")
        assert done.returncode == 1
        assert f"Another fleet process is removing {paths['b']}." in done.stdout
    assert {branch: path.exists() for branch, path in paths.items()} == {
        "a": False,
        "b": True,
        "c": False,
    }
    assert agents(scratch) == {}
    assert "Kept what was not merged: t-3/1" in scratch("kill", "b")


def test_explain_prints_the_evidence(scratch):
    scratch("create", "why", "--prompt", "say Hi")
    rests(scratch, "why")
    said = scratch("explain", "why")
    assert "waiting" in said
    assert "it said result" in said


def test_headless_agents_start_at_once_too(scratch):
    scratch("create", "quiet", "--headless", "--prompt", "say Hi\nsleep 1")
    assert scratch.data("list")[0]["terminal"] is False


def test_outside_a_repository_it_says_what_to_do(scratch, tmp_path):
    place = tmp_path / "plain"
    place.mkdir()
    assert "not in a git repository" in scratch.fails("create", "x", cwd=place, status=2)


def test_a_supervisor_that_runs_starts_it_and_delivers(scratch):
    with scratch.supervisor():
        scratch("create", "kept", "--prompt", "say Hi")
        rests(scratch, "kept")
        assert scratch("prompt", "kept", "say More") == "t-1 has read the message (m-1).\n"
        assert heard(scratch, "t-1") == ["say Hi", "say More"]
        scratch("cancel", "kept")
        until(lambda: Tmux(scratch.home).panes() == [], "its terminal to be closed")


def test_attach_becomes_tmux_at_its_terminal(scratch):
    scratch("create", "seat", "--prompt", "say Hi")
    asked = scratch.type("attach", "seat")  # there is no terminal here, and tmux says so itself
    assert "not a terminal" in asked.stderr
    assert asked.returncode == 1


def test_workers_are_spawned_and_dismissed_by_their_handles(scratch):
    assert scratch("spawn", "alice", "say", "Fix the login").startswith("Created alice (t-1)")
    assert heard(scratch, "t-1") == ["say Fix the login"]
    assert [w["branch"] for w in scratch.data("workers")] == ["alice"]
    assert (
        scratch("send", "alice", "say More", "--wait", "30") == "t-1 has read the message (m-1).\n"
    )
    scratch("spawn", "bob", "sleep 9", "--spawn-mode", "process")
    assert {w["branch"]: w["terminal"] for w in scratch.data("workers")} == {
        "alice": True,
        "bob": False,
    }
    assert "alice (t-1) is cancelled." in scratch("dismiss", "alice")
    assert [w["branch"] for w in scratch.data("workers")] == ["bob"]
    assert "no agent 'alice'" in scratch.fails("dismiss", "alice", status=2)


def test_words_of_an_agent_and_its_last_screen_are_there_when_it_has_ended(scratch):
    scratch("create", "over", "--prompt", "say Hello")
    assert "Hello" in scratch("logs", "over")
    scratch("kill", "over")
    file = scratch.home / "runs" / "t-1.1" / "screen.txt"
    assert "say Hello" in file.read_text()
    said = scratch.type("logs", "t-1")
    assert "Hello" in said.stdout
    assert str(file) in said.stderr
    assert str(file) in scratch.data("explain", "t-1")["screen"]
    assert "where its last screen is" in scratch.fails("attach", "t-1", status=1)


def test_an_agent_that_waits_for_its_person_is_closed_as_done(scratch):
    scratch("create", "fix-auth", "--prompt", "write login.txt fixed\ncommit Fix the login")
    rests(scratch, "fix-auth")
    assert scratch("close", "fix-auth", "--reason", "Merged.") == "t-1 is done.\n"
    detail = scratch.data("show", "t-1")
    assert (detail["task"]["status"], detail["why"]) == ("done", "Merged.")
    assert [run["ending"] for run in detail["runs"]] == ["succeeded"]
    assert Tmux(scratch.home).panes() == []
    assert "Fix the login" in scratch.git("log", "-1", "--format=%s", "fix-auth")


def test_an_agent_that_was_never_prompted_is_closed_and_one_that_works_is_not(scratch):
    scratch("create", "empty")
    assert scratch("close", "t-1") == "t-1 is done.\n"
    scratch("create", "busy", "--prompt", "sleep 60")
    until(lambda: agents(scratch)["busy"]["doing"] == "working", "its turn")
    said = scratch.fails("close", "busy", status=1)
    assert "t-2 is busy with its turn." in said
    assert "fleet kill busy" in said
    assert scratch.status("t-2") == "running"


def test_a_supervisor_ends_the_agent_that_a_person_closes(scratch):
    with scratch.supervisor():
        scratch("create", "fix-auth", "--prompt", "say Hi")
        rests(scratch, "fix-auth")
        assert scratch("close", "fix-auth") == "t-1 is done.\n"


def test_create_into_a_pipe_says_what_it_waits_for(scratch):
    go = scratch.root / "go"
    setup = f"until [ -e {go} ]; do sleep 0.05; done"
    scratch("config", "set", f'workspace.setup=["{setup}"]')
    process = scratch.start("create", "slow", "--prompt", "say Hi")
    try:
        line = _text(process.stderr.readline())
        while "setting up" not in line:
            assert "Starting slow" in line
            line = _text(process.stderr.readline())
        assert line == f"Starting slow: setting up: {setup} …\n"
    finally:
        go.touch()
        out, _ = process.communicate(timeout=LIMIT)
    assert "Created slow (t-1)" in _text(out)


def _text(said: str | bytes) -> str:
    return said if isinstance(said, str) else said.decode()
