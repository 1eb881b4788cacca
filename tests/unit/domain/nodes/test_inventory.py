import pytest

from fleet.domain.fleet import Fleet, Model, Node, Serving
from fleet.domain.nodes.inventory import (
    Inventory,
    NodeModel,
    Resident,
    SeenNode,
    absent,
    cache_bytes,
    holds,
    learned,
    memory,
    resident,
    shape_of,
)

MIB = 1 << 20


def info(arch="qwen2", **keys):
    return {"general.architecture": arch} | {
        f"{arch}.{name.replace('__', '.')}": value for name, value in keys.items()
    }


def qwen(layers, kv_heads, embedding=3584, heads=28):
    return shape_of(
        info(
            block_count=layers,
            embedding_length=embedding,
            attention__head_count=heads,
            attention__head_count_kv=kv_heads,
        )
    )


@pytest.mark.parametrize(
    ("shape", "context", "expected"),
    [
        (qwen(30, 3, 576, 9), 2048, 45 * MIB),  # SmolLM2-135M: what llama.cpp itself reports
        (qwen(28, 4), 32_768, 1792 * MIB),  # qwen2.5-coder:7b
        (qwen(64, 8, 5120, 40), 32_768, 8192 * MIB),  # qwen2.5-coder:32b
    ],
)
def test_the_cache_takes_what_the_programs_report(shape, context, expected):
    assert cache_bytes(shape, context) == expected


def test_the_cache_grows_with_requests_at_once_and_shrinks_with_smaller_numbers():
    shape = qwen(28, 4)
    assert cache_bytes(shape, 8192, parallel=4) == 4 * cache_bytes(shape, 8192)
    assert cache_bytes(shape, 8192, kv="q8_0") == cache_bytes(shape, 8192) // 2


def test_layers_that_look_at_a_window_do_not_grow_with_the_context():
    keys = {"block_count": 6, "embedding_length": 640, "attention__head_count": 5}
    keys |= {"attention__head_count_kv": 1, "attention__sliding_window": 1024}
    shape = shape_of(info("gemma3", **keys))
    each = (128 + 128) * 2
    assert cache_bytes(shape, 32_768) == (5 * (1024 + 512) + 32_768) * each
    assert cache_bytes(shape, 1024) == 6 * 1024 * each  # a window is never more than the context


def test_a_recurrent_layer_takes_the_same_at_any_context():
    keys = {"block_count": 2, "embedding_length": 256, "attention__head_count": 2}
    keys |= {"attention__head_count_kv": [0, 1], "ssm__conv_kernel": 4, "ssm__inner_size": 512}
    shape = shape_of(info("mamba", **keys, ssm__state_size=16, ssm__group_count=1))
    recurrent = (3 * (512 + 2 * 16) + 16 * 512) * 4
    assert cache_bytes(shape, 1000) == recurrent + 1000 * 256 * 2
    assert cache_bytes(shape, 2000) - cache_bytes(shape, 1000) == 1000 * 256 * 2


def test_what_a_model_needs_is_told_part_by_part():
    needs = memory(4_700_000_000, qwen(28, 4), 32_768)
    assert needs.weights == 4_700_000_000
    assert needs.cache == 1792 * MIB
    assert needs.graph == 4 * 512 * (1 + 2 * 3584 + 32_768 + 32_768 * 28)
    assert needs.total == sum(needs)


@pytest.mark.parametrize("said", [{}, {"general.architecture": "x"}, info(block_count="many")])
def test_a_node_that_says_too_little_gives_no_shape(said):
    assert shape_of(said) is None


@pytest.mark.parametrize("said", [float("inf"), float("nan"), -1, 10**12, "32", None, [None, "x"]])
def test_what_can_be_no_count_of_a_model_is_not_counted(said):
    keys = ("block_count", "attention.head_count", "attention.head_count_kv", "embedding_length")
    assert shape_of({"general.architecture": "x", **{f"x.{key}": said for key in keys}}) is None
    usual = {"x.block_count": 2, "x.attention.head_count": 4, "x.embedding_length": 64}
    odd = {"general.architecture": "x", **usual, "x.attention.head_count_kv": said}
    assert sum(shape_of(odd).kv_heads) == 0


def test_the_memory_of_a_resident_model_teaches_what_a_token_takes():
    held = NodeModel("qwen:7b", 4_000_000_000)
    assert learned(held, Resident("qwen:7b", 4_057_344_000, context=1000)) == 57_344
    assert learned(held, Resident("qwen:7b", 3_000_000_000, context=1000)) is None
    assert learned(held, Resident("qwen:7b", 5_000_000_000)) is None


def test_the_newest_of_a_model_is_meant_when_no_other_is_named():
    found = Inventory("ollama", (NodeModel("qwen:latest"),), (Resident("llama"),))
    assert holds(found, "qwen")
    assert not holds(found, "qwen:7b")
    assert resident(found, "llama:latest") == Resident("llama")
    assert resident(found, "qwen") is None


def test_a_model_is_missed_only_on_a_node_that_answered():
    here, away = Node("here", "ollama", "http://a"), Node("away", "ollama", "http://b")
    servings = tuple(Serving(node, "qwen:7b", 8192, 60, 1) for node in (here, away))
    model = Model("coder", "claude-haiku-local", servings)
    fleet = Fleet(models={"coder": model, "other-key": model})
    up = SeenNode("here", up=True, inventory=Inventory("ollama", (NodeModel("llama:3b"),)))
    seen = [up, SeenNode("away", up=False, why="connection refused")]
    assert absent(fleet, seen) == [("coder", servings[0])]
