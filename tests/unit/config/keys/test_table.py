"""Every key of the schema can be set in each layer that it allows, and does something there."""

import pytest
import yaml

from fleet.config import Settings
from fleet.config.commands.show import all_of
from fleet.config.keys.lookup import resolve, variable
from fleet.config.keys.table import DECLARED, ENVIRONMENT, FLAG, KEYS, PROJECT, SETTINGS, USER
from fleet.config.settings import GROUPS

# For each setting: a value that is not the default.
VALUES = {
    "max_concurrent": 7,
    "max_depth": 5,
    "coder": "codex",
    "model": "opus",
    "context_pressure_threshold_pct": 50,
    "team": "red",
    "run.attempts": 5,
    "run.time_limit": 60,
    "run.backoff": 1.5,
    "run.grace": 2,
    "run.stall_limit": 60,
    "run.gate": "make test",
    "run.gate_limit": 90,
    "run.commit": "hold",
    "land.auto": True,
    "land.gate": "make check",
    "land.onto": "release",
    "land.push": True,
    "land.pr": True,
    "land.merge": True,
    "hooks.secrets": ["github=os.environ/FLEET_HOOK_GITHUB"],
    "hooks.people": ["ada"],
    "hooks.label": "agent",
    "hooks.project": "/srv/shop",
    "forge.hosts": ["git.example.org=gitea"],
    "land.remote": "upstream",
    "land.slots": 4,
    "land.reconciler": "neutral",
    "land.environment": ["NODE_ENV"],
    "land.tries": 1,
    "run.mcp": False,
    "run.env": ["OPENAI_API_KEY"],
    "budget.usd": 2.5,
    "budget.tokens": 1_000_000,
    "budget.minutes": 90,
    "queue": "beads",
    "workspace.isolation": "bubblewrap",
    "workspace.container.program": "podman",
    "workspace.container.image": "agents:1",
    "workspace.container.network": "gateway",
    "workspace.container.mounts": ["/srv/models:ro"],
    "workspace.limits.memory": "512MiB",
    "workspace.limits.cpus": 1.5,
    "workspace.limits.pids": 64,
    "notify.about": ["failed"],
    "notify.desktop": True,
    "notify.webhook": "https://example.org/hook",
    "workspace.root": "/tmp/trees",
    "workspace.branch_prefix": "agents/",
    "workspace.credential_files": [".env"],
    "workspace.setup": ["make deps"],
    "workspace.setup_timeout": 30,
    "workspace.setup_cache": ["uv.lock"],
    "workspace.quick": True,
    "workspace.branch_pattern": "(fix|feature)/.+",
    "workspace.teardown": ["make down"],
    "workspace.ports": 10,
    "workspace.pool": 0,
    "workspace.pool_ignored": "clean",
    "tmux.prefix": "ai_",
    "server.places": ["/srv/projects"],
    "server.audit": "all",
    "server.audit_mb": 7,
    "server.streams": 7,
    "store.schema": "public",
    "store.pool_size": 10,
    "store.lease": 60,
    "retention.events": 30.0,
    "retention.tasks": 90.0,
    "retention.kept": 30.0,
    "retention.transcripts": 30.0,
    "retention.transcripts_mb": 500,
    "host.labels": ["gpu"],
    "host.server": "https://fleet.example.org",
    "server.url": "https://fleet.example.org",
    "server.token_days": 7,
    "server.oidc.issuer": "https://login.example.org/",
    "server.oidc.audience": "fleet",
    "server.oidc.name_claim": "preferred_username",
    "server.oidc.role_claim": "roles",
    "server.oidc.roles": ["admins=coordinator"],
    "server.oidc.team_claim": "team",
    "server.oidc.teams": ["red team=red"],
    "server.trusted_proxies": ["127.0.0.1", "10.0.0.0/8"],
    "store.url": "sqlite:////tmp/other.db",
}

# For each part of the declared fleet: a value that is not the default, and where it shows.
FLEET = {
    "project.name": ("demo", lambda f: f.name),
    "project.gateway.provider": ("litellm", lambda f: f.gateway.provider),
    "project.gateway.host": ("10.0.0.1", lambda f: f.gateway.host),
    "project.gateway.port": (4001, lambda f: f.gateway.port),
    "project.gateway.master_key_env": ("MY_KEY", lambda f: f.gateway.master_key_env),
    "project.observability.otlp": ("http://c:4318", lambda f: f.otlp.address),
    "project.observability.otlp_headers": ("os.environ/KEY", lambda f: f.otlp.headers),
    "nodes.*.endpoint": ("http://other:1", lambda f: f.nodes["x"].endpoint),
    "nodes.*.kind": ("vllm", lambda f: f.nodes["x"].kind),
    "nodes.*.provider": ("lmstudio", lambda f: f.nodes["x"].kind),
    "nodes.*.tags": (["fast"], lambda f: list(f.nodes["x"].tags)),
    "nodes.*.max_parallel": (4, lambda f: f.nodes["x"].max_parallel),
    "nodes.*.weight": (2.5, lambda f: f.nodes["x"].weight),
    "nodes.*.memory": ("24GB", lambda f: f"{f.nodes['x'].memory >> 30}GB"),
    "nodes.*.wake_on_lan": ("aa:bb:cc:dd:ee:ff", lambda f: f.nodes["x"].wake_on_lan),
    "nodes.*.wake_address": ("10.0.0.255", lambda f: f.nodes["x"].wake_address),
    "nodes.*.wake_seconds": (5, lambda f: f.nodes["x"].wake_seconds),
    "nodes.*.api_key": ("os.environ/KEY", lambda f: f.nodes["x"].api_key),
    "models.*.node": ("y", lambda f: f.models["x"].servings[0].node.name),
    "models.*.upstream": ("llama:8b", lambda f: f.models["x"].servings[0].upstream),
    "models.*.servings.*": ("q", lambda f: f.models["spread"].servings[1].upstream),
    "models.*.alias": ("local", lambda f: f.models["x"].alias),
    "models.*.context": (4096, lambda f: f.models["x"].context),
    "models.*.timeout": (9, lambda f: f.models["x"].servings[0].timeout),
    "models.*.max_parallel": (2, lambda f: f.models["x"].servings[0].slots),
    "models.*.fallbacks": (["spread"], lambda f: [m.name for m in f.models["x"].fallbacks]),
    "models.*.thinking": (True, lambda f: f.models["x"].servings[0].thinking),
    "models.*.needs": (
        ["gpu"],
        lambda f: ["gpu"] if [s.node.name for s in f.models["both"].servings] == ["x"] else [],
    ),
    "agents.*.needs": (["gpu"], lambda f: list(f.agent("x").model.needs)),
    "agents.*.coder": ("aider", lambda f: f.agent("x").coder),
    "agents.*.model": ("spread", lambda f: f.agent("x").model.name),
    "agents.*.description": ("Use it.", lambda f: f.agent("x").description),
    "agents.*.prompt": ("Be kind.", lambda f: f.agent("x").prompt),
    "agents.*.tools": (["Read"], lambda f: list(f.agent("x").tools)),
    "agents.*.priority": (1, lambda f: f.agent("x").priority),
    "agents.*.max_requests": (2, lambda f: f.agent("x").max_requests),
    "agents.*.role": ("team-lead", lambda f: f.agent("x").role),
    "agents.*.permissions": ("full", lambda f: f.agent("x").permissions),
    "agents.*.extra_args": (["--fast"], lambda f: list(f.agent("x").extra_args)),
    "agents.*.command": (["./a", "b"], lambda f: list(f.agent("runs").command)),
    "coders.*.command": (["run", "{prompt}"], lambda f: list(f.own_coders["x"].command)),
    "coders.*.resume": (["on", "{session}"], lambda f: list(f.own_coders["x"].resume)),
    "coders.*.says.*": ("message", lambda f: ".".join(f.own_coders["x"].says["text"].path)),
    "coders.*.counts": ("total", lambda f: f.own_coders["x"].counts),
    "coders.*.window": (9000, lambda f: f.own_coders["x"].window),
    "routes.*.agent": ("runs", lambda f: f.routes[0].agent),
    "routes.*.model": ("spread", lambda f: f.routes[0].model),
    "routes.*.needs": (["gpu"], lambda f: list(f.routes[0].needs)),
    "routes.*.labels": (["docs"], lambda f: list(f.routes[0].labels)),
    "routes.*.words": (["index"], lambda f: list(f.routes[0].words)),
    "routes.*.files": (["*.md"], lambda f: list(f.routes[0].files)),
    "routes.*.longer_than": (50, lambda f: f.routes[0].longer_than),
    "routes.*.shorter_than": (50, lambda f: f.routes[0].shorter_than),
    "mcp_servers.*.command": ("other", lambda f: f.mcp_servers["x"].command),
    "mcp_servers.*.args": (["-v"], lambda f: list(f.mcp_servers["x"].args)),
    "mcp_servers.*.env.*": ("1", lambda f: f.mcp_servers["x"].env["x"]),
}

BASE = {
    "nodes": {
        "x": {"endpoint": "http://localhost:11434", "tags": ["gpu"]},
        "y": {"endpoint": "http://y:1"},
    },
    "models": {
        "x": {"node": "x", "upstream": "qwen:7b"},
        "spread": {"servings": {"y": "q"}},
        "both": {"servings": {"y": "both", "x": "both"}},
    },
    "agents": {"x": {"model": "x", "description": "d"}, "runs": {"coder": "command"}},
    "coders": {"x": {"command": ["work"], "says": {"session": "id"}}},
    "routes": {"x": {"model": "x"}},
    "mcp_servers": {"x": {"command": "serve"}},
}

NAMED = {
    "models.*.servings.*": ("spread", "x"),
    "agents.*.command": ("runs",),
    "models.*.needs": ("both",),
    "coders.*.says.*": ("x", "text"),
}


def _path(key) -> str:
    names = iter(NAMED.get(key.path, ("x", "x")))
    return ".".join(next(names) if part == "*" else part for part in key.path.split("."))


def _value(key):
    return VALUES[key.path] if key.path in VALUES else FLEET[key.path][0]


def _with(data, path, value):
    name, _, rest = path.partition(".")
    below = data.get(name, {})
    return {**data, name: _with(below, rest, value) if rest else value}


def _seen(key, loaded):
    if key.path in FLEET:
        return FLEET[key.path][1](loaded.fleet)
    found = loaded.settings
    for name in key.path.split("."):
        found = getattr(found, name)
    return list(found) if isinstance(found, tuple) else found


def _set(world, key, layer):
    """The configuration with the key set in that layer, and where its origin should be."""
    path, value = _path(key), _value(key)
    if layer == USER:
        world.fleet(yaml.safe_dump(BASE)).user(yaml.safe_dump(_with({}, path, value)))
        if "*" in key.path:  # the project's file would win over it
            world.fleet("").user(yaml.safe_dump(_with(BASE, path, value)))
        return world.load(), str(world.user_file)
    if layer == PROJECT:
        world.fleet(yaml.safe_dump(_with(BASE, path, value)))
        return world.trust().load(), "fleet.yaml"
    world.fleet(yaml.safe_dump(BASE)).trust()
    if layer == FLAG:
        return world.load(flags={path: value}), path
    text = "\n".join(value) if isinstance(value, list) else str(value)
    return world.load(env={variable(key): text}), variable(key)


PLACES = [(key, layer) for key in KEYS for layer in key.layers]


@pytest.mark.parametrize(("key", "layer"), PLACES, ids=[f"{k.path}-{w}" for k, w in PLACES])
def test_a_key_can_be_set_shows_its_origin_and_changes_what_the_code_reads(world, key, layer):
    loaded, place = _set(world, key, layer)
    path = _path(key)
    origin = loaded.origins[path]
    assert (origin.layer, origin.place.name) == (layer, place)
    assert origin.place.line > 0 if layer in {USER, PROJECT} else origin.place.line == 0
    assert path in {shown.setting for shown in all_of(loaded)}
    wanted = _value(key)
    assert str(_seen(key, loaded)) == str(wanted)


@pytest.mark.parametrize("key", [k for k in KEYS if k.path != "project.gateway.provider"])
def test_the_value_in_these_tests_differs_from_what_counts_without_it(world, key):
    world.fleet(yaml.safe_dump(BASE)).trust()
    try:
        without = _seen(key, world.load())
    except (KeyError, IndexError):
        return
    assert str(without) != str(_value(key)) or key.path == "models.*.servings.*"


@pytest.mark.parametrize("key", [k for k in KEYS if PROJECT not in k.layers])
def test_a_key_that_is_not_for_projects_is_refused_there(world, key):
    world.fleet(yaml.safe_dump(_with({}, key.path, _value(key))))
    line = key.path.count(".") + 1
    assert f"fleet.yaml:{line}: {key.path}: cannot be set in a project's file." in world.refuse()


def test_settings_have_exactly_the_fields_of_the_schema():
    fields = set()
    for field in (*Settings._fields, *(name for name in GROUPS if "." in name)):
        group = GROUPS.get(field)
        fields |= {f"{field}.{name}".rstrip(".") for name in (group._fields if group else [""])}
    fields -= GROUPS.keys()
    assert fields == {key.path for key in SETTINGS}


def test_defaults_of_the_schema_and_of_the_settings_agree(world):
    plain, loaded = Settings(), world.load().settings
    for key in SETTINGS:
        if key.kind not in {"path", "store"}:
            assert _seen_in(plain, key) == _seen_in(loaded, key) == key.default


def _seen_in(settings, key):
    for name in key.path.split("."):
        settings = getattr(settings, name)
    return settings


def test_every_part_of_the_fleet_has_a_test_here():
    assert FLEET.keys() == {key.path for key in DECLARED}
    assert VALUES.keys() == {key.path for key in SETTINGS}


def test_no_two_settings_share_a_variable():
    names = [variable(key) for key in KEYS if ENVIRONMENT in key.layers]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("key", KEYS)
def test_a_dotted_path_finds_its_key_by_every_name_that_it_has(key):
    head, _, last = _path(key).rpartition(".")
    for name in (last, *key.also):
        assert resolve(f"{head}.{name}".lstrip("."))[0] == key


def test_a_name_with_dots_in_it_is_found_too():
    assert resolve("models.qwen2.5-coder.context")[1] == ("models", "qwen2.5-coder", "context")
