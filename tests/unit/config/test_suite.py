"""Suites of evals in a folder: what is read, and how mistakes are named."""

from __future__ import annotations

import pytest

from fleet.config.suite import FRONTIER, BadSuite, read_suite
from fleet.domain.errors import BadInput
from fleet.domain.evals.case import CaseCall, Exact, Label, Mutants, Number, Passing


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "cases"
    made.mkdir()
    return made


def one(folder, text):
    (folder / "case.yaml").write_text(text)
    (case,) = read_suite(folder)
    return case


def problems(folder, text) -> list[str]:
    (folder / "case.yaml").write_text(text)
    with pytest.raises(BadSuite) as caught:
        read_suite(folder)
    assert (caught.value.code, caught.value.exit_status) == ("bad_suite", 2)
    assert caught.value.fix
    return [str(problem) for problem in caught.value.all]


def test_each_kind_of_check_is_read(folder):
    assert one(folder, "prompt: 1+1?\nnumber: 2\ntolerance: 0.5\n").items[0].check == Number(2, 0.5)
    assert one(folder, "prompt: Which?\nanswer: blue\n").items[0].check == Exact("blue")
    tests = one(folder, "prompt: Write f.\ntests: |\n  def test_f():\n      assert f()\n")
    assert tests.items[0].check == Passing("def test_f():\n    assert f()\n")
    faults = "mutants:\n  reference: 'x = 1'\n  faults: ['x = 2', 'x = 3']\n"
    mutants = one(folder, f"prompt: Test x.\n{faults}")
    assert mutants.items[0].check == Mutants("x = 1", ("x = 2", "x = 3"))


def test_items_share_a_prompt_and_some_of_them_may_be_wrong(folder):
    case = one(
        folder,
        "about: Colours.\njob: classification\nroles: [planner]\nsystem: Be brief.\n"
        "prompt: 'Colour of {text}?'\noutput_tokens: 20\nneed: 1\nlabels: [red, blue]\n"
        "items:\n  - {text: blood, answer: red}\n  - {text: sky, answer: blue}\n",
    )
    assert (case.name, case.job, case.need, case.output) == ("case", "classification", 1, 20)
    assert (case.system, case.roles) == ("Be brief.", ("planner",))
    assert [item.prompt for item in case.items] == ["Colour of blood?", "Colour of sky?"]
    assert case.items[1].check == Label("blue", ("red", "blue"))


def test_a_tool_is_offered_and_its_call_expected(folder):
    case = one(
        folder,
        "prompt: How warm is Oslo?\ntool:\n  name: weather\n  description: The weather.\n"
        "  parameters: {city: string}\n  arguments: {city: Oslo}\n  result: '7 degrees'\n"
        "  number: 7\n",
    )
    assert case.items[0].check == CaseCall("weather", {"city": "Oslo"}, "7 degrees", 7.0)
    assert case.tools[0]["function"]["parameters"]["required"] == ["city"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("prompt: x\nnumber: 2\nanwser: 3\n", "cases/case.yaml:3: anwser: is not a key of a case."),
        ("\nprompt: x\n", "cases/case.yaml:2: has no check: one of number,"),
        ("prompt: x\nnumber: 2\nanswer: 3\n", "cases/case.yaml:1: has number and answer: one of"),
        ("number: 2\n", "cases/case.yaml:1: prompt: is missing."),
        ("prompt: ''\nnumber: 2\n", "cases/case.yaml:1: prompt: must be a text."),
        ("prompt: x\nnumber: 'two'\n", "cases/case.yaml:2: number: must be a number."),
        ("prompt: x\nanswer: y\ntolerance: 1\n", "cases/case.yaml:3: tolerance: belongs to"),
        ("prompt: x\nnumber: 1\nneed: 2\n", "cases/case.yaml:3: need: must be a whole number from"),
        (
            "prompt: x\nnumber: 1\nroles: [boss]\n",
            "cases/case.yaml:3: roles: 'boss' is not a role.",
        ),
        (
            "prompt: x\ntests: |\n  def test_a():\n      assert f(\n",
            "cases/case.yaml:4: tests: is not Python: '(' was never closed.",
        ),
        ("prompt: x\ntests: 'x = 1'\n", "cases/case.yaml:2: tests: has no function test_…."),
        ("prompt: x\nitems: []\n", "cases/case.yaml:1: prompt: must have {text}."),
        (
            "prompt: '{text}'\nlabels: [red]\nitems:\n  - {text: a, answer: red}\n  - {text: b, answer: rd}\n",
            "cases/case.yaml:5: items[1].answer: 'rd' is not one of the labels.",
        ),
        (
            "prompt: '{text}'\nitems: [{text: a}]\n",
            "cases/case.yaml:2: items[0]: must have a `text`",
        ),
        ("prompt: x\nmutants: {reference: 'x=1'}\n", "cases/case.yaml:2: mutants.faults: must be"),
        ("prompt: x\ntool: {name: y}\n", "cases/case.yaml:2: tool.result: must be a text."),
        ("prompt: [\n", "cases/case.yaml:2: is not valid YAML:"),
        ("- 1\n", "cases/case.yaml:1: has no case in it: it must be a mapping."),
        ("prompt: x\nprompt: y\nnumber: 1\n", "cases/case.yaml:2: prompt: is there twice;"),
    ],
)
def test_a_mistake_is_named_by_file_and_line(folder, text, expected):
    assert any(line.startswith(expected) for line in problems(folder, text)), problems(folder, text)


def test_all_mistakes_of_all_files_are_named_at_once(folder):
    (folder / "other.yaml").write_text("number: x\n")
    lines = problems(folder, "promt: x\nnumber: 1\n")
    assert [line.split(":")[0] for line in lines] == ["cases/case.yaml"] * 2 + [
        "cases/other.yaml"
    ] * 2


def test_a_folder_without_cases_is_refused(folder):
    with pytest.raises(BadInput, match=r"has no file NAME\.yaml"):
        read_suite(folder)


def test_the_comparison_is_eight_tasks_in_the_same_format():
    cases = read_suite(FRONTIER)
    assert len(cases) == 8
    assert sum(isinstance(case.items[0].check, Mutants) for case in cases) == 1
