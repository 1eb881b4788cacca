"""The README's first session, word for word."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def first_session() -> list[str]:
    (block,) = re.findall(r"```console\n(.*?)```", README.read_text(), flags=re.DOTALL)
    return [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]


def test_the_first_session_does_what_the_readme_says(tmp_path):
    repo = tmp_path / "repo"
    repo.mkdir()
    env = {k: v for k, v in os.environ.items() if not k.startswith(("FLEET_", "GIT_"))} | {
        "FLEET_HOME": str(tmp_path / "home"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }

    def shell(line: str) -> str:
        done = subprocess.run(
            ["bash", "-c", line], cwd=repo, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        return done.stdout

    shell(
        "git init -q -b main && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x"
    )
    lines = first_session()
    assert len(lines) == 6
    shown = [shell(line) for line in lines]

    assert "2 done and not landed" in shown[-2]
    assert shown[-1].startswith("t-2 landed on main (")
    assert {"hello.txt", "bye.txt"} <= set(shell("git ls-tree --name-only main").split())
    assert shell("git branch --list 'fleet/*'") == ""  # what landed needs no branch any more

    with (repo / "fleet.yaml").open("a") as file:  # what the README adds does not collide with it
        file.write(re.findall(r"```yaml\n(.*?)```", README.read_text(), flags=re.DOTALL)[0])
    shell("fleet validate && fleet trust")
    assert "[mine, ready" in shell('fleet add "Fix the login" --coder mine')
