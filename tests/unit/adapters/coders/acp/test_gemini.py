import json

import pytest

from fleet.adapters.coders.acp.gemini import GeminiCoder
from fleet.domain.run import Ending
from fleet.domain.transcript import SaidKind
from tests.unit.adapters.coders.folds import SECRET, Recorded, brief, read

CODER = GeminiCoder()
GATEWAY = {"base_url": "http://127.0.0.1:4000/v1", "key_env": "KEY"}
ENDINGS = {
    "401": Ending.FAILED,
    "429-final": Ending.RATE_LIMITED,
    "killed": Ending.FAILED,
}


class TestRecorded(Recorded):
    coder = CODER
    endings = ENDINGS


def test_every_tool_that_it_ran_was_begun_and_ended(transcript):
    said, heard = transcript.read(CODER)
    begun = [one for _, one in said if one.kind is SaidKind.TOOL]
    ended = [one for _, one in said if one.kind is SaidKind.TOOL_RESULT]
    torn = transcript.folder.name == "killed"
    assert len(begun) - len(ended) == heard.open_tools == torn


def test_nobody_sees_the_prompt_in_a_list_of_processes():
    launch = CODER.launch(brief())
    assert SECRET not in " ".join(launch.argv)
    assert SECRET in launch.opening


@pytest.mark.parametrize(
    ("granted", "mode"), [("read", "plan"), ("edit", "default"), ("full", "default")]
)
def test_permissions_are_its_own_modes_and_none_that_asks_nobody(granted, mode):
    launch = CODER.launch(brief(options={"permissions": granted}))
    assert json.loads(launch.opening)["mode"] == mode
    assert not {"--yolo", "-y", "--approval-mode"} & set(launch.argv)
    assert "GEMINI_CLI_TRUST_WORKSPACE" not in launch.env


def test_it_may_write_its_notes():
    launch = CODER.launch(brief(env={"FLEET_ARTIFACT_DIR": "/notes"}))
    at = launch.argv.index("--include-directories")
    assert launch.argv[at + 1] == "/notes"


def test_behind_a_gateway_no_login_of_the_users_counts(tmp_path):
    env = {"KEY": "sk-1", "GOOGLE_API_KEY": "theirs", "GOOGLE_GENAI_USE_VERTEXAI": "true"}
    given = brief(env=env, model="coder", options={"gateway": GATEWAY})
    launch = CODER.launch(given._replace(task_dir=str(tmp_path)))
    assert launch.env["GOOGLE_GEMINI_BASE_URL"] == "http://127.0.0.1:4000"
    assert launch.env["GEMINI_API_KEY"] == "sk-1"
    assert "GOOGLE_API_KEY" not in launch.env
    settings = json.loads((tmp_path / "gemini" / "settings.json").read_text())
    assert settings["security"]["auth"]["selectedType"] == "gemini-api-key"
    assert launch.argv[launch.argv.index("-m") + 1] == "coder"
    assert json.loads(launch.opening)["model"] == ""


def test_without_a_gateway_its_own_login_and_model_count():
    launch = CODER.launch(brief())
    assert not {"GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"} & set(launch.env)
    assert "-m" not in launch.argv


def test_its_context_is_estimated_from_what_passed():
    opening = json.dumps({"prompt": "x" * 400, "permissions": "edit", "cwd": "/", "places": []})
    begin = {"id": "initialize", "result": {"agentCapabilities": {}}}
    session = {"id": "session", "result": {"sessionId": "s"}}
    done = {"id": "prompt", "result": {"stopReason": "end_turn"}}
    _, heard = read(CODER, begin, session, done, opening=opening)
    assert 100 <= heard.usage.context < 140


def test_words_wait_for_the_end_of_the_turn(transcript):
    listener = CODER.listen(transcript.opening())
    for line in transcript.lines():
        said = [one.kind for one in listener.hear(line)]
        free = listener.words("Mind the gap.") is not None
        if SaidKind.RESULT in said:
            assert free
        elif said:
            assert not free
