"""`pip install`, with a stand-in that prints what the real one does."""

import pytest

from fleet.adapters.processes.pip import package_of, pip_install
from fleet.domain.errors import Unavailable
from tests.wait import LIMIT

OUTPUT = """\
Collecting click==8.5.1 (from -r pins.txt (line 2))
  Downloading click-8.5.1-py3-none-any.whl (98 kB)
Requirement already satisfied: PyYAML in ./lib (6.0.3)
Collecting click (from other)
Installing collected packages: click
"""


def stand_in(tmp_path, text: str, status: int = 0, then: str = "") -> str:
    (tmp_path / "text").write_text(text)
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/text\n{then}\nexit {status}\n")
    program.chmod(0o755)
    return str(program)


def test_each_package_is_reported_once_with_how_many_there_were(tmp_path):
    steps: list[tuple[str, int]] = []
    program = stand_in(tmp_path, OUTPUT)
    pip_install(program, ["click"], lambda *step: steps.append(step), within=LIMIT)
    assert steps == [("click", 1), ("PyYAML", 2), ("click", 2), ("unpacking", 2)]


def test_when_it_fails_its_last_lines_say_why(tmp_path):
    program = stand_in(tmp_path, "Collecting nope\nERROR: There is no nope.\n", 1)
    with pytest.raises(Unavailable, match=r"ERROR: There is no nope\."):
        pip_install(program, ["nope"], lambda *_: None, within=LIMIT)


def test_when_it_never_ends_it_is_ended(tmp_path):
    program = stand_in(tmp_path, "Collecting slow\n", then="exec sleep 600")
    with pytest.raises(Unavailable, match="did not finish"):
        pip_install(program, ["slow"], lambda *_: None, within=0.5)


@pytest.mark.parametrize("line", ["  Downloading x.whl (1 kB)", "", "Collectingx", "WARNING: x"])
def test_other_lines_name_no_package(line):
    assert package_of(line) == ""
