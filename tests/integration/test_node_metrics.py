"""What the relay knows of its nodes is in the figures of the server."""

from __future__ import annotations

from tests.integration.loopback_relay import LoopbackRelay
from tests.integration.test_server import Served

FLEET_YAML = """
project: {{name: shop, gateway: {{port: {port}}}}}
nodes: {{a: {{endpoint: "{url}"}}}}
models: {{coder: {{node: a, ollama_model: "qwen2.5-coder:7b"}}}}
"""


def figures(served, token) -> dict[str, float]:
    _, said = served.ask("GET", "/metrics/json", token=token)
    return {(row["name"], *row["labels"].values()): row["value"] for row in said["data"]}


def test_a_node_that_is_gone_is_shut_off_in_the_figures(tmp_path):
    loopback = LoopbackRelay(1).open()
    file = tmp_path / "fleet.yaml"
    file.write_text(FLEET_YAML.format(port=loopback.port - 1, url=loopback.nodes[0].url))
    served = Served(tmp_path)
    try:
        token = served.token("ann", "--role", "coordinator")
        found = figures(served, token)
        assert found["fleet_node_breaker", "a", "closed"] == 1
        assert found["fleet_node_breaker", "a", "open"] == 0
        assert found["fleet_node_requests", "a", "busy"] == 0

        loopback.nodes[0].set(refuse=True)
        assert loopback.chat().status >= 500
        found = figures(served, token)
        assert found["fleet_node_breaker", "a", "closed"] == 0
        assert found["fleet_node_breaker", "a", "open"] == 1
    finally:
        served.end()
        loopback.close()
    assert not any(name.startswith("fleet_node_breaker") for name, *_ in _after(tmp_path)), (
        "without a relay nothing is said of it"
    )


def _after(place) -> dict[tuple[str, ...], float]:
    served = Served(place)
    try:
        return figures(served, served.token("bob", "--role", "coordinator"))
    finally:
        served.end()
