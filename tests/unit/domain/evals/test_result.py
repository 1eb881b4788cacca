from __future__ import annotations

import json
from xml.etree import ElementTree as ET

from fleet.domain.evals.grade import Grade, ModelReply
from fleet.domain.evals.judge import Agreement, Opinion
from fleet.domain.evals.page import page
from fleet.domain.evals.result import (
    CaseResult,
    EvalResult,
    Evaluation,
    case_result,
    data_of,
    evaluation_of,
    junit,
    quality,
)

RIGHT, WRONG = Grade(1.0), Grade(0.0, "41, not 42")
REPLY = ModelReply("x", seconds=2.0, first=0.5, output_tokens=10, cost=0.01)


def row(*cases, model="heavy", node="tower", url="http://t", upstream="q"):
    return EvalResult(model, node, url, upstream, ("planner",), cases)


def made(*rows, **more):
    return Evaluation("20261118-090000-ab12", 7, "suite", "builtin", 5, "bubblewrap", rows, **more)


def case(name="review", score=1.0, why="", job="", seconds=1.0):
    return CaseResult(name, job or name, score, 1, 1, 1, seconds, why=why)


def test_a_case_passes_when_enough_of_its_items_are_right():
    good = case_result("sums", "arithmetic", 2, [RIGHT, RIGHT, WRONG], [REPLY] * 3)
    assert (good.passed, good.score, good.right) == (True, 2 / 3, 2)
    assert (good.seconds, good.first, good.output_tokens) == (6.0, 0.5, 30)
    bad = case_result("sums", "arithmetic", 3, [RIGHT, RIGHT, WRONG], [REPLY] * 3)
    assert bad.why == "2 of 3 right, 3 needed: 41, not 42"
    lost = case_result("sums", "arithmetic", 1, [RIGHT, WRONG], [REPLY], "connection refused")
    assert (lost.passed, lost.why) == (False, "connection refused")


def test_a_cost_that_one_reply_does_not_say_is_not_known():
    unknown = case_result("sums", "a", 1, [RIGHT] * 2, [REPLY, REPLY._replace(cost=None)])
    assert unknown.cost is None
    assert row(unknown, case()).cost is None


def test_what_is_kept_is_read_again_and_what_is_damaged_is_not():
    opinion = Opinion("t", "ours", "theirs", "A", "B", "ours")
    whole = made(row(case()), judge="acme/j", opinions=(opinion,), agreement=Agreement(1, 1, 1, 1))
    assert evaluation_of(json.loads(json.dumps(data_of(whole)))) == whole
    alone = made(row(case(why="no")))
    assert evaluation_of(json.loads(json.dumps(data_of(alone)))) == alone
    for damaged in ({}, {"rows": 3}, data_of(alone) | {"rows": [{"model": "x"}]}):
        assert evaluation_of(damaged) is None


def test_the_newest_result_of_each_case_counts_and_a_node_that_was_down_says_nothing():
    newest = row(case("sums", 0.5, job="arithmetic"), case("code", 0.0, "down", seconds=0.0))
    older = row(
        case("sums", 1.0, job="arithmetic"), case("code", 0.8), case("more", 0.4, job="code")
    )
    (scores,) = quality([newest, older]).values()
    assert scores == {"arithmetic": 0.5, "code": (0.8 + 0.4) / 2}
    assert quality([row(case("code", 0.0, "down", seconds=0.0))]) == {}


def test_a_ci_server_reads_the_results_whatever_a_model_wrote():
    text = junit(made(row(case("a"), case('<b> & "c"', 0.0, "\x1b[31m<no> & \ud800 ]]>"))))
    root = ET.fromstring(text.encode("utf-8", "replace"))
    (suite,) = root
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert [each.get("name") for each in suite] == ["a", '<b> & "c"']
    assert "<no> &" in suite[1][0].get("message")


def test_a_page_of_a_comparison_has_scores_reasons_and_what_the_judge_is_worth():
    ours, theirs = row(case("lru", 0.5, "1 of 2 | `x`")), row(case("lru"), model="acme/m", node="")
    opinion = Opinion("lru", ours.name, theirs.name, "B", "A", theirs.name)
    whole = made(ours, theirs, judge="acme/j", opinions=(opinion,), agreement=Agreement(1, 1, 1, 1))
    text = page(whole._replace(kind="frontier"), "Nobody else ran it.")
    assert "| heavy on tower | 50% | 0 of 1 | 0% | 1.0 s | $0.0000 |" in text
    assert "| acme/m | 100% | 1 of 1 | 100% |" in text
    assert "saw 1 pairs of answers without names, in both orders" in text
    assert "1 of 2 \\| 'x'" in text
    assert "Nobody else ran it." in text
