"""One name, one task: by id, run, branch or the end of a branch."""

from dataclasses import replace

import pytest

from fleet.domain.access import Permission, Role
from fleet.domain.errors import BadInput, Forbidden, NotFound
from fleet.domain.run import Workspace
from fleet.operations.shared.branch_names import branch_of, letters, resolve
from fleet.ports import Put


def at(office, task, branch):
    """The task has run on this branch."""
    run = office.store.run(office.finish(task))
    place = Workspace("/w", "/w", branch, "base", made=True)
    office.store.commit([Put(replace(run, workspace=place))], [])
    return task


def branched(office, branch, **given):
    task = office.add(**given)
    spec = replace(office.store.task(task).spec, branch=branch)
    office.put(task, spec=spec)
    return task


def found(office, name, **given):
    return resolve(office.context(), name, **given).id


def test_a_task_is_found_by_its_id_its_number_and_its_run(office):
    task = office.add()
    run = office.start(task)
    assert {found(office, n) for n in (task, task.removeprefix("t-"), run, f" {task} ")} == {task}


def test_a_task_is_found_by_its_branch(office):
    task = branched(office, "fix/login")
    branched(office, "fix/login-page")
    assert found(office, "fix/login") == task


def test_a_branch_that_we_named_is_found_too(office):
    one, two = at(office, office.add(), "fleet/t-1"), at(office, office.add(), "fleet/t-2-a2")
    assert (found(office, "fleet/t-1"), found(office, "fleet/t-2-a2")) == (one, two)


def test_the_one_that_got_the_branch_is_meant_not_the_one_that_asked(office):
    first, second = branched(office, "fix"), branched(office, "fix")
    for task, branch in ((first, "fix"), (second, "fix-2")):
        at(office, task, branch)
        office.put(task, state="open")
    assert (found(office, "fix"), found(office, "fix-2")) == (first, second)
    assert branch_of(office.context(), office.store.task(second)) == "fix-2"


def test_the_end_of_a_branch_is_enough_when_only_one_has_it(office):
    task = branched(office, "feature/fix-login")
    branched(office, "feature/other")
    assert found(office, "fix-login") == found(office, "login") == task
    with pytest.raises(NotFound):
        found(office, "gin")


def test_several_candidates_are_listed(office):
    tasks = [branched(office, f"{kind}/login") for kind in ("fix", "try")]
    with pytest.raises(BadInput) as caught:
        found(office, "login")
    assert caught.value.code == "ambiguous"
    assert caught.value.exit_status == 2
    assert all(f"{t} (" in caught.value.message for t in tasks)
    assert "fix/login" in caught.value.message


def test_one_that_goes_on_is_preferred_to_those_that_ended(office):
    old = branched(office, "fix")
    office.finish(old)
    assert found(office, "fix") == old
    new = branched(office, "fix")
    assert found(office, "fix") == new
    office.finish(new)
    assert found(office, "fix") == new


def test_a_branch_of_two_projects_is_meant_in_ones_own(office):
    tasks = {p: branched(office, "fix", project=p) for p in ("/a", "/b")}
    assert {p: found(office, "fix", project=p) for p in tasks} == tasks
    with pytest.raises(BadInput, match="could mean 2 tasks"):
        found(office, "fix")


def test_the_older_name_of_the_second_of_a_batch_is_understood(office):
    tasks = [branched(office, f"fix-{letters(n)}") for n in (1, 2, 3)]
    assert [found(office, f"fix-A{n}") for n in (1, 2, 3)] == tasks
    assert found(office, "B") == tasks[1]


def test_letters_go_on_after_z():
    assert [letters(n) for n in (1, 26, 27, 52, 53, 702, 703)] == [
        *("A", "Z", "AA", "AZ", "BA", "ZZ", "AAA"),
    ]


@pytest.mark.parametrize("name", ["fix", "fix*", "fix[", "t-99", "x" * 500, "../..", "-A1", "A"])
def test_a_name_that_nothing_has_is_not_found(office, name):
    branched(office, "other")
    with pytest.raises(NotFound) as caught:
        found(office, name)
    assert caught.value.fix
    assert len(caught.value.message) < 200


def test_a_near_name_is_suggested(office):
    branched(office, "fix-login")
    with pytest.raises(NotFound) as caught:
        found(office, "fix-logni")
    assert caught.value.fix == "Did you mean 'fix-login'?"


def test_another_teams_task_is_not_found(office):
    branched(office, "fix", team="red")
    worker = office.person(Role.WORKER, team="blue")
    with pytest.raises((NotFound, Forbidden)):
        resolve(office.context(worker), "fix", Permission.READ)
