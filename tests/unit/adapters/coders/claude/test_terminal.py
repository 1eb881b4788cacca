import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from fleet.adapters.coders.claude.coder import ClaudeCoder
from fleet.adapters.coders.shared.hook_lines import APPEND
from fleet.domain.errors import Refused
from fleet.domain.transcript import SaidKind
from fleet.ports import InTerminal
from tests.unit.adapters.coders.watched import heard, launched

CLAUDE = ClaudeCoder()


def event(name, **more):
    return {"session_id": "s", "prompt_id": "p", "hook_event_name": name, **more}


def used(ident, **given):
    return {"tool_name": "Bash", "tool_input": given, "tool_use_id": ident}


def settings(launch):
    return json.loads(launch.argv[launch.argv.index("--settings") + 1])


def hooks(launch):
    return {name: one[0]["hooks"][0]["command"] for name, one in settings(launch)["hooks"].items()}


def test_a_compaction_is_no_new_session_and_ends_no_turn():
    start = event("SessionStart", source="startup")
    again = event("SessionStart", source="compact")
    said, so_far = heard(CLAUDE, start, event("UserPromptSubmit", prompt="Go."), again)
    assert [one.kind for one in said].count(SaidKind.SESSION) == 1
    assert not so_far.at_rest


def test_what_another_session_says_is_not_ours():
    strange = {**event("UserPromptSubmit", prompt="Go."), "session_id": "another"}
    stop = {**event("Stop"), "session_id": "another"}
    said, _ = heard(CLAUDE, event("SessionStart", source="startup"), strange, stop)
    assert [one.kind for one in said] == [SaidKind.SESSION]


def test_a_permission_is_wanted_until_that_tool_has_ended():
    first, second = used("1", command="make"), used("2", command="npm test")
    asked = {key: value for key, value in first.items() if key != "tool_use_id"}
    before = [
        event("UserPromptSubmit", prompt="Go."),
        event("PreToolUse", **first),
        event("PreToolUse", **second),
        event("PermissionRequest", **asked),
        event("PostToolUse", **second, tool_response={"stdout": "fine"}),
    ]
    _, waiting = heard(CLAUDE, *before)
    assert waiting.wants == "make"
    _, then = heard(CLAUDE, *before, event("PostToolUse", **first, tool_response={}))
    assert not then.wants


def test_an_agent_of_its_own_that_stops_ends_no_turn():
    _, so_far = heard(CLAUDE, event("UserPromptSubmit", prompt="Go."), event("SubagentStop"))
    assert not so_far.at_rest


def test_it_is_spoken_to_once_it_is_ready_and_not_while_it_asks():
    listener = CLAUDE.watch("s")
    assert listener.words("Hello") is None
    listener.hear(json.dumps(event("SessionStart", source="startup")))
    assert listener.words("Hello") == "Hello"
    listener.hear(json.dumps(event("PermissionRequest", tool_name="Bash", tool_input={})))
    assert listener.words("Hello") is None


def test_words_are_neither_a_command_of_its_shell_nor_a_line_to_be_continued():
    listener = CLAUDE.watch("s")
    listener.hear(json.dumps(event("SessionStart", source="startup")))
    assert listener.words("!ls") == " !ls"
    assert listener.words("C:\\") == "C:\\ "


def test_the_first_prompt_is_the_last_argument_whatever_is_in_it():
    for prompt in ("-x", "a\tb\n", "\\", "!ls", "x" * 120_000):
        launch = launched(CLAUDE, prompt)
        assert launch.argv[-2:] == ("--", prompt)
        assert launch.stdin is None
        assert launch.terminal


def test_a_prompt_that_is_no_argument_is_left_to_be_pasted():
    launch = launched(CLAUDE, "x" * 120_001)
    assert launch.stdin == "x" * 120_001
    assert "--" not in launch.argv


def test_without_a_prompt_it_waits_for_one():
    assert "--" not in launched(CLAUDE, "").argv
    assert launched(CLAUDE, "").stdin is None


def test_a_session_has_its_id_from_the_start_and_is_resumed_by_it():
    new = launched(CLAUDE)
    assert new.argv[new.argv.index("--session-id") + 1] == new.opening
    old = launched(CLAUDE, session="before")
    assert old.argv[old.argv.index("--resume") + 1] == old.opening == "before"


def test_nothing_skips_permissions_unless_they_are_full():
    for granted in ("read", "edit", "anything"):
        launch = launched(CLAUDE, options={"permissions": granted})
        assert not any("dangerously" in word for word in launch.argv)
        assert "skipDangerousModePermissionPrompt" not in settings(launch)
    assert (
        "--dangerously-skip-permissions" in launched(CLAUDE, options={"permissions": "full"}).argv
    )
    with pytest.raises(Refused, match="extra_args"):
        launched(CLAUDE, options={"extra_args": ("--dangerously-skip-permissions",)})


def test_a_person_may_be_asked_and_may_leave_work_in_the_background():
    launch = launched(CLAUDE)
    assert launch.argv[launch.argv.index("--permission-mode") + 1] == "acceptEdits"
    assert "-p" not in launch.argv
    assert "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS" not in launch.env
    assert launch.env["DISABLE_AUTOUPDATER"] == "1"


def test_it_is_a_coder_with_a_screen():
    assert isinstance(CLAUDE, InTerminal)


def test_lines_of_hooks_that_run_side_by_side_do_not_mix(tmp_path):
    line = json.dumps({"text": "x" * 300_000}) + "\n"
    env = {**os.environ, "FLEET_RUN_DIR": str(tmp_path)}

    def write(_):
        subprocess.run(["/bin/sh", "-c", APPEND], input=line.encode(), env=env, check=True)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(40)))
    assert (tmp_path / "transcript").read_text() == line * 40


def test_what_is_new_in_its_own_record_is_copied_once(tmp_path):
    record = tmp_path / "record.jsonl"
    told = json.dumps({"transcript_path": str(record)}, separators=(",", ":")) + "\n"
    env = {**os.environ, "FLEET_RUN_DIR": str(tmp_path)}
    follow = hooks(launched(CLAUDE))["FileChanged"]
    reply = '{"type":"assistant","n":%d}\n'
    for number in range(3):
        with record.open("a") as file:
            file.write(reply % number + '{"type":"user","much":"of it"}\n')
        subprocess.run(["/bin/sh", "-c", follow], input=told.encode(), env=env, check=False)
    assert (tmp_path / "transcript").read_text() == "".join(reply % n for n in range(3))


def test_its_editor_writes_what_waits_to_be_typed_and_is_else_the_persons_own(tmp_path):
    launch = launched(CLAUDE, env={"EDITOR": "sed -i s/words/more/", "PATH": os.environ["PATH"]})
    editor = launch.env["EDITOR"].split()
    assert launch.env["VISUAL"] == launch.env["EDITOR"]
    prompt, waiting = tmp_path / "prompt.md", tmp_path / "typed.text"
    waiting.write_text("a\ttab \\")
    env = {**launch.env, "FLEET_RUN_DIR": str(tmp_path)}
    subprocess.run([*editor, str(prompt)], env=env, check=True)
    assert prompt.read_text() == "a\ttab \\"
    assert not waiting.exists()
    prompt.write_text("words")
    subprocess.run([*editor, str(prompt)], env=env, check=True)
    assert prompt.read_text() == "more"
