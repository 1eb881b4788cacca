"""The container files: as far as they can be read without an engine that runs them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.docs.test_commands import complaint

FOLDER = Path(__file__).parents[2] / "examples" / "container"
FILE = (FOLDER / "Containerfile").read_text("utf-8")


def test_the_image_starts_the_server_under_an_init_as_an_ordinary_user():
    (command,) = re.findall(r"^CMD (\[.*\])$", FILE, re.MULTILINE)
    (entry,) = re.findall(r"^ENTRYPOINT (\[.*\])$", FILE, re.MULTILINE)
    assert yaml.safe_load(entry) == ["tini", "--", "fleet"]
    assert complaint(yaml.safe_load(command)) == ""
    assert re.search(r"^USER 1000$", FILE, re.MULTILINE)


@pytest.mark.skipif(not shutil.which("hadolint"), reason="hadolint is not here")
def test_hadolint_finds_nothing_wrong_with_the_image():
    done = subprocess.run(
        ["hadolint", FOLDER / "Containerfile"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_services_fit_together():
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text("utf-8"))
    fleet, database = compose["services"]["fleet"], compose["services"]["database"]
    assert fleet["build"]["dockerfile"] == "Containerfile"
    assert set(fleet["depends_on"]) <= set(compose["services"])
    assert database["healthcheck"]["test"][0] == "CMD"
    named = {v.partition(":")[0] for s in (fleet, database) for v in s["volumes"]}
    assert {name for name in named if not name.startswith(".")} == set(compose["volumes"])
    assert all(port.startswith("127.0.0.1:") for port in fleet["ports"])
    assert "${JWT_SECRET:?" in fleet["environment"]["JWT_SECRET"]
