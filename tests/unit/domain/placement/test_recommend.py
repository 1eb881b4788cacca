from fleet.domain.nodes.speed import Pace
from fleet.domain.placement.candidates import (
    AgentWish,
    CandidateNode,
    ModelOnNode,
    SettingChange,
    Stock,
)
from fleet.domain.placement.recommend import recommend

GB = 1 << 30
FAST, SLOW = Pace(4000, 100), Pace(400, 10)  # a turn of 5 s, and one of 50 s
UPSTREAM = {"small": "qwen:7b", "heavy": "qwen:32b"}


def needs(weights, per_1k=0.0):
    return lambda context: int((weights + per_1k * context / 1024) * GB)


def stock(name, *nodes, spots, gigabytes=0.0, per_1k=0.0, **more):
    usual = {"keys": (name,) if len(nodes) == 1 else (), "context": 8192}
    usual |= {"needs": needs(gigabytes, per_1k) if gigabytes else None}
    usual |= {"billions": {"small": 7.0, "heavy": 32.0}.get(name, 3.0)}
    return Stock(
        name=name, nodes=nodes, upstream=UPSTREAM.get(name, name), alias=name, spots=spots,
        **(usual | more),
    )  # fmt: skip


def machines(**memory):
    return {name: CandidateNode(name, int(size * GB)) for name, size in memory.items()}


def changes(advice):
    return {".".join(line.path): line.value for line in advice.lines}


def reason(advice, path):
    return next(line.why for line in advice.lines if ".".join(line.path) == path)


def two(**more):
    """A small model on the laptop, a heavy one on the mini: each where it belongs."""
    small = stock("small", "laptop", spots={"laptop": ModelOnNode(FAST, held=True)}, gigabytes=5)
    heavy = stock(
        "heavy", "mini", spots={"mini": ModelOnNode(SLOW, held=True)}, gigabytes=20, **more
    )
    return [small, heavy]


def test_who_plans_gets_the_quick_model_and_who_writes_the_large_one():
    wishes = [
        AgentWish("planner", "heavy"),
        AgentWish("implementer", "small"),
        AgentWish("reviewer", "heavy"),
    ]
    slower = Pace(1000, 25)  # 20 s: four times as slow, four and a half as large
    models = two()
    models[1] = models[1]._replace(spots={"mini": ModelOnNode(slower, held=True)})
    advice = recommend(machines(laptop=6, mini=24), models, wishes)
    found = changes(advice)
    assert found["agents.planner.model"] == "small"
    assert found["agents.implementer.model"] == "heavy"
    assert "agents.reviewer.model" not in found
    assert reason(advice, "agents.planner.model") == (
        "A planner gains most by a quick answer: a turn takes 5 s with small on laptop, "
        "20 s with heavy on mini."
    )
    assert "32 billion parameters against 7" in reason(advice, "agents.implementer.model")


def test_a_large_model_that_is_far_too_slow_is_not_worth_it():
    crawling = Pace(40, 1)
    models = two()
    models[1] = models[1]._replace(spots={"mini": ModelOnNode(crawling, held=True)})
    advice = recommend(machines(laptop=6, mini=24), models, [AgentWish("implementer", "heavy")])
    assert changes(advice)["agents.implementer.model"] == "small"


def test_a_small_gain_changes_nothing():
    spots = {
        "a": ModelOnNode(Pace(1000, 100), held=True),
        "b": ModelOnNode(Pace(1100, 105), held=True),
    }
    model = stock("small", "a", spots=spots, gigabytes=5, fallbacks=("other",))
    advice = recommend(machines(a=6, b=6), [model], [])
    assert advice.lines == ()


def test_a_model_moves_to_the_node_that_is_faster_at_it():
    spots = {"a": ModelOnNode(SLOW, held=True), "b": ModelOnNode(FAST, held=True)}
    advice = recommend(machines(a=6, b=6), [stock("small", "a", spots=spots, gigabytes=5)], [])
    assert changes(advice) == {"models.small.node": "b"}
    assert reason(advice, "models.small.node") == (
        "A turn takes 5 s on b, and 50 s on a; b has room for it (6.0 GB)."
    )


def test_nobody_moves_for_a_speed_that_is_only_guessed():
    spots = {"a": ModelOnNode(SLOW, held=True), "b": ModelOnNode(FAST, held=True, guessed=True)}
    advice = recommend(machines(a=6, b=6), [stock("small", "a", spots=spots, gigabytes=5)], [])
    assert advice.lines == ()


def test_a_faster_node_without_room_for_the_context_is_no_choice():
    spots = {"a": ModelOnNode(SLOW, held=True), "b": ModelOnNode(FAST, held=True)}
    model = stock("small", "a", spots=spots, gigabytes=5, per_1k=0.25)  # 7 GB with its context
    assert recommend(machines(a=8, b=6), [model], []).lines == ()


def test_a_model_that_does_not_fit_moves_to_where_it_does_although_that_is_slower():
    spots = {"a": ModelOnNode(FAST, held=True), "b": ModelOnNode(SLOW)}
    advice = recommend(machines(a=6, b=32), [stock("heavy", "a", spots=spots, gigabytes=20)], [])
    assert changes(advice) == {"models.heavy.node": "b"}
    said = reason(advice, "models.heavy.node")
    assert "needs 20.0 GB with its context, which a (6.0 GB) does not have" in said
    assert "`ollama pull qwen:32b` there" in said


def test_models_that_fit_alone_but_not_together_are_parted():
    spots = {"a": ModelOnNode(FAST, held=True), "b": ModelOnNode(SLOW, held=True)}
    both = [stock(name, "a", spots=spots, gigabytes=5) for name in ("one", "two")]
    advice = recommend(machines(a=8, b=8), both, [])
    assert len(advice.lines) == 1
    assert "beside its other models (5.0 GB)" in advice.lines[0].why


def test_a_model_that_fits_nowhere_gets_the_context_with_which_it_does():
    model = stock(
        "small",
        "a",
        spots={"a": ModelOnNode(FAST, held=True)},
        gigabytes=5,
        per_1k=0.25,
        context=32_768,
    )
    advice = recommend(machines(a=8), [model], [])
    assert changes(advice) == {"models.small.context": 8192}
    assert reason(advice, "models.small.context") == (
        "small needs 13.0 GB with a context of 32768, and a has 8.0 GB; with 8192 it needs 7.0 GB."
    )


def test_a_model_that_is_too_large_whatever_its_context_is_named_and_spoils_nothing_else():
    spots = {"a": ModelOnNode(SLOW, held=True), "b": ModelOnNode(FAST, held=True)}
    large = stock("large", "a", spots=spots, gigabytes=40)
    advice = recommend(
        machines(a=8, b=8), [large, stock("small", "a", spots=spots, gigabytes=5)], []
    )
    assert changes(advice) == {"models.small.node": "b"}
    assert any("large needs 40.0 GB" in note for note in advice.notes)


def test_a_second_copy_stands_where_there_is_room_as_an_entry_of_its_own():
    spots = {"a": ModelOnNode(FAST, held=True), "b": ModelOnNode(SLOW, held=True)}
    model = stock("small", "a", spots=spots, gigabytes=5, rest=(("timeout", 60),))
    advice = recommend(machines(a=6, b=6), [model], [AgentWish("planner", "small")])
    assert changes(advice) == {
        "models.small-b.node": "b",
        "models.small-b.upstream": "qwen:7b",
        "models.small-b.alias": "small",
        "models.small-b.context": 8192,
        "models.small-b.timeout": 60,
    }
    assert all(line.why for line in advice.lines)
    assert "Only a serves small" in reason(advice, "models.small-b.node")


def test_a_model_that_is_written_with_servings_gets_one_more():
    spots = {"a": ModelOnNode(FAST, held=True), "b": ModelOnNode(SLOW, held=True)}
    model = stock("small", "a", spots=spots, gigabytes=5, keys=())
    advice = recommend(machines(a=6, b=6), [model], [AgentWish("planner", "small")])
    assert changes(advice) == {"models.small.servings.b": "qwen:7b"}


def test_where_no_copy_fits_another_model_answers_and_never_in_a_circle():
    wishes = [
        AgentWish("planner", "small"),
        AgentWish("implementer", "heavy"),
        AgentWish("reviewer", "heavy"),
    ]
    small, heavy = two()
    advice = recommend(machines(laptop=6, mini=21), [small, heavy], wishes)
    assert changes(advice) == {"models.heavy.fallbacks": ("small",)}
    assert any("Only laptop serves small" in note for note in advice.notes)


def test_nothing_goes_to_a_node_that_did_not_answer_and_it_is_named():
    spots = {"a": ModelOnNode(SLOW, held=True), "b": ModelOnNode(FAST, held=True)}
    world = machines(a=6, b=6)
    world["b"] = world["b"]._replace(up=False)
    other = stock("other", "b", spots=spots, gigabytes=1)
    advice = recommend(world, [stock("small", "a", spots=spots, gigabytes=5), other], [])
    assert advice.lines == ()
    assert "b did not answer, so nothing is moved there." in advice.notes


def test_nobody_falls_back_to_a_node_that_did_not_answer():
    small, heavy = two()
    world = machines(laptop=6, mini=21)
    world["laptop"] = world["laptop"]._replace(up=False)
    advice = recommend(world, [small, heavy], [AgentWish("implementer", "heavy")])
    assert advice.lines == ()
    assert any("Only mini serves heavy" in note for note in advice.notes)


def test_without_memory_and_speed_it_says_what_is_not_known():
    model = stock("small", "a", spots={"a": ModelOnNode(held=True)})
    advice = recommend(machines(a=0), [model], [AgentWish("planner", "small")])
    assert advice.lines == ()
    assert any("The memory of a is not known" in note for note in advice.notes)
    assert "Not measured: small on a. `fleet benchmark` does it." in advice.notes


def test_an_agent_that_calls_tools_leaves_a_model_that_cannot():
    wishes = [AgentWish("planner", "small")]
    small, heavy = two(tools=True)
    models = [small._replace(tools=False), heavy]
    found = changes(recommend(machines(laptop=6, mini=21), models, wishes))
    assert found["agents.planner.model"] == "heavy"
    assert "agents.planner.model" not in changes(
        recommend(machines(laptop=6, mini=21), models, [wishes[0]._replace(tools=False)])
    )


def test_an_agent_is_not_given_a_context_too_small_for_its_program():
    small, heavy = two(context=32_768)
    advice = recommend(
        machines(laptop=6, mini=24), [small, heavy], [AgentWish("planner", "heavy", least=24_000)]
    )
    assert "agents.planner.model" not in changes(advice)
    assert any("small would be better for planner" in note for note in advice.notes)


def test_the_best_of_several_entries_goes_first():
    spots = {"a": ModelOnNode(SLOW, held=True), "b": ModelOnNode(FAST, held=True)}
    model = stock("small", "a", "b", spots=spots, gigabytes=5, keys=("small", "also"))
    advice = recommend(machines(a=6, b=6), [model], [])
    assert changes(advice) == {"models.small.node": "b", "models.also.node": "a"}


def test_a_model_that_another_file_declares_is_left_as_it_is():
    spots = {"a": ModelOnNode(FAST, held=True), "b": ModelOnNode(FAST, held=True)}
    model = stock("small", "a", spots=spots, gigabytes=5, keys=(), fixed=True)
    assert recommend(machines(a=6, b=6), [model], [AgentWish("planner", "small")]).lines == ()


def test_ten_nodes_and_ten_models_are_placed_so_that_all_fits():
    names = [f"n{number}" for number in range(10)]
    world = machines(**dict.fromkeys(names, 8.0))
    spots = {
        name: ModelOnNode(Pace(100.0 * (n + 1), 10.0 * (n + 1)), held=True)
        for n, name in enumerate(names)
    }
    models = [stock(f"m{n}", "n0", spots=spots, gigabytes=5) for n in range(10)]
    advice = recommend(world, models, [])
    assert all(each.needed <= each.memory for each in advice.fillings)
    assert sorted(node for each in advice.fillings for node in each.models) == sorted(
        model.name for model in models
    )
    assert all(isinstance(line, SettingChange) and line.why for line in advice.lines)
