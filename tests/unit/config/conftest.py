import os
from pathlib import Path

import pytest

from fleet.config import load
from fleet.config.trust import record, values
from fleet.domain.errors import BadConfig


class World:
    """A home and a project on disk, and what loading them gives."""

    def __init__(self, root: Path):
        self.home = root / "home"
        self.project = root / "project"
        self.home.mkdir()
        self.project.mkdir()
        (self.project / ".git").mkdir()
        (self.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        self.env = {"HOME": str(root), "PATH": os.environ["PATH"]}

    @property
    def user_file(self) -> Path:
        return self.home / "config.yaml"

    @property
    def file(self) -> Path:
        return self.project / "fleet.yaml"

    def user(self, text: str):
        self.user_file.write_text(text)
        return self

    def fleet(self, text: str):
        self.file.write_text(text)
        return self

    def load(self, **kwargs):
        env = kwargs.pop("env", {})
        return load(self.project, home=self.home, env={**self.env, **env}, **kwargs)

    def trust(self):
        record(self.home, self.file, values(self.load().asked))
        return self

    def refuse(self, **kwargs) -> str:
        """What a person reads when this configuration is loaded."""
        with pytest.raises(BadConfig) as caught:
            self.load(**kwargs)
        return f"{caught.value.message}\n  {caught.value.fix}"


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)
