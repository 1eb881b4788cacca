"""Any program as an agent: what it is told, what it says, how it ends."""

import json
from pathlib import Path

import pytest

from tests.wait import LIMIT

TRICKY = 'Fix it\'s "login" $(touch never) `x` {model} \\n 🚢\n\n  second line\t\n'


def declare(supervised):
    """In the person's own settings: a project's commands need their trust."""
    agents = {
        "hears": ["sh", "-c", "cat > heard; pwd; echo $FLEET_TASK_ID $FLEET_RUN_ID"],
        "reads": ["sh", "-c", 'printf %s "$1" > read', "sh", "{prompt}"],
        "fails": ["sh", "-c", "echo half; echo why not >&2; exit 7"],
    }
    lines = [agent(name, words) for name, words in agents.items()]
    (supervised.home / "config.yaml").write_text("agents:\n" + "".join(lines))


def agent(name, words):
    about = f"coder: command, model: none, description: {name}"
    return f"  {name}: {{{about}, command: {json.dumps(words)}}}\n"


def test_a_command_is_told_its_prompt_byte_for_byte(supervised):
    declare(supervised)
    hears, reads = supervised.add(TRICKY, agent="hears"), supervised.add(TRICKY, agent="reads")
    supervised.start("--once")
    assert supervised.supervisor.wait(LIMIT) == 0
    assert [supervised.state(t) for t in (hears, reads)] == ["done", "done"], supervised.said()
    one, two = (supervised.home / supervised.run(t).workspace.path for t in (hears, reads))
    assert (one / "heard").read_bytes() == TRICKY.encode()
    assert (two / "read").read_bytes() == TRICKY.encode()
    assert not (one / "never").exists()
    assert supervised.transcript(hears) == f"{one}\n{hears} {hears}.1\n"


def test_a_command_that_fails_is_shown_with_its_words(supervised):
    declare(supervised)
    task = supervised.add("x", agent="fails", attempts=1)
    supervised.start("--once")
    supervised.supervisor.wait(LIMIT)
    assert supervised.state(task) == "failed"
    assert supervised.task(task).tally.why == "Exit status 7. why not"
    shown = supervised.type("show", task).stdout
    assert "why not" in shown


def test_a_command_whose_program_is_not_there_waits_and_is_shown_with_its_name(supervised):
    (supervised.home / "config.yaml").write_text("agents:\n" + agent("gone", ["no-such-agent"]))
    task = supervised.add("x", agent="gone")
    supervised.start("--once")
    assert supervised.supervisor.wait(LIMIT) == 0
    assert (supervised.state(task), supervised.store.runs(task)) == ("open", [])
    shown = " ".join(supervised.type("show", task).stdout.split())
    assert "no-such-agent is not on the supervisor's PATH." in shown
    assert "fleet run restart" in shown


def test_a_command_that_is_not_in_the_worktree_is_not_tried_twice(supervised):
    (supervised.home / "config.yaml").write_text("agents:\n" + agent("gone", ["./no-such"]))
    task = supervised.add("x", agent="gone")
    supervised.start("--once")
    assert supervised.supervisor.wait(LIMIT) == 0
    assert (supervised.state(task), len(supervised.store.runs(task))) == ("failed", 1)
    shown = " ".join(supervised.type("show", task).stdout.split())
    assert "fleet: ./no-such: No such file or directory." in shown
    assert f"→ fleet retry {task}" in shown


def test_a_command_that_prints_a_megabyte_is_not_ended_for_a_full_context(supervised):
    lines = "yes 'all work and no play makes jack' | head -c 1000000; echo; echo over"
    (supervised.home / "config.yaml").write_text("agents:\n" + agent("loud", ["sh", "-c", lines]))
    task = supervised.add("x", agent="loud", attempts=1)
    supervised.start("--once")
    assert supervised.supervisor.wait(LIMIT) == 0
    assert supervised.endings(task) == ["succeeded"], supervised.story(task)
    assert supervised.transcript(task).endswith("over\n")


def peak_memory(pid: int) -> int:
    """In bytes: the most that the process ever used."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_a_program_that_prints_150_megabytes_without_a_newline_fills_no_memory(supervised):
    words = "head -c 150000000 /dev/zero | tr '\\0' x; echo; echo over"
    (supervised.home / "config.yaml").write_text("agents:\n" + agent("loud", ["sh", "-c", words]))
    task = supervised.add("x", agent="loud", attempts=1)
    supervised.start()
    supervised.wait(task)
    assert peak_memory(supervised.supervisor.pid) < 300_000_000
