from __future__ import annotations

import pytest

from fleet.domain.access import Actor, Role
from fleet.domain.causes import CauseRules, Declared, Effects, decide
from fleet.domain.choice import Defaults, choose, model_slots
from fleet.domain.errors import Forbidden, Refused
from fleet.domain.fleet import Agent, Fleet, Model, Node, Serving
from fleet.domain.routes import RouteRule, Traits, matches, mentioned, route_of, takes_all_of
from fleet.domain.task import Spec

ANN = Actor("ann", Role.TEAM_LEAD, "red", remote=True)


@pytest.mark.parametrize(
    ("route", "title", "labels", "expected"),
    [
        (RouteRule("r"), "Anything", (), True),
        (RouteRule("r", labels=("docs", "typo")), "x", ("Docs",), True),
        (RouteRule("r", labels=("docs",)), "x", ("doc",), False),
        (RouteRule("r", words=("test",)), "Run the latest", (), False),
        (RouteRule("r", words=("test",)), "Test, please", (), True),
        (RouteRule("r", words=("code review",)), "A code\n  review of it", (), True),
        (RouteRule("r", files=("*.sql",)), "Speed up db/slow/orders.sql.", (), True),
        (RouteRule("r", files=("docs/*",)), "Mend docs/guide/start.md", (), True),
        (RouteRule("r", files=("docs/*",)), "Mend src/docs/start.md", (), False),
        (RouteRule("r", files=("**/docs/*",)), "Mend src/docs/start.md", (), True),
        (RouteRule("r", files=("*.sql",)), "Explain SQL", (), False),
        (RouteRule("r", longer_than=4), "four", (), False),
        (RouteRule("r", longer_than=3), "four", (), True),
        (RouteRule("r", shorter_than=5), "four", (), True),
        (RouteRule("r", labels=("docs",), words=("guide",)), "Guide", (), False),
        (RouteRule("r", labels=("docs",), words=("guide",)), "Guide", ("docs",), True),
    ],
)
def test_a_rule_matches_when_every_condition_holds(route, title, labels, expected):
    assert matches(route, Traits(title, "", labels)) is expected


def test_files_are_found_in_prose():
    text = "In `src/app.py` and README.md, see docs/, not e.g. http://x.org/y or version 1.2."
    assert {"src/app.py", "README.md", "docs/"} <= mentioned(text)


@pytest.mark.parametrize(
    ("earlier", "later", "expected"),
    [
        (RouteRule("a"), RouteRule("b", labels=("x",)), True),
        (RouteRule("a", labels=("x",)), RouteRule("b"), False),
        (RouteRule("a", labels=("x", "y")), RouteRule("b", labels=("y",), words=("w",)), True),
        (RouteRule("a", labels=("x",)), RouteRule("b", labels=("x", "y")), False),
        (RouteRule("a", longer_than=100), RouteRule("b", longer_than=200), True),
        (RouteRule("a", shorter_than=100), RouteRule("b", shorter_than=200), False),
        (RouteRule("a", files=("**",)), RouteRule("b", files=("*.py",)), True),
    ],
)
def test_a_rule_that_an_earlier_one_takes_everything_from_is_known(earlier, later, expected):
    assert takes_all_of(earlier, later) is expected


FLEET = Fleet(
    agents={"writer": Agent("writer", "claude"), "robot": Agent("robot", "scripted")},
    routes=(
        RouteRule("docs", agent="writer", labels=("docs",)),
        RouteRule("scripts", agent="robot", words=("script",)),
        RouteRule("rest", model="opus"),
    ),
)
DEFAULTS = Defaults("claude", "sonnet")


def choice(spec, title=""):
    route = route_of(spec, FLEET, Traits(title, "", spec.labels))
    return choose(spec, FLEET, DEFAULTS, route)[1]


def test_the_first_rule_that_matches_chooses_and_is_named():
    picked = choice(Spec(labels=("docs",)), "Write a script")
    assert (picked.agent, picked.route) == ("writer", "docs")
    assert (choice(Spec()).agent, choice(Spec()).model, choice(Spec()).route) == (
        "claude",
        "opus",
        "rest",
    )


@pytest.mark.parametrize("given", [{"agent": "robot"}, {"coder": "codex"}, {"model": "haiku"}])
def test_what_a_task_names_itself_outranks_every_rule(given):
    picked = choice(Spec(labels=("docs",), **given))
    assert picked.route == ""
    assert {name: getattr(picked, name) for name in given} == given


def test_a_rule_gives_no_task_to_an_agent_that_its_asker_may_not_cause():
    rules = CauseRules(lambda: 3, lambda _: True, lambda: Declared(FLEET, "claude"))
    decide(ANN, Effects(Spec(labels=("docs",)), traits=Traits(labels=("docs",))), rules)
    with pytest.raises(Forbidden, match="executes its prompt as a program"):
        decide(ANN, Effects(Spec(), traits=Traits("Write a script")), rules)


def serving(name, *tags):
    return Serving(Node(name, "ollama", f"http://{name}", tags=tags), "m", 8192, 300.0, 1)


def test_the_tags_that_an_agent_needs_choose_the_nodes_of_whatever_model_a_task_names():
    whole = Model("m", "m", (serving("a"), serving("b", "gpu")))
    narrow = Model("m+gpu", "m+gpu", (serving("b", "gpu"),), of="m", needs=("gpu",))
    plain = Model("n", "n", (serving("a"),))
    agent = Agent("coder", "claude", narrow, "m+gpu", needs=("gpu",))
    fleet = Fleet(models={m.name: m for m in (whole, narrow, plain)}, agents={"coder": agent})
    for spec in (Spec(agent="coder"), Spec(agent="coder", model="m")):
        picked = choose(spec, fleet, DEFAULTS)[1]
        assert [slot.node for slot in model_slots(picked, fleet)] == ["b"]
    with pytest.raises(Refused, match="No node that serves 'n' has all the tags gpu"):
        choose(Spec(agent="coder", model="n"), fleet, DEFAULTS)
