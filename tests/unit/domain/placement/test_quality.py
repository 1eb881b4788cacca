"""What `fleet eval` scored counts in place of a model's size, once every model was asked."""

from __future__ import annotations

from fleet.domain.evals.case import JOBS
from fleet.domain.nodes.speed import Pace
from fleet.domain.placement.candidates import AgentWish, CandidateNode, ModelOnNode, Stock
from fleet.domain.placement.recommend import recommend

FAST, SLOW = Pace(4000, 100), Pace(2000, 50)
MACHINES = {name: CandidateNode(name, 1 << 40) for name in ("laptop", "tower")}


def stock(name, node, pace, billions, score):
    scores = {} if score is None else dict.fromkeys(JOBS, score)
    spots = {node: ModelOnNode(pace, held=True)}
    return Stock(name, (node,), (name,), name, name, 8192, spots, billions=billions, quality=scores)


def advised(small, heavy, agent="implementer", now="heavy", billions=32.0):
    models = [
        stock("small", "laptop", FAST, 7.0, small),
        stock("heavy", "tower", SLOW, billions, heavy),
    ]
    return recommend(MACHINES, models, [AgentWish(agent, now)])


def model_of(advice):
    return advice.seats[0].model


def test_the_better_model_is_chosen_though_it_is_the_smaller():
    advice = advised(small=0.9, heavy=0.3)
    assert model_of(advice) == "small"
    (line,) = [line for line in advice.lines if line.path[0] == "agents"]
    assert (
        "An implementer gains most by a better model: small scores 90% at its jobs, heavy 30%"
        in (line.why)
    )
    assert advice.seats[0].quality == 0.9


def test_without_scores_of_both_the_size_counts_and_a_note_says_so():
    assert model_of(advised(small=None, heavy=None)) == "heavy"
    half = advised(small=0.9, heavy=None)
    assert model_of(half) == "heavy"
    assert any("Not evaluated in every job: heavy" in note for note in half.notes)
    assert not any("Not evaluated" in note for note in advised(small=None, heavy=None).notes)


def test_equal_scores_leave_it_to_speed():
    advice = advised(small=0.8, heavy=0.8)
    assert model_of(advice) == "small"
    (line,) = [line for line in advice.lines if line.path[0] == "agents"]
    assert "gains most by a quick answer: small scores 80%" in line.why


def test_a_planner_gives_less_for_quality_than_an_implementer():
    assert model_of(advised(small=0.5, heavy=0.9, agent="planner", now="small")) == "small"
    assert model_of(advised(small=0.5, heavy=0.9, agent="implementer", now="small")) == "heavy"


def test_a_model_whose_size_nobody_knows_can_be_compared_by_its_scores():
    assert model_of(advised(small=0.9, heavy=0.0, billions=0.0)) == "small"
    assert model_of(advised(small=None, heavy=None, billions=0.0)) == "heavy"
