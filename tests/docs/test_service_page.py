"""The unit and the plist of the page are what systemd and launchd read, and start us."""

from __future__ import annotations

import configparser
import plistlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_commands import complaint
from tests.wait import LIMIT

PAGE = (Path(__file__).parents[2] / "docs/how-to/run-as-a-service.md").read_text("utf-8")


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    return found


def test_the_unit_starts_a_supervisor_and_lets_its_agents_live():
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str
    unit.read_string(block("ini"))
    program, *words = unit["Service"]["ExecStart"].split()
    assert program == "%h/.local/bin/fleet"
    assert words[:2] == ["run", "foreground"]
    assert complaint(words) == ""
    assert unit["Service"]["KillMode"] == "process"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not here")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path):
    fleet = Path(sys.executable).parent / "fleet"
    file = tmp_path / "fleet.service"
    file.write_text(block("ini").replace("%h/.local/bin/fleet", str(fleet)))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", str(file)],
        env={"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=False, timeout=LIMIT,
    )  # fmt: skip
    assert "fleet.service" not in done.stderr, done.stderr


def test_the_plist_starts_a_supervisor_and_lets_its_agents_live():
    plist = plistlib.loads(block("xml").encode())
    program, *words = plist["ProgramArguments"]
    assert program.endswith("/fleet")
    assert words == ["run", "foreground"]
    assert complaint(words) == ""
    assert plist["AbandonProcessGroup"] is True
