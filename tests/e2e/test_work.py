"""Queueing, listing, showing and changing tasks, as a person types it."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.scratch import FLEET, Scratch
from tests.wait import LIMIT, until

OFF = "No supervisor is running, so nothing starts. Start one: fleet run\n"


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)


def test_a_task_is_queued_and_the_answer_says_what_became_of_it(scratch):
    done = scratch.type("add", "Fix the login")
    assert done.stdout == f"Added t-1: Fix the login  [scripted, ready, {scratch.repo}]\n"
    assert done.stderr == OFF


def test_every_option_of_add_is_kept(scratch):
    first = scratch.add("First")
    below = scratch.repo / "app"
    below.mkdir()
    words = ["--after", first, "--label", "ui", "--label", "bug", "--priority", "0", "--cwd", "app"]
    words += ["--base", "main", "--branch", "fix/login", "--review", "--attempts", "3"]
    words += ["--time-limit", "90", "--coder", "scripted", "--model", "small", "--team", "red"]
    words += ["--gate", "make test", "--budget", "$2.50", "--budget", "200k tokens"]
    words += ["--budget", "1.5h", "--needs", "gpu", "--needs", "linux"]
    task = scratch.add("Fix the login", *words)
    found = scratch.data("show", task)
    assert found["after"] == [first]
    assert found["spec"] == {
        "agent": "",
        "coder": "scripted",
        "model": "small",
        "priority": 0,
        "labels": ["ui", "bug"],
        "cwd": str(below),
        "in_place": False,
        "base": "main",
        "branch": "fix/login",
        "review": True,
        "limits": {
            "attempts": 3,
            "time_limit": 90,
            "budget": {"cost": 2_500_000, "tokens": 200_000, "seconds": 5400},
            "agents": 0,
            "permissions": "",
            "needs": ["gpu", "linux"],
        },
        "gate": "make test",
        "assignee": "",
        "mode": "",
        "quick": False,
    }
    assert (found["task"]["team"], found["task"]["project"]) == ("red", str(scratch.repo))
    shown = scratch("show", task)
    for words in ("labels       ui, bug", "branch       fix/login", "time limit   1m30s", "red"):
        assert re.sub(r" +", " ", words) in re.sub(r" +", " ", shown)


def test_of_a_text_of_several_lines_the_first_is_the_title_and_all_is_the_prompt(scratch):
    text = "Fix the login\n\nIt fails for names with a space.\n"
    row = scratch.data("add", text)
    assert row["title"] == "Fix the login"
    assert scratch.data("show", row["id"])["prompt"] == text
    long = "Read this log\n" + "x" * 10_000
    assert scratch.data("add", long)["title"] == "Read this log"
    given = scratch.data("add", "Fix\nit", "--prompt", "Do it.")
    assert (given["title"], scratch.data("show", given["id"])["prompt"]) == ("Fix it", "Do it.")


def test_a_prompt_comes_from_an_option_a_file_or_standard_input(scratch, tmp_path):
    file = tmp_path / "prompt.md"
    file.write_text("Größe\nändern\n", encoding="utf-8")
    tasks = [
        scratch.data("add", "a", "--prompt", "Do it.")["id"],
        scratch.data("add", "b", "-d", "Do it.")["id"],
        scratch.data("add", "c", "--prompt-file", str(file))["id"],
        scratch.data("add", "d", "--prompt-file", "-", stdin="Größe\n".encode())["id"],
        scratch.data("add", "e")["id"],
    ]
    prompts = [scratch.data("show", task)["prompt"] for task in tasks]
    assert prompts == ["Do it.", "Do it.", "Größe\nändern\n", "Größe\n", ""]


def test_an_agent_of_fleet_yaml_does_the_task(scratch):
    (scratch.repo / "fleet.yaml").write_text(
        "agents:\n"
        "  tidier: {coder: command, command: [sh, -c, 'echo tidied >it; echo I tidied.']}\n"
    )
    scratch("trust")
    task = scratch.data("add", "Tidy up", "--agent", "tidier")["id"]
    assert "agent tidier" in re.sub(r" +", " ", scratch("show", task))
    scratch.work()
    assert scratch.status(task) == "done"
    assert scratch("logs", task) == "I tidied.\n"


def test_who_does_a_task_is_decided_when_it_is_added_and_is_the_same_for_everyone(scratch):
    task = scratch.add(script="write prices.py PRICES = {}\ncommit Prices")
    elsewhere = {"FLEET_CODER": "codex"}  # another terminal, without the variable of the first
    (row,) = scratch.data("tasks", env=elsewhere)
    assert (row["agent"], row["coder"], row["given"]) == ("scripted", "scripted", [])
    assert "coder     scripted (the default when it was added)" in scratch(
        "show", task, env=elsewhere
    )
    assert scratch.type("run", "--once", env=elsewhere).returncode == 0
    assert scratch.data("show", task)["runs"][0]["coder"] == "scripted"
    assert scratch.status(task) == "done"


def test_the_agent_default_is_the_supervisors_when_the_task_starts(scratch):
    scratch.env["FLEET_CODER"] = "codex"
    task = scratch.add("Later", "--agent", "default")
    (row,) = scratch.data("tasks")
    assert (row["agent"], row["coder"]) == ("default", "default")
    assert "the supervisor's default, when it starts" in scratch("show", task)
    assert scratch.type("run", "--once", env={"FLEET_CODER": "scripted"}).returncode == 0
    (row,) = scratch.data("tasks", "--all")
    assert (row["coder"], row["status"]) == ("scripted", "done")


def test_run_with_a_coder_outranks_a_default_and_nothing_that_a_task_names(scratch):
    scratch.env["FLEET_CODER"] = "codex"
    plain, named = scratch.add("Plain"), scratch.add("Named", "--coder", "scripted")
    scratch.work("--coder", "scripted")
    coders = {r["id"]: r["coder"] for r in scratch.data("tasks", "--all")}
    assert coders == {plain: "scripted", named: "scripted"}


def test_outside_git_a_task_is_refused_unless_it_may_work_in_place(scratch, tmp_path):
    plain = tmp_path / "plain"
    plain.mkdir()
    note = ("add", "Note it", "--prompt", "write note.txt Done.")
    said = scratch.fails(*note, cwd=plain, status=2)
    assert said.startswith(f"fleet: {plain} is not in a git repository, so the agent would work")
    assert "fleet add --in-place" in said
    assert "not in a git repository" in scratch.fails("bd", "create", "x", cwd=plain, status=1)
    scratch("bd", "create", "By hand", "--assignee", "ada", cwd=plain)
    assert "(in place)]" in scratch(*note, "--in-place", cwd=plain)
    task = "t-2"
    assert f"cwd {plain} (in place)" in re.sub(r" +", " ", scratch("show", task))
    scratch.work()
    assert (plain / "note.txt").read_text() == "Done.\n"


def test_in_place_works_in_the_checkout_and_a_worktree_does_not(scratch):
    scratch.add("Here", "--in-place", script="write here.txt x")
    task = scratch.add("There", "--branch", "there", script="write there.txt x\ncommit There")
    scratch.work()
    assert (scratch.repo / "here.txt").exists()
    assert not (scratch.repo / "there.txt").exists()
    assert scratch.git("ls-tree", "--name-only", "there") == "there.txt\n"
    assert scratch.data("show", task)["runs"][0]["branch"] == "there"


def test_the_project_is_found_from_a_subdirectory_and_from_inside_a_worktree(scratch):
    (scratch.repo / "fleet.yaml").write_text("agents:\n  tidier: {coder: scripted}\n")
    (scratch.repo / "deep" / "down").mkdir(parents=True)
    (scratch.repo / "deep" / "down" / "file").touch()
    scratch.git("add", ".")
    scratch.git("commit", "-qm", "All")
    below = scratch.data("add", "a", "-a", "tidier", cwd=scratch.repo / "deep" / "down")
    scratch.work()
    place = Path(scratch.data("show", below["id"])["runs"][0]["path"])
    assert place.parts[-2:] == ("deep", "down")
    inside = scratch.data("add", "b", "-a", "tidier", cwd=place)
    assert below["project"] == inside["project"] == str(scratch.repo)
    scratch.data("add", "c", "--in-place", cwd=scratch.root)
    assert [t["id"] for t in scratch.data("tasks", "--here", "--all", cwd=place)] == ["t-2", "t-1"]
    assert [t["id"] for t in scratch.data("tasks", "--here", "--all", cwd=scratch.root)] == ["t-3"]


def test_a_list_is_narrowed_by_state_team_and_number(scratch):
    done = scratch.add("Done")
    scratch("close", done)
    paused = scratch.add("Paused")
    scratch("pause", paused)
    red = scratch.add("Red", "--team", "red")

    def ids(*words):
        return [t["id"] for t in scratch.data("tasks", *words)]

    assert ids() == [red, paused]
    assert ids("--all") == [red, paused, done]
    assert ids("--status", "paused") == [paused]
    assert ids("--status", "done", "--status", "open") == [red, paused, done]
    assert ids("red") == [red]
    assert ids("--all", "-n", "2") == [red, paused]
    assert scratch("tasks", "blue") == "No tasks.\n"


def test_a_pipe_gets_every_column_whole(scratch):
    title = "A title that is far longer than any terminal is wide, " * 3
    scratch.add(title)
    head, row = scratch("tasks", env={"COLUMNS": "40"}).splitlines()
    columns = (
        "TASK STATUS STARTED ELAPSED IDLE CONTEXT LINES CODER MODEL COST BRANCH CHANGES TITLE CWD"
    )
    assert head.split() == columns.split()
    assert title.strip() in row
    assert row.endswith(str(scratch.repo))


def test_ready_lists_what_could_start(scratch):
    first = scratch.add("First")
    scratch.add("Second", "--after", first)
    lines = scratch("ready").splitlines()
    assert [line.split()[0] for line in lines] == ["TASK", first]
    scratch("pause", first)
    assert scratch("ready") == "No ready tasks.\n"


def test_show_says_why_a_task_is_not_running(scratch):
    first = scratch.add("First")
    second = scratch.add("Second", "--after", first, "--coder", "scripted")
    scratch.ask(second, "Which way?", "--option", "left", "--option", "right")
    scratch("pause", second)
    scratch("comment", second, "Take care.")
    shown = scratch("show", second)
    assert f"It waits for {first}, which is open." in shown
    assert f"It asks (m-1): Which way?  → fleet answer {second} TEXT" in shown
    assert f"It is paused.  → fleet resume {second}" in shown
    assert "Which way? 1) left 2) right" in shown
    assert re.search(r"note +- +ada +(now|\ds ago) +Take care\.", shown)
    plain = re.sub(r" +", " ", shown)
    assert "coder scripted\n" in plain
    assert "model its own (the default when it was added)\n" in plain
    assert "agent scripted (the default when it was added)\n" in plain


def test_show_tells_of_every_run(scratch):
    task = scratch.add("Flaky", script="fail 1 the disk was full\nsay I am back.\nusage 100 20")
    scratch.work()
    shown = scratch("show", task)
    assert re.search(rf"{task}.1 +failed +scripted +\w+ +fleet/{task} +Exit status 1", shown)
    assert re.search(rf"{task}.2 +succeeded +scripted +\w+ +fleet/{task} +Done\.", shown)
    assert "the disk was full" in shown
    assert "Why it is not running" not in shown
    assert scratch.data("show", task)["runs"][1]["usage"]["input"] == 100


def test_show_says_that_there_is_no_room(scratch):
    first = scratch.add("First", script="sleep 60")
    second = scratch.add("Second")
    (scratch.home / "config.yaml").write_text("max_concurrent: 1\n")
    with scratch.supervisor():
        scratch.wait_for(first, "running")
        assert re.search(r"No free slot: host \S+ is full \(1/1\)\.", scratch("show", second))


def test_tasks_are_paused_resumed_closed_and_retried(scratch):
    task = scratch.add()
    assert scratch("pause", task) == f"{task} does not start until you resume it.\n"
    assert scratch.status(task) == "paused"
    assert scratch("resume", task) == f"{task} may start.\n"
    assert scratch("close", task, "--reason", "Did it myself.") == f"{task} is done.\n"
    assert "Did it myself." in scratch("show", task)
    assert scratch("retry", task) == f"{task} is open again.\n"
    assert scratch("cancel", task) == f"{task} is cancelled.\n"
    assert scratch("retry", "1") == f"{task} is open again.\n"


def test_dependencies_are_added_and_taken_away_and_a_circle_is_refused(scratch):
    first, second = scratch.add(), scratch.add()
    assert scratch("dep", "add", second, first) == f"{second} waits for {first}.\n"
    said = scratch.fails("dep", "add", first, second, status=2)
    assert f"they would wait for each other ({first} → {second} → {first})" in said
    assert scratch("dep", "rm", second, first) == f"{second} does not wait for {first}.\n"


def test_work_that_is_reviewed_is_done_when_a_person_says_so(scratch):
    task = scratch.add("Reviewed", "--review")
    after = scratch.add("After it", "--after", task)
    scratch.work()
    assert scratch.status(task) == "review"
    assert f"fleet close {task}" in scratch("show", after)
    scratch("close", task)
    assert scratch.status(after) == "ready"


class Terminal:
    """A command on a terminal of its own, and all that it has drawn there."""

    def __init__(self, scratch: Scratch, *words: str, columns: int = 100) -> None:
        pid, self.screen = pty.fork()
        if pid == 0:
            os.chdir(scratch.repo)
            size = {"COLUMNS": str(columns), "LINES": "30", "TERM": "xterm"}
            os.execve(FLEET, [FLEET, *words], scratch.env | size)
        self.pid, self.drawn = pid, ""

    def read(self, seconds: float) -> bool:
        """False once nothing more can come."""
        if not select.select([self.screen], [], [], seconds)[0]:
            return True
        with suppress(OSError):
            if data := os.read(self.screen, 65536):
                self.drawn += data.decode()
                return True
        return False

    def see(self, words: str) -> None:
        end = time.monotonic() + LIMIT
        while words not in self.drawn:
            assert self.read(0.2), self.drawn
            assert time.monotonic() < end, self.drawn

    def leave(self) -> int:
        """Press Ctrl-C, and see how it ends."""
        os.write(self.screen, b"\x03")
        return self.end()

    def end(self) -> int:
        while self.read(LIMIT):
            pass
        os.close(self.screen)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_failed_and_not_landed_work_stays_in_view_until_it_is_settled(scratch):
    failed = scratch.add("Breaks", "--attempts", "1", script="exit 3")
    done = scratch.add("Works", script="write a.txt a\ncommit A")
    scratch.work()
    first = scratch.type("tasks")
    assert re.search(rf"{failed} +failed", first.stdout)
    assert not re.search(rf"^{done}\b", first.stdout, re.MULTILINE)
    assert "1 failed: `fleet retry TASK` tries again" in first.stderr
    assert "1 done and not landed: `fleet land TASK` lands one." in first.stderr
    assert "tasks       1 failed" in scratch.type("run", "status").stdout
    scratch("cancel", failed)
    scratch("merge", done)
    last = scratch.type("tasks")
    assert (last.stdout, last.stderr) == (
        "No open tasks. `fleet tasks --all` lists the ended ones.\n",
        "",
    )


def test_run_once_ends_when_only_a_node_that_is_down_is_waited_for_and_says_which(scratch):
    (scratch.repo / "fleet.yaml").write_text(
        "nodes: {gpu: {endpoint: 'http://127.0.0.1:1'}}\n"
        "models: {big: {node: gpu, upstream: llama}}\n"
        "agents: {coder: {coder: scripted, model: big}}\n"
    )
    task = scratch.add("On the node", "--agent", "coder")
    other = scratch.add("Without it")
    said = scratch.work()
    assert (scratch.status(task), scratch.status(other)) == ("ready", "done")
    why = "No node that serves its model answers: gpu"
    assert re.search(rf"^{task} +left +{why}", said, re.MULTILINE)
    assert "connection refused" in said


def test_a_set_up_is_a_state_with_its_command_and_its_output_while_it_goes_on(scratch):
    command = "echo Fetching; until test -e ../../../go; do sleep 0.1; done"
    scratch("config", "set", f'workspace.setup=["{command}"]')
    task = scratch.add("Slow", script="say Done.")
    with scratch.supervisor():
        until(lambda: scratch.data("show", task)["task"]["run"], "its run")
        until(lambda: scratch.data("show", task)["task"]["run"]["setup"], "its set-up")
        assert re.search(rf"status +setting up: {re.escape(command)} \(\d", scratch("show", task))
        assert re.search(rf"{task} +setting up \(\d", scratch("tasks"))
        assert "setting up" in scratch("list")
        until(lambda: "Fetching" in scratch("logs", task), "its output")
        (scratch.home / "go").touch()
        scratch.wait_for(task, "done")


def test_a_task_is_cancelled_in_its_set_up_and_while_it_waits_for_the_same_one(scratch):
    (scratch.repo / "fleet.yaml").write_text(
        "workspace:\n  setup: ['sleep 3600']\n  setup_cache: [lock.txt]\n"
    )
    (scratch.repo / "lock.txt").write_text("1\n")
    scratch.git("add", ".")
    scratch.git("commit", "-q", "-m", "Lock")
    scratch("trust")
    tasks = [scratch.add("One"), scratch.add("Two")]
    with scratch.supervisor():
        until(lambda: [bool(row["setup"]) for row in scratch.data("list")] == [True, True], "both")
        waiting = next(r["task"] for r in scratch.data("list") if r["setup"].startswith("waiting"))
        for task in sorted(tasks, key=waiting.__ne__):
            assert scratch("cancel", task) == f"{task} is cancelled.\n"
    assert scratch.git("worktree", "list").count("\n") <= 1
    assert scratch.git("branch", "--list", "fleet/*") == ""


def test_a_set_up_that_failed_is_not_tried_again_unchanged(scratch):
    scratch("config", "set", 'workspace.setup=["echo No such package; exit 4"]')
    task = scratch.add("Broken")
    scratch.work()
    found = scratch.data("show", task)
    assert (found["task"]["status"], len(found["runs"])) == ("failed", 1)
    assert "No such package" in found["runs"][0]["detail"]
    assert "No such package" in scratch("logs", task)
    scratch("config", "set", "workspace.setup=[]")
    scratch("retry", task)
    scratch.work()
    assert scratch.status(task) == "done"


def test_watch_shows_what_changes_and_gives_the_cursor_back(scratch):
    scratch.add("First of all")
    screen = Terminal(scratch, "tasks", "--watch")
    screen.see("First of all")
    second = scratch.add("Second one")
    screen.see("Second one")
    scratch("pause", second)
    screen.see("paused")
    assert screen.leave() == 130
    hidden, shown = screen.drawn.rfind("\x1b[?25l"), screen.drawn.rfind("\x1b[?25h")
    assert 0 <= hidden < shown
    assert "Traceback" not in screen.drawn


def test_a_list_fits_the_terminal_and_says_what_matters_most(scratch):
    task = scratch.add("A title that is rather long, so that it has to be cut somewhere at the end")
    run = scratch.add(
        "Short", "--model", "a-model-with-a-long-name", script="usage 103456 9\nsleep 60"
    )
    heads = {}
    with scratch.supervisor("--max", "1"):
        scratch.wait_for(task, "done")
        scratch.wait_for(run, "running")
        for columns in (50, 80, 110, 160):
            screen = Terminal(scratch, "tasks", "--all", columns=columns)
            screen.end()
            head, *rows = re.sub(r"\x1b\[\d*m", "", screen.drawn).splitlines()
            assert max(map(len, (head, *rows))) <= columns
            assert [row.split()[:2] for row in rows] == [[run, "running"], [task, "done"]]
            assert "A title that is rather " in rows[1]
            heads[columns] = head.split()
    assert heads[50] == ["TASK", "STATUS", "ELAPSED", "TITLE"]
    assert heads[160][:7] == ["TASK", "STATUS", "STARTED", "ELAPSED", "IDLE", "CONTEXT", "LINES"]
    assert heads[160][-2:] == ["CHANGES", "TITLE"]  # they share the directory
    assert {"ELAPSED", "BRANCH", "CHANGES"} <= set(heads[80])


def test_watch_ends_when_its_terminal_does(scratch):
    scratch.add()
    screen = Terminal(scratch, "tasks", "--watch")
    screen.see("Fix the login")
    os.close(screen.screen)
    os.kill(screen.pid, signal.SIGHUP)
    assert os.waitpid(screen.pid, 0)[0] == screen.pid


def test_watch_into_a_pipe_writes_only_what_changes(scratch):
    task = scratch.add()
    going = scratch.start("tasks", "--watch")
    try:
        assert going.stdout.readline().startswith("TASK")
        assert going.stdout.readline().startswith(task)
        scratch("pause", task)
        assert "paused" in going.stdout.readline()
    finally:
        going.send_signal(signal.SIGINT)
        rest, said = going.communicate(timeout=LIMIT)
    assert (going.returncode, rest, said) == (130, "", "")


def test_a_task_that_was_cancelled_while_it_ran_leaves_no_process(scratch):
    task = scratch.add(script="say Here I am.\nspawn 300\nsleep 300")
    with scratch.supervisor():
        scratch.wait_for(task, "running")
        assert scratch("cancel", task) == f"{task} is cancelled.\n"
    assert not alive(scratch)


def test_a_run_is_ended_also_when_no_supervisor_is_there_to_do_it(scratch):
    task = scratch.add(script="sleep 300")
    supervisor = scratch.start("run")
    scratch.wait_for(task, "running")
    supervisor.send_signal(signal.SIGINT)
    _, said = supervisor.communicate(timeout=LIMIT)
    assert "1 still running; the next `fleet run` takes over." in said
    assert alive(scratch)
    assert scratch("cancel", task) == f"{task} is cancelled.\n"
    assert not alive(scratch)


def alive(scratch: Scratch) -> str:
    """The processes whose environment names this scratch's home."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with suppress(OSError):
                if f"FLEET_HOME={scratch.home}\0".encode() in (place / "environ").read_bytes():
                    found.append((place / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return "\n".join(found)


def test_a_second_supervisor_is_refused_and_names_the_first(scratch):
    with scratch.supervisor() as first:
        until((scratch.home / "supervisor.lock").exists, "the first")
        said = scratch.fails("run", status=1)
    assert said.startswith(f"fleet: A supervisor is already running here (pid {first.pid}).\n")


def test_dependent_work_starts_from_what_it_waited_for(scratch):
    first = scratch.add("First", script="write a.txt a\ncommit A")
    second = scratch.add("Second", "--after", first, script="write b.txt b\ncommit B")
    scratch.work("--max", "1", "--coder", "scripted")
    branch = scratch.data("show", second)["runs"][0]["branch"]
    assert scratch.git("ls-tree", "--name-only", branch).split() == ["a.txt", "b.txt"]


def test_the_supervisor_keeps_to_its_number(scratch):
    tasks = [scratch.add(script="sleep 0.1") for _ in range(2)]
    text = scratch.work("--max", "1")
    events = re.findall(r"^\S+ (t-\d) (starts|is done):", text, re.MULTILINE)
    assert events == [(t, e) for t in tasks for e in ("starts", "is done")]


def test_a_home_is_used_by_two_people_typing_at_once(scratch):
    going = [scratch.start("add", f"Task {n}") for n in range(8)]
    said = [process.communicate(timeout=LIMIT) for process in going]
    assert {p.returncode for p in going} == {0}, said
    assert len(scratch.data("tasks")) == 8


def test_tasks_and_list_are_about_this_project_unless_every_one_is_asked_for(scratch, tmp_path):
    here = scratch.add("Here")
    other = tmp_path / "other"
    scratch.git("clone", "-q", str(scratch.repo), str(other))
    there = scratch.data("add", "There", cwd=other)["id"]
    listed = [[row["id"] for row in scratch.data("tasks", *words)] for words in ((), ("--here",))]
    assert listed == [[here], [here]]
    assert [row["id"] for row in scratch.data("tasks", "--everywhere")] == [there, here]
    scratch("cancel", here)
    assert "Other projects have some: fleet tasks --everywhere" in scratch("tasks")


def test_show_of_a_failed_task_names_what_to_type(scratch):
    task = scratch.add("Fix it", "--attempts", "1", script="exit 3")
    scratch.work()
    assert f"It failed. Exit status 3.  → fleet retry {task}" in scratch("show", task)


def test_show_cuts_a_prompt_that_is_too_long_to_read(scratch):
    task = scratch.add("Big", script="say " + "x" * 500_000)
    shown = scratch("show", task)
    assert len(shown) < 6000
    assert f"fleet show {task} --json" in shown
    scratch.work()
    assert scratch.status(task) == "done"


def test_text_that_begins_with_a_dash_is_told_how_to_be_typed(scratch):
    assert "goes after --: fleet add -- TEXT" in scratch.fails("add", "-rf x", status=2)
    assert "Added t-1: -rf x" in scratch("add", "--", "-rf x")


def test_the_last_lines_of_a_long_transcript_are_shown_without_reading_it_all(scratch):
    task = scratch.add("Talk", script="say Begun.")
    scratch.work()
    transcript = scratch.home / "runs" / f"{task}.1" / "transcript"
    first, *_ = transcript.read_text().splitlines()
    with transcript.open("w") as file:
        file.write(f"{first}\n")
        file.writelines(f"line {n} {'x' * 990}\n" for n in range(9000))
    shown = scratch("logs", task, "--raw", "-n", "3")
    assert [line.split()[1] for line in shown.splitlines()] == ["8997", "8998", "8999"]
    everything = scratch("logs", task, "--raw", "-n", "10000").splitlines()
    assert (len(everything), everything[0]) == (9001, first)


def test_a_line_without_end_is_cut_on_the_screen_and_not_read_whole(scratch):
    task = scratch.add("Flood", script="say Begun.")
    scratch.work()
    transcript = scratch.home / "runs" / f"{task}.1" / "transcript"
    transcript.write_text("x" * 20_000_000)
    assert len(scratch("logs", task, "--raw", "-n", "3")) < 100_000  # its end
    said = json.dumps({"kind": "text", "text": "x" * 5_000_000})
    transcript.write_text(f"{said}\n")
    assert "more characters: fleet logs --raw)" in scratch("logs", task)[-100:]
    assert len(scratch("logs", task)) < 5000


def test_a_script_that_cannot_be_followed_fails_with_its_line_and_no_traceback(scratch):
    task = scratch.add("Typo", "--attempts", "1", script="say hi\nsleep long")
    scratch.work()
    shown = scratch("show", task)
    assert "It failed. Exit status 1. Line 2 of its script failed: sleep long (" in shown
    assert "Traceback" not in shown + scratch("logs", task)


def test_without_any_task_the_list_says_how_to_queue_one(scratch):
    assert scratch("tasks") == 'No tasks yet: fleet add "TITLE" queues one.\n'
    assert "--tree, --export and --watch" in scratch.fails("tasks", "--tree", "--export", status=2)


def test_tasks_list_and_show_agree_on_what_a_running_task_has_changed(scratch):
    with scratch.supervisor():
        task = scratch.add("Write", script="write a.txt x\ncommit A\nsleep 600")
        scratch.wait_for(task, "running")
        until(lambda: scratch.data("list")[0]["added"] == 1, "the line")
        run = scratch.data("tasks")[0]["run"]
        assert (run["added"], run["removed"]) == (1, 0)
        assert "+1 -0" in scratch("show", task)


def test_a_set_up_names_its_command_its_time_and_the_worktree_that_it_waits_for(scratch):
    go = scratch.root / "go"
    command = f"until test -e {go}; do sleep 0.1; done"
    (scratch.repo / "fleet.yaml").write_text(
        f"workspace:\n  setup: ['{command}']\n  setup_cache: [lock.txt]\n"
    )
    (scratch.repo / "lock.txt").write_text("1\n")
    scratch.git("add", ".")
    scratch.git("commit", "-q", "-m", "Lock")
    scratch("trust")
    scratch.add("One")
    scratch.add("Two")
    with scratch.supervisor():

        def at_setup() -> dict[str, str]:
            return {row["setup"]: row["task"] for row in scratch.data("list")}

        waits = "waiting for the same set-up in another worktree"
        until(lambda: at_setup().keys() == {command, waits}, lambda: f"both: {at_setup()}")
        by_setup = at_setup()
        shown = scratch("list")
        assert re.search(r"setting up: until test -e .*… \(\d+s\)", shown), shown
        said = scratch("logs", by_setup[waits])
        assert re.fullmatch(rf"setting up: {waits} \(\d+s\)\n", said), said
        go.touch()
        for task in by_setup.values():
            scratch.wait_for(task, "done")


def test_a_result_without_an_end_is_cut_in_show(scratch):
    """Also into a pipe, where nothing else is cut; `fleet logs` has the whole."""
    task = scratch.add(script="ask " + "x" * 1500)
    scratch.work()
    line = next(s for s in scratch("show", task).splitlines() if s.startswith(f"{task}.1"))
    assert line.endswith("x…")
    assert len(line) < 600
    assert "x" * 1500 in scratch("logs", task)
