from __future__ import annotations

from fleet.domain.access import Role
from fleet.domain.errors import NotFound
from fleet.operations.compute.evals import ListEvals, ShowEval
from tests.unit.operations.samples import SAMPLES


def test_a_monitor_sees_which_models_did_their_jobs_and_why_not(office):
    request = SAMPLES["eval.show"](office, "")
    monitor = office.person(Role.MONITOR)
    (row,) = office.call(ListEvals(), monitor)
    assert (row.models, row.cases, row.passed) == (("heavy on big",), 1, 0)
    (model,) = office.call(request, monitor).models
    assert (model.model, model.node, model.score, model.preferred) == ("heavy", "big", 0.5, None)
    (case,) = model.cases
    assert (case.right, case.items, case.cost, case.why) == (1, 2, None, "1 of 2 right")


def test_an_eval_that_is_not_there_says_where_they_are_listed(office):
    assert "fleet evals" in office.refused(ShowEval("none"), kind=NotFound).fix
