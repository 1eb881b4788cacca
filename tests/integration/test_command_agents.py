"""Any program as an agent: what it is told, what it says, how it ends."""

import json

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


def test_a_command_whose_program_is_not_there_is_shown_with_its_name(supervised):
    (supervised.home / "config.yaml").write_text("agents:\n" + agent("gone", ["no-such-agent"]))
    task = supervised.add("x", agent="gone", attempts=1)
    supervised.start("--once")
    supervised.supervisor.wait(LIMIT)
    why = supervised.task(task).tally.why
    assert why == (
        "Exit status 127. fleet: no-such-agent: No such file or directory. "
        "`fleet coders` says which programs are found."
    )
    assert "`fleet coders` says" in supervised.type("show", task).stdout
