import json
import shutil
import subprocess

import pytest

from fleet.adapters.coders.opencode.coder import OpenCodeCoder
from fleet.adapters.coders.opencode.terminal import PLUGIN
from fleet.domain.transcript import SaidKind
from fleet.ports import InTerminal
from tests.unit.adapters.coders.watched import heard, launched

OPENCODE = OpenCodeCoder()
OPENING = json.dumps({"session": "s"})


def event(kind, **told):
    return {"at": 1, "event": {"type": kind, "properties": {"sessionID": "s", **told}}}


def config(launch):
    return json.loads(launch.env["OPENCODE_CONFIG_CONTENT"])


def rules(**options):
    return config(launched(OPENCODE, options=options))["agent"]["fleet-run"]["permission"]


def test_a_permission_is_wanted_from_a_person_and_nothing_is_replied():
    asked = event("permission.asked", id="1", permission="bash", patterns=["rm *"])
    said, so_far = heard(OPENCODE, asked, opening=OPENING)
    assert so_far.wants == "rm *"
    assert [one.kind for one in said] == [SaidKind.SESSION, SaidKind.WANTS]


def test_it_is_not_spoken_to_while_it_asks():
    listener = OPENCODE.watch(OPENING)
    listener.hear(json.dumps(event("permission.asked", id="1", permission="bash")))
    assert listener.words("Hello") is None
    listener.hear(json.dumps(event("permission.replied", requestID="1", reply="once")))
    assert listener.words("Hello") == "Hello"
    assert listener.words("!ls") == " !ls"


def test_the_first_prompt_is_an_argument_whatever_is_in_it():
    for prompt in ("-x", "a\tb\n", "\\", "x" * 120_000):
        launch = launched(OPENCODE, prompt)
        assert f"--prompt={prompt}" in launch.argv
        assert launch.stdin is None
        assert launch.terminal
    assert launched(OPENCODE, "x" * 120_001).stdin == "x" * 120_001


def test_a_session_is_resumed_by_its_id():
    launch = launched(OPENCODE, session="before")
    assert launch.argv[launch.argv.index("--session") + 1] == "before"
    assert json.loads(launch.opening) == {"session": "before"}
    assert launch.stdin == "Do it."  # to be pasted: it drops the argument


def test_what_nobody_could_be_asked_a_person_is_asked():
    assert rules()["external_directory"]["*"] == "ask"
    assert rules(permissions="read")["bash"]["*"] == "ask"
    assert rules(permissions="read")["edit"]["*"] == "deny"
    assert rules(permissions="full") == {"*": "allow"}


def test_its_plugin_is_in_the_package_and_brings_the_instructions():
    launch = launched(OPENCODE, instructions="Be brief.")
    assert config(launch)["plugin"] == [[PLUGIN.as_uri(), {"instructions": "Be brief."}]]
    assert PLUGIN.is_file()


def test_it_is_a_coder_with_a_screen():
    assert isinstance(OPENCODE, InTerminal)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs a JavaScript to run it in")
def test_the_plugin_writes_what_is_new_and_brings_instructions(tmp_path):
    part = {"id": "1", "type": "text", "text": "Hal", "time": {"start": 1}}
    whole = {**part, "text": "Half", "time": {"start": 1, "end": 2}}
    updated = [{"type": "message.part.updated", "properties": {"part": p}} for p in (part, whole)]
    events = [*updated, updated[1], {"type": "file.edited", "properties": {}}]
    script = f"""
        import {{ Fleet }} from {json.dumps(PLUGIN.as_uri())}
        const made = await Fleet({{}}, {{ instructions: "Be brief." }})
        for (const event of {json.dumps(events)}) await made.event({{ event }})
        const output = {{ system: [] }}
        await made["experimental.chat.system.transform"]({{}}, output)
        console.log(output.system[0])
    """
    (tmp_path / "try.mjs").write_text(script)
    shutil.copy(PLUGIN, tmp_path / "plugin.mjs")  # outside OpenCode, `.js` is the older kind
    text = (tmp_path / "try.mjs").read_text().replace(PLUGIN.as_uri(), "./plugin.mjs")
    (tmp_path / "try.mjs").write_text(text)
    ran = subprocess.run(
        ["node", "try.mjs"], cwd=tmp_path, env={"FLEET_RUN_DIR": str(tmp_path), "PATH": "/usr/bin"},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    lines = [json.loads(line) for line in (tmp_path / "transcript").read_text().splitlines()]
    assert [line["event"]["properties"]["part"]["text"] for line in lines] == ["Half"]
    assert ran.stdout == "Be brief.\n"
