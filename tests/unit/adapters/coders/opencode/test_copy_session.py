"""The copy of a conversation, made with a program that exports and imports as OpenCode does."""

import json
import os
import subprocess
import sys

from fleet.adapters.coders.opencode import copy_session
from fleet.adapters.coders.opencode.coder import OpenCodeCoder
from fleet.adapters.coders.opencode.copy_session import copied, copy_id
from tests.unit.adapters.coders.watched import launched

SESSION = "ses_e118a18d4ffe9uULdU3Nb8T3O0"
MESSAGE = "msg_1ee75ea5a001dxLXbQUYebQ04z"
PART = "prt_1ee75ea78001omZQp0gs4vOmAo"
EXPORT = {
    "info": {"id": SESSION, "directory": "/first"},
    "messages": [
        {
            "info": {"id": MESSAGE, "sessionID": SESSION},
            "parts": [
                {"id": PART, "messageID": MESSAGE, "text": f"Look at {MESSAGE}, ses_elsewhere"}
            ],
        }
    ],
}
PROGRAM = """#!{python}
import json, os, sys
if "broken" in os.environ.get("HOW", ""):
    sys.exit("no such session")
match sys.argv[1]:
    case "export":
        print(os.environ["EXPORT"])
    case "import":
        print(json.load(open(sys.argv[2])), file=open("imported", "w"))
    case _:
        print(*sys.argv[1:], os.environ.get("OPENCODE_CONFIG_CONTENT"))
"""


def run(tmp_path, program="opencode", **env):
    file = tmp_path / "opencode"
    file.write_text(PROGRAM.format(python=sys.executable))
    file.chmod(0o755)
    argv = [sys.executable, "-I", "-S", copy_session.__file__, SESSION, "ses_copy", "1"]
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    more = {"PATH": path, "EXPORT": json.dumps(EXPORT), "OPENCODE_CONFIG_CONTENT": "{}", **env}
    return subprocess.run(
        [*argv, program, "--session", "ses_copy"],
        cwd=tmp_path, env=more, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def test_the_copy_has_ids_of_its_own_and_the_same_words():
    made = copied(EXPORT, "ses_copy")
    (message,) = made["messages"]
    (part,) = message["parts"]
    assert made["info"]["id"] == message["info"]["sessionID"] == "ses_copy"
    assert message["info"]["id"] == part["messageID"] != MESSAGE
    assert part["id"] != PART
    assert part["text"] == EXPORT["messages"][0]["parts"][0]["text"]


def test_an_id_keeps_its_time_and_is_the_same_when_a_run_is_launched_again():
    assert copy_id(SESSION, "t-2.1").startswith("ses_e118a18d4ffe")
    assert len(copy_id(SESSION, "t-2.1")) == len(SESSION)
    assert copy_id(SESSION, "t-2.1") == copy_id(SESSION, "t-2.1") != copy_id(SESSION, "t-3.1")


def test_the_program_is_started_with_the_copy_in_this_directory(tmp_path):
    ran = run(tmp_path)
    assert ran.stdout.splitlines()[-1] == "--session ses_copy {}"
    assert "ses_copy" in (tmp_path / "imported").read_text()
    assert SESSION not in (tmp_path / "imported").read_text()


def test_a_conversation_that_cannot_be_copied_starts_nothing(tmp_path):
    ran = run(tmp_path, HOW="broken")
    assert ran.returncode == 1
    assert ran.stderr.startswith(f"fleet: OpenCode could not copy the conversation {SESSION}: no ")
    assert run(tmp_path, program="nowhere").returncode == 127


def test_a_fork_is_launched_with_a_copy_and_is_watched_as_the_copy():
    launch = launched(OpenCodeCoder(), session=SESSION, fork=True)
    copy = json.loads(launch.opening)["session"]
    assert copy not in {"", SESSION}
    assert launch.argv[launch.argv.index("--session") + 1] == copy
    assert launch.argv[3:7] == (copy_session.__file__, SESSION, copy, "1")
    assert launch.stdin == "Do it."
