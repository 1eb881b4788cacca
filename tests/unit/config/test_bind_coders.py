"""Coders of the user's own."""

import pytest

from fleet.domain.errors import NotFound
from fleet.domain.fleet import JsonSpot

MINE = "coders:\n  mycoder:\n    command: [mycli, '{prompt}']\n"


def test_a_declared_coder_can_be_named_wherever_a_coder_can(world):
    world.user(MINE + "coder: mycoder\nmodel: big\n")
    loaded = world.fleet("agents: {helper: {coder: mycoder}, mycoder: {permissions: read}}").load()
    assert loaded.settings.coder == "mycoder"
    assert loaded.fleet.agent("helper").coder == "mycoder"
    assert loaded.fleet.agent("mycoder").permissions == "read"
    assert loaded.fleet.coders["mycoder"].model_name == "big"
    assert loaded.fleet.has_coder("mycoder")


def test_a_coder_that_is_nowhere_is_refused_with_the_nearest_name(world):
    world.user(MINE)
    world.fleet("coder: mycodr\n")
    said = world.refuse()
    assert "fleet.yaml:1: coder: 'mycodr' is not a valid value." in said
    assert "Did you mean 'mycoder'?" in said
    with pytest.raises(NotFound) as caught:
        world.fleet("").load().fleet.check_coder("mycodr")
    assert "mycoder" in caught.value.fix


def test_an_agents_coder_that_is_nowhere_is_refused_where_it_stands(world):
    world.fleet("agents:\n  a:\n    coder: cluade\n")
    said = world.refuse()
    assert "fleet.yaml:3: agents.a.coder: 'cluade' is not a valid value." in said
    assert "Did you mean 'claude'?" in said


def test_a_projects_coder_is_known_but_runs_nothing_until_it_is_trusted(world):
    world.fleet(MINE + "coder: mycoder\n")
    loaded = world.load()
    assert loaded.settings.coder == "mycoder"
    assert loaded.fleet.own_coders["mycoder"].command == ()
    assert any("coders.mycoder.command" in warning for warning in loaded.warnings)
    trusted = world.trust().load()
    assert trusted.fleet.own_coders["mycoder"].command == ("mycli", "{prompt}")


def test_where_things_stand_in_a_line_is_parsed_at_the_door(world):
    world.user(MINE + "    says: {text: message.text, result: type=done kind=end answer}\n")
    says = world.load().fleet.own_coders["mycoder"].says
    assert says["text"] == JsonSpot(("message", "text"))
    assert says["result"] == JsonSpot(("answer",), ((("type",), "done"), (("kind",), "end")))


WRONG = [
    ("coders: {claude: {command: [x]}}", "coders.claude: is a coder of Fleet's own."),
    ("coders: {mine: {}}", "coders.mine: has no `command`."),
    ("coders: {Mine: {command: [x]}}", "'Mine' is not a safe name."),
    ("coders: {mine: {command: [x], says: {txt: a}}}", "is not something a coder reports."),
    ("coders: {mine: {command: [x], says: {text: a..b}}}", "is not a place in a JSON line."),
    ("coders: {mine: {command: [x], resume: [x, '{session}']}}", "needs to know the session."),
    ("coders: {mine: {comand: [x]}}", "is not a setting."),
]


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_a_declaration_that_cannot_work_is_refused(world, text, said):
    world.fleet(text + "\n")
    assert said in world.refuse()
