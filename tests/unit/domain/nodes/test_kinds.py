from __future__ import annotations

from pathlib import Path

import pytest

from fleet.domain.fleet import NODE_KINDS, Node
from fleet.domain.nodes.kinds import KINDS, costs_money, kind_at, kind_of, wire_of

PAGE = Path("docs/how-to/nodes.md")


def test_every_kind_that_settings_may_name_has_a_row():
    assert tuple(KINDS) == NODE_KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_about_nodes_names_every_kind(kind):
    assert f"`{kind}`" in PAGE.read_text()


def test_no_two_kinds_are_known_by_the_same_answer():
    signs = [kind.sign for kind in KINDS.values() if kind.sign[0]]
    owners = [kind.owner for kind in KINDS.values() if kind.owner]
    assert len(signs + owners) == len({*signs, *owners})


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.address])
def test_a_companys_api_is_known_by_its_host(kind):
    host = KINDS[kind].address.removeprefix("https://").partition("/")[0]
    assert kind_at(host) == kind
    assert kind_at(f"not-{host}") == ""


def test_an_unknown_kind_is_taken_as_one_that_speaks_as_openai_does():
    assert kind_of("new").wires == ("openai",)


@pytest.mark.parametrize(
    ("kind", "wire"), [("ollama", "ollama"), ("vllm", "openai"), ("anthropic", "anthropic")]
)
def test_the_gateway_speaks_the_first_format_of_a_kind(kind, wire):
    assert wire_of(Node("mini", kind, "http://mini")) == wire


def test_a_node_without_an_address_is_left_to_the_gateway():
    assert wire_of(Node("far", "hosted", "", provider="groq")) == "hosted"


@pytest.mark.parametrize(
    ("kind", "endpoint", "expected"),
    [
        ("openrouter", "http://127.0.0.1:4000", True),
        ("hosted", "", True),
        ("openai", "https://api.openai.com/v1", True),
        ("openai", "https://API.openai.com:443/v1", True),
        ("openai", "http://192.168.1.20:8000/v1", False),
        ("ollama", "http://[::1]:11434", False),
    ],
)
def test_the_api_of_a_company_sends_a_bill(kind, endpoint, expected):
    assert costs_money(Node("n", kind, endpoint)) is expected
