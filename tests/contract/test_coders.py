"""What every Coder promises, whichever program it drives."""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.app import make_coder
from fleet.domain.errors import Refused
from fleet.domain.fleet import CODERS
from fleet.domain.transcript import Conversation, Said, SaidKind, hear
from fleet.ports import Brief
from fleet.testing.fakes import FakeCoder
from tests.wait import LIMIT

NAMES = [*CODERS, "fake"]
PROMPT = 'Fix it\'s "login"\n$(touch /tmp/never) `x` 🚢\n{model} {prompt}\n'
BRIEF = Brief(
    run_id="t-1.1",
    prompt=PROMPT,
    cwd="/somewhere",
    task_dir="/tasks/t-1",
    model="a-model",
    env={"PATH": "/usr/bin", "FLEET_RUN_ID": "t-1.1"},
    options={"command": ("my-agent", "--model", "{model}"), "extra_args": ()},
)


@pytest.fixture(params=NAMES)
def coder(request):
    return FakeCoder() if request.param == "fake" else make_coder(request.param)


def test_a_coder_knows_its_own_name(coder):
    assert coder.name in NAMES
    assert isinstance(coder.resumes, bool)


def test_it_starts_where_it_was_told_with_what_it_was_given_and_no_shell(coder):
    launch = coder.launch(BRIEF)
    assert launch.cwd == BRIEF.cwd
    assert launch.argv
    assert all(isinstance(word, str) for word in launch.argv)
    assert Path(launch.argv[0]).name not in {"sh", "bash"}
    assert launch.env.items() >= BRIEF.env.items()


def test_its_prompt_reaches_it_byte_for_byte(coder):
    launch = coder.launch(BRIEF)
    heard = [*launch.argv, launch.stdin or "", launch.opening]  # or is said once it has greeted
    assert any(PROMPT in words or json.dumps(PROMPT) in words or _in_json(words) for words in heard)


def _in_json(words):
    """As a string somewhere in one of the JSON documents that are its input."""
    for line in words.splitlines():
        try:
            found = [json.loads(line)]
        except ValueError:
            continue
        while found:
            value = found.pop()
            if value == PROMPT:
                return True
            if isinstance(value, dict):
                found += value.values()
            elif isinstance(value, list):
                found += value
    return False


def test_launching_decides_nothing_twice(coder):
    one, two = coder.launch(BRIEF), coder.launch(BRIEF)
    assert (one.argv, one.env, one.keep_stdin) == (two.argv, two.env, two.keep_stdin)


LINES = st.one_of(
    st.text(max_size=60),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["type", "kind", "text", "message", "usage", "id", "content", "x"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=8,
    ).map(json.dumps),
    st.sampled_from(list(SaidKind)).map(lambda kind: json.dumps({"kind": kind})),
)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None)
@given(lines=st.lists(LINES, max_size=6))
def test_whatever_it_prints_is_heard_without_an_error_and_the_same_again_on_replay(name, lines):
    coder = FakeCoder() if name == "fake" else make_coder(name)
    opening = coder.launch(BRIEF).opening
    folds = []
    for _ in range(2):
        listener, heard = coder.listen(opening), Conversation()
        for line in lines:
            for said in listener.hear(line):
                assert isinstance(said, Said)
                assert isinstance(said.text, str)
                heard = hear(heard, said)
        folds.append(heard)
    assert folds[0] == folds[1]


def test_a_coder_that_can_be_spoken_to_says_how(coder):
    listener = coder.listen(coder.launch(BRIEF).opening)
    words = listener.words("Please stop.")
    assert words is None or "Please stop." in words


def test_a_command_hears_its_prompt_where_it_asked_for_it():
    coder = make_coder("command")
    by_stdin = coder.launch(BRIEF)
    assert (by_stdin.argv, by_stdin.stdin) == (("my-agent", "--model", "a-model"), PROMPT)
    options = {"command": ("my-agent", "--say={prompt}", "{prompt}")}
    by_words = coder.launch(BRIEF._replace(options=options))
    assert by_words.argv == ("my-agent", f"--say={PROMPT}", PROMPT)
    assert by_words.stdin is None


@pytest.mark.parametrize("command", [None, (), "my-agent"])
def test_an_agent_without_a_command_is_refused_with_the_way_out(command):
    with pytest.raises(Refused, match="has no command") as refused:
        make_coder("command").launch(BRIEF._replace(options={"command": command}))
    assert "fleet.yaml" in refused.value.fix


def test_a_coder_that_is_not_known_is_refused_with_the_nearest():
    with pytest.raises(Refused) as refused:
        make_coder("scriptd")
    assert refused.value.fix == "Did you mean 'scripted'?"


@pytest.fixture
def scripted(tmp_path):
    """Run the scripted coder on a script; its status and what was heard."""
    coder = make_coder("scripted")

    def run(*script, number=1, resume=False, said=""):
        brief = BRIEF._replace(prompt=said or "\n".join(script), cwd=str(tmp_path))
        brief = brief._replace(session="s" if resume else "")
        launch = coder.launch(brief)
        env = os.environ | {"FLEET_TASK_DIR": str(tmp_path), "FLEET_RUN_ID": f"t-1.{number}"}
        done = subprocess.run(
            launch.argv, cwd=tmp_path, env=env, input=launch.stdin, capture_output=True, text=True,
            timeout=LIMIT, check=False,
        )  # fmt: skip
        heard = Conversation()
        for line in done.stdout.splitlines():
            for one in coder.listen(launch.opening).hear(line):
                heard = hear(heard, one)
        return done.returncode, heard

    return run


def test_the_scripted_coder_does_what_its_prompt_says(scripted, tmp_path):
    status, heard = scripted("say hello", "write a/b.txt x\\ny", "append a/b.txt z", "usage 30 4")
    assert (status, heard.turns, heard.ended_turns, heard.failed) == (0, 1, 1, False)
    assert (tmp_path / "a" / "b.txt").read_text() == "x\ny\nz\n"
    assert (heard.usage.input, heard.usage.output) == (30, 4)
    assert heard.session


def test_the_scripted_coder_goes_on_where_it_was(scripted, tmp_path):
    status, _ = scripted("append log one", "fail 1 no luck", "append log two")
    assert status == 1
    status, heard = scripted(number=2, resume=True, said="Please continue.")
    assert (status, heard.last) == (0, "Done.")
    assert (tmp_path / "log").read_text() == "one\ntwo\n"


def test_the_scripted_coder_meets_a_rate_limit_once(scripted):
    status, heard = scripted("limit 5", "say after")
    assert (status, heard.limited) == (1, True)
    assert heard.resume_at > 0
    status, heard = scripted(resume=True, said="Please continue.")
    assert (status, replace(heard, session="").limited) == (0, False)
