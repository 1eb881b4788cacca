"""Completion in the real shells, turned on by the line that `fleet completion --help` shows."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.e2e.scratch import Scratch
from tests.wait import until

RC = {"bash": ".bashrc", "zsh": ".zshrc", "fish": ".config/fish/config.fish"}


class Shell:
    """In a tmux of its own."""

    def __init__(self, scratch: Scratch, name: str) -> None:
        self._scratch = scratch
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30", name)

    def _tmux(self, *words: str) -> str:
        argv = ["tmux", "-S", str(self._scratch.root / "tmux"), *words]
        given = {"cwd": self._scratch.repo, "env": self._scratch.env}
        done = subprocess.run(argv, capture_output=True, text=True, check=True, **given)
        return done.stdout

    def completes(self, line: str, to: str) -> None:
        """The end of the line while it is typed; then the line is taken back."""
        self._tmux("send-keys", "-l", line)
        until(lambda: self.screen().endswith(line.strip()), self.screen)
        self._tmux("send-keys", "Tab")
        until(lambda: self.screen().endswith(to), lambda: f"{line!r}: {self.screen()}")
        self._tmux("send-keys", "C-u")
        self._tmux("send-keys", "C-l")

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p").rstrip()

    def close(self) -> None:
        self._tmux("kill-server")


@pytest.mark.parametrize("name", RC)
def test_the_line_of_the_help_turns_completion_on(name, tmp_path):
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    scratch = Scratch(tmp_path)
    scratch.add("Fix the login")
    (scratch.root / RC[name]).parent.mkdir(parents=True, exist_ok=True)
    (line,) = [x for x in scratch("completion", "--help").splitlines() if RC[name] in x]
    subprocess.run(["sh", "-c", line], env=scratch.env, cwd=scratch.repo, check=True)
    shell = Shell(scratch, name)
    try:
        shell.completes("fleet rea", "fleet ready")
        shell.completes("flt rea", "flt ready")
        shell.completes("fleet show t", "fleet show t-1")
        shell.completes("fleet-cd t", "fleet-cd t-1")
        assert "not found" not in shell.screen()
    finally:
        shell.close()
