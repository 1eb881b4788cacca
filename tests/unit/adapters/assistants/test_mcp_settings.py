"""Our server in the settings of other programs: all else stays, byte for byte where it can."""

from __future__ import annotations

import json
import tomllib

import pytest

from fleet.adapters.assistants import json_edit as json_text
from fleet.adapters.assistants.mcp_settings import file_of, register, unregister
from fleet.domain.errors import Refused

FILES = {
    "claude": [
        "",
        "{}",
        '{"a": 1}',
        '{\n  "projects": {"/x": {"mcpServers": {}}},\n  "z": [1, {"y": "}"}]\n}\n',
        '{"mcpServers": {"other": {"command": "x"}}, "last": "a \\" quote"}',
    ],
    "codex": [
        "",
        'model = "x"',
        '# mine\n[mcp_servers.other]\ncommand = "y"\n\n# about this\n[tools]\nx = [\n  [1],\n]\n',
    ],
    "opencode": [
        "",
        '{\n  // a comment with "quotes" and }\n  "mcp": {\n    "other": {"enabled": false}, // why\n  },\n}\n',
        '{"$schema": "https://opencode.ai/config.json", /* { */ "theme": "x"}',
    ],
}
CASES = [(coder, text) for coder, texts in FILES.items() for text in texts]
SECTION = {"claude": "mcpServers", "codex": "mcp_servers", "opencode": "mcp"}


def read(coder, text):
    return tomllib.loads(text) if coder == "codex" else json_text.read(text or "{}")


@pytest.mark.parametrize(("coder", "text"), CASES)
def test_it_comes_and_goes_and_all_else_stays(coder, text, tmp_path):
    file = tmp_path / "settings"
    if text:
        file.write_text(text)
    assert register(coder, file, "/bin/fleet").did == "added"
    once = file.read_text()
    held = read(coder, once)
    entry = held[SECTION[coder]].pop("fleet")
    assert "/bin/fleet" in json.dumps(entry)
    before = read(coder, text)
    assert {k: v for k, v in held.items() if v} == {k: v for k, v in before.items() if v}
    assert register(coder, file, "/bin/fleet").did == "nothing"
    assert file.read_text() == once
    assert register(coder, file, "/opt/fleet").did == "changed"
    assert unregister(coder, file).did == "removed"
    assert read(coder, file.read_text() if file.exists() else "") == before
    for line in text.splitlines():
        assert "#" not in line or line in file.read_text()
    assert unregister(coder, file).did == "nothing"


@pytest.mark.parametrize(
    ("coder", "text"),
    [
        ("claude", '{"mcpServers": {"fleet": {"command": "npx", "args": ["fleet"]}}}'),
        ("codex", 'mcp_servers = {other = {command = "x"}}'),
        ("codex", "[broken"),
        ("opencode", '{"mcp": '),
        ("claude", "[]"),
    ],
)
def test_what_it_cannot_change_safely_is_left_alone(coder, text, tmp_path):
    file = tmp_path / "settings"
    file.write_text(text)
    with pytest.raises(Refused):
        register(coder, file, "fleet")
    assert file.read_text() == text
    assert [p.name for p in tmp_path.iterdir()] == ["settings"]


def test_the_mode_stays_and_a_link_stays_a_link(tmp_path):
    real = tmp_path / "real.json"
    real.write_text("{}")
    real.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(real)
    register("claude", link, "fleet")
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert "fleet" in real.read_text()


def test_the_files_are_those_that_the_programs_read(tmp_path):
    env = {"HOME": "/h", "CODEX_HOME": "/c", "XDG_CONFIG_HOME": "/x"}
    assert str(file_of("claude", "user", tmp_path, env)) == "/h/.claude.json"
    assert str(file_of("codex", "user", tmp_path, env)) == "/c/config.toml"
    assert str(file_of("opencode", "user", tmp_path, env)) == "/x/opencode/opencode.json"
    assert file_of("claude", "project", tmp_path, env) == tmp_path / ".mcp.json"
    assert file_of("codex", "project", tmp_path, env) == tmp_path / ".codex" / "config.toml"
    (tmp_path / "opencode.jsonc").write_text("{}")
    assert file_of("opencode", "project", tmp_path, env) == tmp_path / "opencode.jsonc"
