"""`fleet update` where a real pipx and a real uv installed Fleet, from wheels of two versions."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fleet import __version__

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
NEXT = "999.0.0"


def run(*argv, env=None, check=True):
    ran = subprocess.run(
        argv, env=env, capture_output=True, text=True, check=False, timeout=300,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert not check or ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """The folder of pipx's and uv's executables: one without uv beside it, one with."""
    folders = []
    for names in (("pipx",), ("pipx", "uv")):
        folder = tmp_path_factory.mktemp("tools")
        run(sys.executable, "-m", "venv", str(folder))
        run(str(folder / "bin/pip"), "install", "--quiet", *names)
        folders.append(folder / "bin")
    return dict(zip(("pip", "uv"), folders, strict=True))


@pytest.fixture(scope="module")
def wheels(tools, tmp_path_factory):
    """Of the version that is installed and of the one that comes after it."""
    made = tmp_path_factory.mktemp("wheels")
    for version in (__version__, NEXT):
        source = tmp_path_factory.mktemp("source")
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, source / name)
        shutil.copytree(ROOT / "src", source / "src")
        file = source / "src/fleet/__init__.py"
        file.write_text(file.read_text().replace(f'"{__version__}"', f'"{version}"', 1))
        build = ("wheel", "--quiet", "--no-deps", "--wheel-dir", str(made), str(source))
        run(str(tools["pip"] / "pip"), *build)
    return {w.name.split("-")[1]: w for w in made.iterdir()}


class Installed:
    """Fleet, in a home of its own, from an index that has one version; then `release` it the next."""

    def __init__(self, folder: Path, tools: Path, wheels: dict[str, Path]) -> None:
        self.wheels, self.index = wheels, folder / "index"
        self.index.mkdir()
        links = (os.environ.get("PIP_FIND_LINKS", ""), str(self.index))
        own = {k: v for k, v in os.environ.items() if not k.startswith(("FLEET_", "VIRTUAL_ENV"))}
        self.env = own | {
            "HOME": str(folder),
            "PATH": os.pathsep.join([str(tools), "/usr/local/bin", "/usr/bin", "/bin"]),
            "PIPX_HOME": str(folder / "pipx"),
            "PIPX_BIN_DIR": str(folder / "bin"),
            "UV_TOOL_DIR": str(folder / "uv/tools"),
            "UV_TOOL_BIN_DIR": str(folder / "bin"),
            "PIP_FIND_LINKS": " ".join(filter(None, links)),
            "UV_FIND_LINKS": str(self.index),
        }
        self.fleet = folder / "bin/fleet"
        self.release(__version__)

    def release(self, version: str) -> None:
        shutil.copy(self.wheels[version], self.index)

    def __call__(self, *words: str) -> str:
        return run(str(self.fleet), *words, env=self.env)


@pytest.fixture(params=["pipx with pip", "pipx with uv", "uv"])
def installed(request, tools, wheels, tmp_path):
    method, _, backend = request.param.partition(" with ")
    made = Installed(tmp_path, tools[backend or "uv"], wheels)
    words = {"pipx": ("pipx", "install"), "uv": ("uv", "tool", "install")}[method]
    program = shutil.which(words[0], path=made.env["PATH"])
    run(str(program), *words[1:], "agent-fleet", env=made.env)
    made.method = method
    return made


def test_a_newer_release_is_seen_and_installed_by_the_tool_that_installed_the_first(installed):
    assert installed("update") == f"fleet {__version__} is the newest release.\n"
    installed.release(NEXT)
    seen = installed("update", "--check", "--force")
    assert f"fleet {NEXT} is out; {__version__} is installed (by {installed.method})." in seen
    assert installed("--version") == f"fleet {__version__}\n"
    assert installed("update").endswith("Installed it.\n")
    assert installed("--version") == f"fleet {NEXT}\n"
    assert installed("update", "--force") == f"fleet {NEXT} is the newest release.\n"
