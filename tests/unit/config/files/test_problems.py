"""What is wrong is named with its file, line, path and the nearest right name, all in one go."""

import subprocess
import sys

import pytest

from fleet.config.files.problems import Problems
from fleet.config.files.yaml_read import load_text
from fleet.domain.errors import BadConfig

NODES = "nodes:\n  mac-mini: {endpoint: http://mac:1}\n"
MODELS = NODES + "models:\n  small: {node: mac-mini, ollama_model: q, litellm_alias: s}\n"
UNNAMED = "Give each entry a name of your choice: `NAME: …` instead of `- …`."

WRONG = {
    "a reference to a node that is not there": (
        NODES + "models:\n  heavy: {ollama_model: q, litellm_alias: h,\n    node: mac-mni}\n",
        "fleet.yaml:5: models.heavy.node: 'mac-mni' is not a node.\n  Did you mean 'mac-mini'?",
    ),
    "a reference to a model that is not there": (
        MODELS + "agents:\n  planner:\n    model: smal\n    description: d\n",
        (
            "fleet.yaml:7: agents.planner.model: 'smal' is not under `models`.\n"
            "  Did you mean 'small'?"
        ),
    ),
    "a fallback that is not there": (
        MODELS + "  other: {node: mac-mini, ollama_model: r, fallback: smal}\n",
        "fleet.yaml:5: models.other.fallback: 'smal' is not a model.\n  Did you mean 'small'?",
    ),
    "fallbacks in a circle": (
        MODELS.replace("litellm_alias: s", "fallbacks: [other]")
        + "  other: {node: mac-mini, ollama_model: r, fallbacks: [small]}\n",
        (
            "fleet.yaml:5: models.other.fallbacks: the fallbacks go round in a circle: "
            "small -> other -> small."
        ),
    ),
    "a model that falls back to itself": (
        MODELS.replace("litellm_alias: s", "fallback: small"),
        "fleet.yaml:4: models.small.fallback: the fallbacks go round in a circle: small -> small.",
    ),
    "an unknown key at the top": (
        "nodez: {}\n",
        "fleet.yaml:1: nodez: is not a setting.\n  Did you mean 'nodes'?",
    ),
    "an unknown key in an entry": (
        "nodes:\n  n:\n    endpoint: http://h:1\n    tgas: [a]\n",
        "fleet.yaml:4: nodes.n.tgas: is not a setting.\n  Did you mean 'tags'?",
    ),
    "an unknown key like no other": (
        "run: {zzz: 1}\n",
        (
            "fleet.yaml:1: run.zzz: is not a setting.\n  It may be attempts, backoff, commit, env, gate, "
            "gate_limit, grace, mcp, stall_limit, time_limit."
        ),
    ),
    "a key that is there twice": (
        "run:\n  attempts: 1\n  grace: 1\n  attempts: 2\n",
        "fleet.yaml:4: run.attempts: is there twice; the first is on line 2.",
    ),
    "two names for one thing": (
        MODELS.replace("ollama_model: q", "ollama_model: q, upstream: r"),
        "fleet.yaml:4: models.small.upstream: means the same as line 4.",
    ),
    "the gateway in both places": (
        "project:\n  gateway: {port: 1}\ngateway: {host: a}\n",
        "fleet.yaml:3: gateway: is given here and as `project.gateway`.",
    ),
    "a node and servings": (
        MODELS + "  two: {node: mac-mini, servings: {mac-mini: q}}\n",
        "fleet.yaml:5: models.two.node: is given beside `servings`.",
    ),
    "a text where a number belongs": (
        "run: {attempts: many}\n",
        "fleet.yaml:1: run.attempts: needs a whole number from 1 to 100, not 'many'.",
    ),
    "a flag where a number belongs": (
        "run: {attempts: yes}\n",
        "fleet.yaml:1: run.attempts: needs a whole number from 1 to 100, not true.",
    ),
    "a number out of range": (
        "gateway: {port: 70000}\n",
        "fleet.yaml:1: gateway.port: needs a number from 1 to 65534, not 70000.",
    ),
    "a number that is none": (
        "run: {backoff: .nan}\n",
        "fleet.yaml:1: run.backoff: needs a number, at least 0, not 'nan'.",
    ),
    "a number where a text belongs": (
        "project: {name: 42}\n",
        "fleet.yaml:1: project.name: needs text, not '42'.\n  Put it in quotes: \"42\".",
    ),
    "YAML's no where a text belongs": (
        "team: no\n",
        'fleet.yaml:1: team: needs text, not false.\n  Put it in quotes: "false".',
    ),
    "a text where a list belongs": (
        "workspace: {setup: make}\n",
        "fleet.yaml:1: workspace.setup: needs a list, not 'make'.\n  Write [make].",
    ),
    "a wrong item in a list": (
        "workspace:\n  setup:\n    - make\n    - 7\n",
        "fleet.yaml:4: workspace.setup[1]: needs text, not '7'.",
    ),
    "an empty item in a list": (
        "workspace:\n  setup: ['']\n",
        "fleet.yaml:2: workspace.setup[0]: is empty.",
    ),
    "a list where a section belongs": (
        "nodes: [a]\n",
        "fleet.yaml:1: nodes: needs `name: value` lines.\n  " + UNNAMED,
    ),
    "a list where a section of settings belongs": (
        "workspace: [a]\n",
        "fleet.yaml:1: workspace: needs `name: value` lines.",
    ),
    "a text for the whole file": ("hello\n", "fleet.yaml:1: needs `name: value` lines."),
    "a choice that is none": (
        "coder: cluade\n",
        "fleet.yaml:1: coder: 'cluade' is not a valid value.\n  Did you mean 'claude'?",
    ),
    "an empty name": ("project:\n  name: ''\n", "fleet.yaml:2: project.name: is empty."),
    "an empty key": ("nodes:\n  '': {}\n", "fleet.yaml:2: nodes: has a key with an empty name."),
    "a name that is not safe": (
        "agents:\n  Code Review: {coder: claude}\n",
        (
            "fleet.yaml:2: agents.Code Review: 'Code Review' is not a safe name.\n"
            "  Use lowercase letters, digits, '_' and '-'."
        ),
    ),
    "a name that begins with a dash": (
        "agents:\n  -x: {coder: claude}\n",
        "fleet.yaml:2: agents.-x: '-x' is not a safe name.",
    ),
    "a name that climbs out": (
        "nodes:\n  ../x: {endpoint: http://h:1}\n",
        "fleet.yaml:2: nodes.../x: '../x' is not a safe name.",
    ),
    "a key that is a number": (
        "nodes:\n  1: {}\n",
        'fleet.yaml:2: nodes: has the key 1, not a text.\n  Put it in quotes: "1".',
    ),
    "a key that is a list": (
        "nodes:\n  ? [a, b]\n  : {}\n",
        "fleet.yaml:2: nodes: has a key that is not text.",
    ),
    "an address without http": (
        "nodes:\n  n:\n    endpoint: localhost:11434\n",
        "fleet.yaml:3: nodes.n.endpoint: 'localhost:11434' is not an http or https address.",
    ),
    "an address without a host": (
        "nodes: {n: {endpoint: 'http://:80'}}\n",
        "fleet.yaml:1: nodes.n.endpoint: 'http://:80' is not an address",
    ),
    "an address with a wrong port": (
        "nodes: {n: {endpoint: 'http://h:99999'}}\n",
        "fleet.yaml:1: nodes.n.endpoint: 'http://h:99999' is not an address",
    ),
    "a collector with a wrong port": (
        "observability: {otlp: 'http://h:otlp'}\n",
        "fleet.yaml:1: observability.otlp: 'http://h:otlp' is not an address: its host or port",
    ),
    "a collector with a password": (
        "observability: {otlp: 'http://me:secret@h:4318'}\n",
        "fleet.yaml:1: observability.otlp: holds a user or a password.",
    ),
    "an address with a blank": (
        "nodes: {n: {endpoint: 'http://h /x'}}\n",
        "fleet.yaml:1: nodes.n.endpoint: 'http://h /x' is not an address",
    ),
    "an address with a password": (
        "nodes: {n: {endpoint: 'http://me:pw@h:1'}}\n",
        "fleet.yaml:1: nodes.n.endpoint: holds a user or a password.",
    ),
    "a node without an address": (
        "nodes:\n  n: {}\n",
        "fleet.yaml:2: nodes.n: has no `endpoint`.\n  Add `endpoint: http://HOST:PORT`.",
    ),
    "a model without a node": (
        "models:\n  m: {ollama_model: q}\n",
        "fleet.yaml:2: models.m: has no `node`.",
    ),
    "a model without a name on its node": (
        NODES + "models:\n  m: {node: mac-mini}\n",
        "fleet.yaml:4: models.m: has no `upstream`.",
    ),
    "an agent without a model": (
        "agents:\n  planner: {description: d}\n",
        "fleet.yaml:2: agents.planner: has no `model`.",
    ),
    "an agent without a description": (
        MODELS + "agents:\n  planner: {model: small}\n",
        "fleet.yaml:6: agents.planner: has no `description`.",
    ),
    "a server without a command": (
        "mcp_servers:\n  s: {args: []}\n",
        "fleet.yaml:2: mcp_servers.s: has no `command`.",
    ),
    "a key written into the file": (
        "nodes: {n: {kind: openai, api_key: sk-12345}}\n",
        "fleet.yaml:1: nodes.n.api_key: needs a reference to the key, not the key itself.",
    ),
    "an amount of memory without its unit": (
        "nodes: {n: {endpoint: 'http://h:1', memory: 64}}\n",
        "fleet.yaml:1: nodes.n.memory: '64' is not an amount of memory.\n  Write 24GB, or 16000MB.",
    ),
    "a variable's name that a shell would run": (
        "gateway: {master_key_env: 'X; touch PWNED'}\n",
        "fleet.yaml:1: gateway.master_key_env: 'X; touch PWNED' is not the name of a variable.",
    ),
    "a host with a port": (
        "gateway: {host: 'localhost:4000x'}\n",
        "fleet.yaml:1: gateway.host: 'localhost:4000x' is not a host.",
    ),
    "a file outside the project": (
        "workspace:\n  credential_files: [.env, ../../.ssh/id_rsa]\n",
        "fleet.yaml:2: workspace.credential_files[1]: '../../.ssh/id_rsa' is not inside the project.",
    ),
    "an absolute file": (
        "workspace: {credential_files: [/etc/passwd]}\n",
        "fleet.yaml:1: workspace.credential_files[0]: '/etc/passwd' is not inside the project.",
    ),
    "a branch that git refuses": (
        "workspace: {branch_prefix: 'a b..'}\n",
        "fleet.yaml:1: workspace.branch_prefix: 'a b..' cannot begin a branch's name in git.",
    ),
    "a store that there is not": (
        "store: {url: 'mysql://h/d'}\n",
        "fleet.yaml:1: store.url: 'mysql://h/d' is not a store.",
    ),
    "an SQLite address with two slashes": (
        "store: {url: 'sqlite://fleet.db'}\n",
        (
            "fleet.yaml:1: store.url: the URL of a file has three slashes.\n"
            "  Write sqlite:///fleet.db."
        ),
    ),
    "a password in a project's file": (
        "store:\n  url: postgresql://me:pw@h/d\n",
        "fleet.yaml:2: store.url: holds a password, in a file that may be committed.",
    ),
    "a store in a variable that is not set": (
        "store: {url: os.environ/NOWHERE}\n",
        "the variable NOWHERE is not set.",
    ),
    "a command for a coder that has its own": (
        "agents: {x: {coder: claude, command: [a]}}\n",
        "fleet.yaml:1: agents.x.command: is only for the coders command and acp.",
    ),
    "a hosted API without a name": (
        "nodes: {n: {kind: hosted}}\n",
        "fleet.yaml:1: nodes.n: has no `provider`.",
    ),
    "broken YAML": (
        "project:\n  name: a: b\n",
        "fleet.yaml:2: is not valid YAML: mapping values are not allowed",
    ),
    "a tab": ("nodes:\n\tn: {}\n", "fleet.yaml:2: is not valid YAML:"),
    "an unclosed bracket": ("nodes: {n: [\n", "is not valid YAML:"),
    "a control character": ("team: a\x07b\n", "fleet.yaml:1: is not valid YAML:"),
    "an alias of nothing": (
        "nodes: *x\n",
        "fleet.yaml:1: is not valid YAML: found undefined alias",
    ),
    "two documents": ("team: a\n---\nteam: b\n", "is not valid YAML:"),
    "a tag": ("team: !!python/name:os.system x\n", "fleet.yaml:1: team: has the tag"),
    "a merge of something else": (
        "run:\n  <<: 3\n",
        "fleet.yaml:2: run.<<: can only merge mappings.",
    ),
    "a circle of aliases": ("nodes: &a {x: *a}\n", "is too large when its aliases are expanded"),
}


@pytest.mark.parametrize("what", WRONG)
def test_it_is_named_when_there_is(world, what):
    text, said = WRONG[what]
    world.fleet(text)
    if "variable that is not set" in what:
        world.user(text)
    assert said in world.refuse()


def test_everything_that_is_wrong_is_said_at_once_in_the_order_of_the_lines(world):
    world.user("max_concurrent: 0\n").fleet(
        "project: {name: ''}\nnodes:\n  n: {endpoint: x}\nmodels:\n  m: {node: z, upstream: q}\n"
    )
    said = world.refuse(env={"FLEET_CODER": "nobody"}, flags={"run.attempts": "0"})
    assert said.startswith("The configuration has 6 problems.\n")
    found = [line.split(": ")[0] for line in said.splitlines()[1:] if not line.startswith("  ")]
    user = f"{world.user_file}:1"
    assert found == sorted(
        [user, "FLEET_CODER", "fleet.yaml:1", "fleet.yaml:3", "fleet.yaml:5", "run.attempts"]
    )


def test_one_mistake_is_not_reported_as_two(world):
    world.fleet(
        "nodes:\n  n: {endpoint: nope}\nmodels:\n  m: {node: n, ollama_model: 7}\n"
        "agents:\n  a: {model: m, description: d}\n"
    )
    assert world.refuse().startswith("The configuration has 2 problems.\n")


def test_a_single_problem_has_its_fix_beside_it(world):
    with pytest.raises(BadConfig) as caught:
        world.fleet("nodez: {}\n").load()
    assert caught.value.message == "fleet.yaml:1: nodez: is not a setting."
    assert caught.value.fix == "Did you mean 'nodes'?"
    assert (caught.value.code, caught.value.exit_status) == ("bad_config", 2)


def test_a_directory_in_place_of_a_file(world):
    world.file.mkdir()
    assert "fleet.yaml: is a directory, not a file." in world.refuse()


def test_a_file_that_is_not_utf_8(world):
    world.file.write_bytes(b"team: ok\nproject: {name: \xff\xfe}\n")
    assert "fleet.yaml:2: is not UTF-8 text." in world.refuse()


def test_a_file_that_may_not_be_read(world):
    world.file.symlink_to(world.file)
    assert world.load().project_file is None


def test_a_config_file_that_is_not_there(world, tmp_path):
    assert "nowhere.yaml: is not there." in world.refuse(config_file=tmp_path / "nowhere.yaml")


def test_a_huge_file_is_refused_before_it_is_parsed(world):
    world.fleet("# " + "x" * 1_000_001)
    assert "fleet.yaml: is larger than a configuration can be" in world.refuse()


def test_a_small_file_that_means_a_huge_one_is_refused():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    problems = Problems()
    assert load_text("\n".join(lines), "f", problems) is None
    assert "is too large when its aliases are expanded" in problems.all[0].message


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
@pytest.mark.parametrize("times", [60, 5000, 240_000])
def test_deep_nesting_is_refused_rather_than_crashing(tmp_path, opening, times):
    (tmp_path / "fleet.yaml").write_text(opening * times)
    code = "from fleet.config import load; load(Path(), home=Path('home'), env={})"
    done = subprocess.run(
        [sys.executable, "-c", f"from pathlib import Path; {code}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "InvalidConfig: fleet.yaml:" in done.stderr.splitlines()[-1]


def test_a_long_file_is_not_taken_for_a_deep_one(world):
    entries = "".join(f"  n{i}: {{endpoint: 'http://h:1', tags: [a]}}\n" for i in range(2000))
    assert len(world.fleet(f"nodes:\n{entries}").load().fleet.nodes) == 2000


def test_a_password_in_the_users_own_file_is_his_business_and_is_not_shown(world):
    from fleet.config.commands.show import one_of

    loaded = world.user("store: {url: 'postgresql://me:pw@h/d'}\n").load()
    assert loaded.settings.store.url == "postgresql://me:pw@h/d"
    assert one_of(loaded, "store.url").text == '"postgresql://me:***@h/d"'


def test_a_variable_that_is_nearly_a_setting_is_pointed_out(world):
    warnings = world.load(env={"FLEET_MAX_CONCURENT": "5", "FLEET_TASK_ID": "t-1"}).warnings
    assert warnings == (
        "FLEET_MAX_CONCURENT: is not a setting. Did you mean 'FLEET_MAX_CONCURRENT'?",
    )
