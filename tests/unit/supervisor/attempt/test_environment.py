from __future__ import annotations

import pytest

from fleet.adapters.coders import built_in
from fleet.adapters.processes.keepers import recorded
from fleet.domain.redaction import Redactor, secret_values
from fleet.supervisor.attempt.environment import for_coder, inherited

OURS = {
    "PATH": "/bin",
    "JWT_SECRET": "s",
    "DATABASE_URL": "postgresql://u:p@h/db",
    "POSTGRESQL_PASSWORD": "p",
    "STORE": "postgresql://u:p@h/other",
    "ANTHROPIC_API_KEY": "a",
    "CLAUDE_CODE_OAUTH_TOKEN": "c",
    "OPENAI_API_KEY": "o",
    "HF_TOKEN": "h",
    "GH_TOKEN": "g",
    "NODE_SECRET": "n",
    "FLEET_RUN_TOKEN": "outer",
    "FLEET_FORGE_TOKEN": "f",
}
SERVERS = {
    *("JWT_SECRET", "DATABASE_URL", "POSTGRESQL_PASSWORD", "STORE", "FLEET_RUN_TOKEN"),
    "FLEET_FORGE_TOKEN",
}


def test_no_agent_inherits_the_servers_secrets():
    given = inherited(OURS, store_url=OURS["STORE"], passed=())
    assert OURS.keys() - given.keys() == SERVERS


def test_the_setting_passes_a_database_but_never_the_key_of_the_tokens():
    given = inherited(OURS, store_url="x", passed=("DATABASE_URL", "JWT_SECRET"))
    assert "DATABASE_URL" in given
    assert "JWT_SECRET" not in given


def test_an_agent_that_must_open_the_store_itself_can():
    assert "DATABASE_URL" in inherited(OURS, store_url="", passed=())


@pytest.mark.parametrize(
    ("coder", "keys"),
    [
        ("claude", {"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"}),
        ("codex", {"OPENAI_API_KEY"}),
        ("scripted", set()),
        (
            "opencode",
            {"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY", "HF_TOKEN"},
        ),
    ],
)
def test_a_coder_gets_the_keys_of_its_own_provider(coder, keys):
    providers = {"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY", "HF_TOKEN"}
    own = built_in(coder).keys
    given = for_coder(OURS, own, passed=(), node_keys={"NODE_SECRET"})
    assert providers & given.keys() == keys
    assert {"PATH", "GH_TOKEN"} <= given.keys()
    assert ("NODE_SECRET" in given) is (coder == "opencode")
    assert "HF_TOKEN" in for_coder(OURS, own, passed=("HF_TOKEN",))


def test_what_stays_on_the_disk_says_whose_run_it_was_and_no_secret():
    env = {"FLEET_RUN_ID": "t-1.1", "FLEET_BRANCH": "x", "FLEET_RUN_TOKEN": "x", "PATH": "/bin"}
    env |= {"FLEET_RUN_BEARER": "x", "FLEET_TOKEN": "x", "OPENAI_API_KEY": "x"}
    env |= {"FLEET_STORE_URL": "postgresql://box:secret@db/fleet"}
    assert recorded(env) == {"FLEET_RUN_ID": "t-1.1", "FLEET_BRANCH": "x"}


def test_the_working_directory_is_no_secret():
    env = {"PWD": "/home/ann/shop", "OLDPWD": "/home/ann/other", "DB_PWD": "hunter2hunter2"}
    text = "cat /home/ann/shop/a.py /home/ann/other/b.py"
    assert Redactor(secret_values(env)).text(text) == text
    assert secret_values(env) == ["hunter2hunter2"]
