import pytest

from fleet.domain.errors import NotFound
from fleet.domain.fleet import CODERS, Fleet

TWO = """\
nodes:
  big: {endpoint: http://big:1}
  small: {endpoint: http://small:1}
"""


def test_references_are_bound_to_things(world):
    world.fleet(
        TWO + "models: {m: {node: big, upstream: q}}\nagents: {a: {model: m, description: d}}\n"
    )
    agent = world.trust().load().fleet.agent("a")
    assert agent.model.servings[0].node.endpoint == "http://big:1"


def test_one_alias_and_one_upstream_model_are_servings_of_one_model_in_file_order(world):
    world.fleet(
        TWO
        + "models:\n"
        + "  b: {node: small, ollama_model: q, litellm_alias: shared, context: 100}\n"
        + "  a: {node: big, ollama_model: q, litellm_alias: shared, max_parallel: 3, context: 50}\n"
    )
    fleet = world.trust().load().fleet
    model = fleet.model("shared")
    assert fleet.model("a") is fleet.model("b") is model
    assert (model.name, model.names) == ("b", ("b", "a", "shared"))
    assert [(s.node.name, s.slots) for s in model.servings] == [("small", 1), ("big", 3)]
    assert model.context == 50
    assert world.trust().load().warnings == ()


def test_a_node_that_may_do_more_at_once_than_its_models_send_it_is_a_warning(world):
    nodes = TWO.replace("big: {", "big: {max_parallel: 4, ")
    model = "models:\n  a: {node: big, ollama_model: q"
    world.fleet(nodes + model + "}\n")
    (warning,) = world.trust().load().warnings
    assert warning.endswith(
        "nodes.big.max_parallel: is 4, but models.a may send it only 1 at once: give them `max_parallel`, too."
    )
    world.fleet(nodes + model + ", max_parallel: 4}\n")
    assert world.trust().load().warnings == ()
    world.fleet(nodes + "models:\n  b: {node: small, ollama_model: q}\n")
    assert world.trust().load().warnings == ()


def test_one_alias_for_different_models_is_a_warning_and_the_first_answers(world):
    world.fleet(
        TWO
        + "models:\n"
        + "  a: {node: big, ollama_model: q, litellm_alias: shared}\n"
        + "  b: {node: big, ollama_model: r, litellm_alias: shared}\n"
    )
    loaded = world.trust().load()
    assert loaded.fleet.model("shared").name == "a"
    assert loaded.warnings == (
        (
            "fleet.yaml:6: models.b.alias: 'shared' is also the alias of 'a', which serves another "
            "model; a request for 'shared' goes to 'a'."
        ),
    )


def test_an_alias_that_is_another_models_name_is_a_warning(world):
    world.fleet(
        TWO + "models:\n  a: {node: big, upstream: q, alias: b}\n  b: {node: big, upstream: r}\n"
    )
    loaded = world.trust().load()
    assert loaded.fleet.model("b").servings[0].upstream == "r"
    assert (
        "fleet.yaml:5: models.a.alias: 'b' is also the name of the model 'b'" in loaded.warnings[0]
    )


def test_fallbacks_are_models_named_by_key_or_alias(world):
    world.fleet(
        TWO
        + "models:\n"
        + "  heavy: {node: big, upstream: q, fallbacks: [light, tiny]}\n"
        + "  light: {node: small, upstream: r, fallback: tiny}\n"
        + "  least: {node: small, upstream: s, alias: tiny}\n"
    )
    heavy = world.trust().load().fleet.model("heavy")
    assert [model.name for model in heavy.fallbacks] == ["light", "least"]
    assert [model.name for model in heavy.fallbacks[0].fallbacks] == ["least"]


def test_a_fallback_to_another_serving_of_the_same_model_adds_nothing(world):
    world.fleet(
        TWO
        + "models:\n"
        + "  a: {node: big, upstream: q, alias: s, fallbacks: [b]}\n"
        + "  b: {node: small, upstream: q, alias: s}\n"
    )
    model = world.trust().load().fleet.model("s")
    assert (len(model.servings), model.fallbacks) == (2, ())


@pytest.mark.parametrize("name", CODERS)
def test_every_coders_name_is_an_agent(world, name):
    for fleet in (Fleet(), world.trust().load().fleet):
        agent = fleet.agent(name)
        assert (agent.name, agent.coder, agent.model, agent.model_name) == (name, name, None, "")


def test_an_unknown_agent_is_refused_with_the_nearest(world):
    world.fleet("agents: {reviewer: {coder: claude}}\n")
    with pytest.raises(NotFound) as caught:
        world.trust().load().fleet.agent("reviwer")
    assert (caught.value.message, caught.value.fix) == (
        "There is no agent 'reviwer'.",
        "Did you mean 'reviewer'?",
    )


def test_the_model_setting_is_for_the_default_coder_only(world):
    world.user("coder: codex\nmodel: o3\n")
    fleet = world.trust().load().fleet
    assert fleet.agent("codex").model_name == "o3"
    assert fleet.agent("claude").model_name == ""


def test_the_model_setting_may_name_a_declared_model(world):
    world.user("model: m\n").fleet(TWO + "models: {m: {node: big, upstream: q}}\n")
    assert world.trust().load().fleet.agent("claude").model.servings[0].upstream == "q"


def test_a_declared_agent_may_change_a_coders_defaults(world):
    world.user("agents: {claude: {permissions: read, extra_args: [--verbose]}}\n")
    agent = world.trust().load().fleet.agent("claude")
    assert (agent.coder, agent.permissions, agent.extra_args) == ("claude", "read", ("--verbose",))


def test_an_agent_without_a_coder_has_the_default_one(world):
    world.user("coder: opencode\n").fleet(
        TWO + "models: {m: {node: big, upstream: q}}\nagents: {a: {model: m, description: d}}\n"
    )
    assert world.trust().load().fleet.agent("a").coder == "opencode"


def test_an_agent_with_a_coder_may_name_a_model_that_the_coder_knows(world):
    world.fleet("agents: {a: {coder: claude, model: opus}}\n")
    loaded = world.trust().load()
    assert (loaded.fleet.agent("a").model, loaded.fleet.agent("a").model_name) == (None, "opus")
    assert loaded.warnings == ()


def test_a_models_name_that_is_nearly_a_declared_one_is_a_warning(world):
    world.fleet(
        TWO + "models: {heavy-coder: {node: big, upstream: q}}\n"
        "agents: {a: {coder: claude, model: hevy-coder}}\n"
    )
    assert "Did you mean 'heavy-coder'?" in world.trust().load().warnings[0]


def test_an_agent_without_a_prompt_gets_one_about_its_role(world):
    world.fleet("agents: {reviewer: {coder: claude, description: Review the diff.}}\n")
    prompt = world.trust().load().fleet.agent("reviewer").prompt
    assert "reviewer" in prompt
    assert "Review the diff." in prompt
    assert "None" not in prompt


HOSTED = {
    "openai": ("https://api.openai.com/v1", "os.environ/OPENAI_API_KEY"),
    "openrouter": ("https://openrouter.ai/api/v1", "os.environ/OPENROUTER_API_KEY"),
    "anthropic": ("https://api.anthropic.com", "os.environ/ANTHROPIC_API_KEY"),
}


@pytest.mark.parametrize("kind", HOSTED)
def test_a_hosted_api_has_an_address_and_a_key_of_its_own(world, kind):
    node = world.fleet(f"nodes: {{n: {{kind: {kind}}}}}\n").trust().load().fleet.nodes["n"]
    assert (node.endpoint, node.api_key) == HOSTED[kind]


def test_a_hosted_apis_key_is_not_sent_to_another_address(world):
    world.fleet("nodes: {n: {kind: openai, endpoint: 'https://elsewhere.example'}}\n")
    assert world.trust().load().fleet.nodes["n"].api_key == ""


OLDER = {
    "provider: ollama, endpoint: 'http://h:1'": ("ollama", ""),
    "provider: lm-studio, endpoint: 'http://h:1'": ("lmstudio", ""),
    "provider: llama.cpp, endpoint: 'http://h:1'": ("llamacpp", ""),
    "provider: something, endpoint: 'http://h:1'": ("openai", ""),
    "cloud_provider: anthropic": ("anthropic", ""),
    "cloud_provider: OpenRouter": ("openrouter", ""),
    "cloud_provider: gemini": ("hosted", "gemini"),
}


@pytest.mark.parametrize("written", OLDER)
def test_older_files_name_the_kind_by_its_provider(world, written):
    node = world.fleet(f"nodes: {{n: {{{written}}}}}\n").trust().load().fleet.nodes["n"]
    assert (node.kind, node.provider) == OLDER[written]


def test_a_trailing_slash_is_no_part_of_an_address(world):
    world.fleet("nodes: {n: {endpoint: 'http://h:1/'}}\n")
    assert world.trust().load().fleet.nodes["n"].endpoint == "http://h:1"


@pytest.mark.parametrize(
    "address",
    ["http://[::1]:11434", "http://mac-mini.local:1", "https://gpu_box", "http://10.0.0.1"],
)
def test_addresses_of_many_shapes_are_taken(world, address):
    world.fleet(f"nodes: {{n: {{endpoint: '{address}'}}}}\n")
    assert world.trust().load().fleet.nodes["n"].endpoint == address


def test_weights_and_limits_are_bound(world):
    world.fleet(
        "nodes: {n: {endpoint: 'http://127.0.0.1:1', weight: 2.5}}\n"
        "models: {m: {node: n, upstream: u}}\n"
        "agents: {a: {coder: claude, model: m, max_requests: 2}}\n"
    )
    fleet = world.load().fleet
    assert (fleet.nodes["n"].weight, fleet.agents["a"].max_requests) == (2.5, 2)
    assert "from 0.01 to 100" in world.fleet("nodes: {n: {weight: 0}}\n").refuse()


def test_a_fallback_with_a_smaller_context_is_a_warning_with_both_numbers(world):
    world.fleet(
        "nodes: {n: {endpoint: 'http://127.0.0.1:1'}}\n"
        "models:\n"
        "  heavy: {node: n, upstream: q, context: 65536, fallbacks: [light]}\n"
        "  light: {node: n, upstream: r, context: 32768}\n"
    )
    (warning,) = world.load().warnings
    assert "models.heavy.fallbacks" in warning
    assert "32768" in warning
    assert "65536" in warning
    world.fleet(world.file.read_text().replace("32768", "65536"))
    assert world.load().warnings == ()
