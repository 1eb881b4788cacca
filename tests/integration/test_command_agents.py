"""Any program as an agent: what it is told, what it says, how it ends."""

import json

TRICKY = 'Fix it\'s "login" $(touch never) `x` {model} \\n 🚢\n\n  second line\t\n'


def declare(yard):
    """In the person's own settings: a project's commands need their trust."""
    agents = {
        "hears": ["sh", "-c", "cat > heard; pwd; echo $FLEET_TASK_ID $FLEET_RUN_ID"],
        "reads": ["sh", "-c", 'printf %s "$1" > read', "sh", "{prompt}"],
        "fails": ["sh", "-c", "echo half; echo why not >&2; exit 7"],
    }
    lines = [agent(name, words) for name, words in agents.items()]
    (yard.home / "config.yaml").write_text("agents:\n" + "".join(lines))


def agent(name, words):
    about = f"coder: command, model: none, description: {name}"
    return f"  {name}: {{{about}, command: {json.dumps(words)}}}\n"


def test_a_command_is_told_its_prompt_byte_for_byte(yard):
    declare(yard)
    hears, reads = yard.add(TRICKY, agent="hears"), yard.add(TRICKY, agent="reads")
    yard.start("--once")
    assert yard.supervisor.wait(30) == 0
    assert [yard.state(t) for t in (hears, reads)] == ["done", "done"], yard.said()
    one, two = (yard.home / yard.run(t).workspace.path for t in (hears, reads))
    assert (one / "heard").read_bytes() == TRICKY.encode()
    assert (two / "read").read_bytes() == TRICKY.encode()
    assert not (one / "never").exists()
    assert yard.transcript(hears) == f"{one}\n{hears} {hears}.1\n"


def test_a_command_that_fails_is_shown_with_its_words(yard):
    declare(yard)
    task = yard.add("x", agent="fails", attempts=1)
    yard.start("--once")
    yard.supervisor.wait(30)
    assert yard.state(task) == "failed"
    assert yard.task(task).tally.why == "Exit status 7. why not"
    shown = yard.type("show", task).stdout
    assert "why not" in shown


def test_a_command_whose_program_is_not_there_is_shown_with_its_name(yard):
    (yard.home / "config.yaml").write_text("agents:\n" + agent("gone", ["no-such-agent"]))
    task = yard.add("x", agent="gone", attempts=1)
    yard.start("--once")
    yard.supervisor.wait(30)
    why = yard.task(task).tally.why
    assert why == (
        "Exit status 127. fleet: no-such-agent: No such file or directory. "
        "`fleet coders` says which programs are found."
    )
    assert "`fleet coders` says" in yard.type("show", task).stdout
