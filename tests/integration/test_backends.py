"""Each kind of server is asked what it has and told to load, over real sockets, with every fault."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fleet.adapters.nodes.key import key_of
from fleet.adapters.nodes.ollama import Ollama
from fleet.adapters.nodes.survey import Prober, detect, make_backend
from fleet.adapters.nodes.warm_up import Warming
from fleet.domain.errors import Unavailable
from fleet.domain.fleet import NODE_KINDS, Node, Serving
from fleet.domain.nodes.inventory import cache_bytes
from fleet.testing.fake_node.node import FakeModel, FakeNode
from tests.wait import until

KINDS = tuple(kind for kind in NODE_KINDS if kind != "hosted")
LOCAL = ("ollama", "vllm", "llamacpp", "sglang", "lmstudio")
PLENTY = 20.0  # seconds, for what is not to wait at all


@pytest.fixture
def node():
    """Makes nodes, and ends them."""
    made = []

    def make(*models, **manner):
        made.append(FakeNode(models or ["qwen:7b", "llama:3b"], **manner).start())
        return made[-1]

    yield make
    for each in made:
        each.stop()


def named(fake: FakeNode, name: str = "mini", *, api_key: str = "", kind: str = "") -> Node:
    return Node(name, kind or fake.kind, fake.url, api_key=api_key)


def prober(tmp_path, *unsaid: str, **env: str) -> Prober:
    return Prober(env, tmp_path, unsaid)


@pytest.mark.parametrize("kind", KINDS)
def test_a_node_says_what_it_has_and_nothing_is_loaded_by_asking(node, kind):
    fake = node(kind=kind)
    found = make_backend(kind, fake.url).look(within=PLENTY)
    assert found.kind == kind
    assert [held.name for held in found.held] == ["qwen:7b", "llama:3b"]
    assert found.latency > 0
    assert {seen.method for seen in fake.seen} == {"GET"}
    assert fake.resident == {}


def test_an_address_may_end_in_v1(node):
    fake = node(kind="vllm")
    assert make_backend("vllm", f"{fake.url}/v1").look(within=PLENTY).held


def test_ollama_says_what_is_resident_with_its_memory_and_context(node):
    fake = node()
    fake.load("llama:3b", 16_384)
    found = Ollama(fake.url).look(within=PLENTY)
    (loaded,) = found.resident
    assert (loaded.name, loaded.context) == ("llama:3b", 16_384)
    assert loaded.memory == loaded.graphics == 4_700_000_000 + 16_384 * 57_344
    assert (found.version, found.held[0].size) == ("0.14.2", 4_700_000_000)


def test_the_shape_that_ollama_tells_of_gives_the_memory_that_it_then_uses(node):
    fake = node()
    fake.load("qwen:7b", 8192)
    backend = Ollama(fake.url)
    shape = backend.shape("qwen:7b", within=PLENTY)
    (loaded,) = backend.look(within=PLENTY).resident
    assert cache_bytes(shape, 8192) == loaded.memory - 4_700_000_000


def test_an_ollama_without_a_page_of_residents_is_still_up(node):
    fake = node(status=404, only="/api/ps")
    assert Ollama(fake.url).look(within=PLENTY).resident is None


def test_llamacpp_says_which_of_its_slots_work(node):
    found = make_backend("llamacpp", node(kind="llamacpp", slots=4).url).look(within=PLENTY)
    assert (found.busy, found.slots) == (0, 4)
    assert found.resident[0].context == 32_768


def test_vllm_says_how_many_requests_run_and_wait(node):
    found = make_backend("vllm", node(kind="vllm").url).look(within=PLENTY)
    assert (found.busy, found.waiting, found.held[0].context) == (0, 0, 32_768)
    assert [each.name for each in found.resident] == ["qwen:7b", "llama:3b"]


def test_lm_studio_says_what_is_loaded(node):
    fake = node(kind="lmstudio")
    fake.load("qwen:7b")
    found = make_backend("lmstudio", fake.url).look(within=PLENTY)
    assert [each.name for each in found.resident] == ["qwen:7b"]


@pytest.mark.parametrize("kind", [*LOCAL, "openai"])
def test_what_answers_is_found_out(node, kind):
    assert detect(node(kind=kind).url, within=PLENTY) == kind


@pytest.mark.parametrize(
    ("host", "kind"),
    [("https://openrouter.ai/api/v1", "openrouter"), ("https://api.anthropic.com", "anthropic")],
)
def test_a_hosted_api_is_known_by_its_address(host, kind):
    assert detect(host, within=PLENTY) == kind


def test_a_node_whose_kind_nobody_wrote_is_what_it_answers_as(node, tmp_path):
    fake = node(kind="llamacpp")
    written = named(fake, kind="ollama")
    seen = prober(tmp_path, "mini").look(written, within=PLENTY)
    assert (seen.up, seen.inventory.kind) == (True, "llamacpp")


def test_a_node_that_is_not_what_the_file_says_is_offline_and_says_what_it_is(node, tmp_path):
    seen = prober(tmp_path).look(named(node(kind="vllm"), kind="ollama"), within=PLENTY)
    assert (seen.up, seen.why) == (False, "it answers as vllm does, not as ollama")


FAULTS = {
    "refuse": ({"refuse": True}, "connection refused"),
    "hang": ({"hang": True}, "no answer within 0.4 s"),
    "drip": ({"drip": 0.1}, "no whole answer within 0.4 s"),
    "no power": ({"drop": True}, "no connection within 0.4 s"),
    "a web page": ({"html": True}, "it answers with a web page, so it is not a model server"),
    "elsewhere": (
        {"location": "http://127.0.0.1:9"},
        "it redirects to another address (status 307)",
    ),
    "half JSON": ({"garbage": True}, "it answers with text that is not JSON"),
    "brackets": ({"body": "[" * 50_000}, "it answers with text that is not JSON"),
    "an error": ({"status": 500, "message": "no GPU"}, "it answers with status 500: no GPU"),
}


@pytest.mark.parametrize("kind", ["ollama", "openai"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_node_that_fails_is_offline_with_its_reason(node, tmp_path, kind, fault):
    fake = node(kind=kind)
    manner, why = FAULTS[fault]
    fake.set(**manner)
    within = 0.4 if "0.4" in why else PLENTY
    (seen,) = prober(tmp_path, "mini").survey([named(fake)], within=within)
    assert (seen.state, seen.why) == ("offline", why)


def test_a_name_that_nobody_knows_is_a_reason(tmp_path):
    away = Node("away", "ollama", "http://no-such-host.invalid:11434")
    (seen,) = prober(tmp_path).survey([away], within=PLENTY)
    assert seen.why == "there is no host named no-such-host.invalid"


def test_all_nodes_are_asked_while_some_of_them_hang(node, tmp_path):
    stuck = [node(hang=True) for _ in range(5)]
    well = [node() for _ in range(5)]
    nodes = [named(fake, f"n{i}") for i, fake in enumerate([*stuck, *well])]
    seen = []
    survey = threading.Thread(
        target=lambda: seen.extend(prober(tmp_path).survey(nodes, within=PLENTY))
    )
    survey.start()
    until(lambda: all(fake.seen for fake in [*stuck, *well]), why="all of them to be asked")
    for fake in stuck:
        fake.set(refuse=True)
    survey.join(PLENTY)
    assert [each.up for each in seen] == [False] * 5 + [True] * 5


def test_a_hosted_api_without_an_address_is_not_asked(tmp_path):
    (seen,) = prober(tmp_path).survey([Node("cloud", "hosted", "")], within=PLENTY)
    assert (seen.state, seen.up) == ("not asked", None)


class Odd(BaseHTTPRequestHandler):
    """Says the same JSON to every question."""

    said: object = None

    def do_GET(self):
        body = json.dumps(self.said).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextmanager
def saying(said):
    handler = type("Said", (Odd,), {"said": said})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "said",
    [
        None,
        [],
        [1, None],
        7,
        {"version": 7, "models": 1, "data": None},
        {"version": "1", "models": [1, None, {"name": 3, "size": "big"}], "data": [{}, 5]},
        {"version": "1", "models": [{"details": []}], "data": [{"id": [], "meta": 3, "state": 1}]},
    ],
    ids=json.dumps,
)
def test_json_of_another_shape_breaks_nothing(kind, said):
    with saying(said) as url:
        try:
            make_backend(kind, url).look(within=PLENTY)
        except Unavailable as error:
            assert error.message  # noqa: PT017 - either is right, a traceback is not


@pytest.mark.parametrize("kind", KINDS)
def test_the_key_that_a_reference_means_is_sent(node, tmp_path, kind):
    fake = node(kind=kind, key="sk-secret")
    keyed = named(fake, api_key="os.environ/MY_KEY")
    looked = prober(tmp_path, MY_KEY="sk-secret").look(keyed, within=PLENTY)
    assert looked.up, looked.why
    wrong = prober(tmp_path, MY_KEY="sk-other").look(keyed, within=PLENTY)
    assert wrong.why == "it refuses the key, or wants one (status 401)"
    unset = prober(tmp_path).look(keyed, within=PLENTY)
    assert unset.why == "the variable MY_KEY, which holds its key, is not set"


def test_a_key_is_read_from_a_file_beside_the_settings(tmp_path):
    (tmp_path / "key").write_text("sk-secret\n")
    assert key_of("file:key", {}, tmp_path) == "sk-secret"
    assert key_of("", {}, tmp_path) == ""
    for text in ("", "one\ntwo"):
        (tmp_path / "key").write_text(text)
        with pytest.raises(Unavailable, match="must contain exactly one line"):
            key_of("file:key", {}, tmp_path)
    with pytest.raises(Unavailable, match="cannot be read"):
        key_of("file:none", {}, tmp_path)


def test_finding_out_what_answers_sends_no_key(node, tmp_path):
    fake = node(kind="vllm")
    keyed = named(fake, kind="ollama", api_key="os.environ/MY_KEY")
    prober(tmp_path, "mini", MY_KEY="sk-secret").look(keyed, within=PLENTY)
    guessed = [seen for seen in fake.seen if seen.path == "/api/v0/models"]
    assert [seen.headers.get("authorization") for seen in guessed] == [None]


@pytest.mark.parametrize("kind", LOCAL)
def test_a_model_is_loaded_once_the_node_says_that_it_is_resident(node, kind):
    fake = node(kind=kind, load=0.1)
    found = make_backend(kind, fake.url).load("qwen:7b", context=32_768, within=PLENTY)
    assert (found.name, found.context) == ("qwen:7b", 32_768)


def test_ollama_is_told_to_keep_it_with_the_context_that_requests_will_use(node):
    fake = node()
    assert Ollama(fake.url).load("qwen:7b", context=12_345, within=PLENTY).context == 12_345
    (asked,) = fake.asked("/api/chat")
    assert asked.body == {
        "model": "qwen:7b",
        "messages": [],
        "stream": False,
        "keep_alive": -1,
        "options": {"num_ctx": 12_345},
    }


def test_an_ollama_that_wants_words_is_given_some(node):
    fake = node(status=400, only="/api/chat", times=1)
    Ollama(fake.url).load("qwen:7b", context=8192, within=PLENTY)
    assert [seen.body["messages"] for seen in fake.asked("/api/chat")][1][0]["role"] == "user"


def test_a_model_that_a_node_does_not_have_fails_with_what_to_do(node):
    with pytest.raises(Unavailable, match="run `ollama pull mistral:7b` there"):
        Ollama(node().url).load("mistral:7b", context=8192, within=PLENTY)
    with pytest.raises(Unavailable, match="it does not have mistral:7b"):
        make_backend("vllm", node(kind="vllm").url).load("mistral:7b", context=1, within=PLENTY)


def test_llamacpp_is_waited_for_while_it_loads(node):
    fake = node(kind="llamacpp", status=503, only="/health", times=2)
    found = make_backend("llamacpp", fake.url).load("qwen:7b", context=1, within=PLENTY)
    assert found.name == "qwen:7b"
    assert len(fake.asked("/health")) == 3


def serving(fake: FakeNode, name: str, upstream: str = "qwen:7b") -> tuple[str, Serving]:
    return f"on-{name}", Serving(named(fake, name), upstream, 8192, PLENTY, 1)


def test_a_node_that_is_slow_to_load_holds_up_no_other(node, tmp_path):
    slow, quick = node(hang=True), node()
    wanted = [serving(slow, "slow"), serving(quick, "quick")]
    warming = Warming(wanted, prober(tmp_path).speaking)
    until(lambda: warming.rows()[1].state == "ok", why=warming.rows)
    assert warming.rows()[0].state == "loading"
    slow.set(refuse=True)
    until(lambda: warming.wait(0.1), why=warming.rows)
    assert [row.state for row in warming.rows()] == ["failed", "ok"]


def test_one_node_loads_one_model_after_the_other(node, tmp_path):
    fake = node(FakeModel("qwen:7b"), FakeModel("llama:3b"), slots=4, load=0.1)
    wanted = [serving(fake, "mini"), serving(fake, "mini", "llama:3b")]
    warming = Warming(wanted, prober(tmp_path).speaking)
    until(lambda: warming.wait(0.1), why=warming.rows)
    assert [row.state for row in warming.rows()] == ["ok", "ok"]
    assert fake.most <= 1
    assert fake.resident == {"qwen:7b": 8192, "llama:3b": 8192}


def test_a_model_of_ollamas_cloud_is_warm_though_it_is_never_resident(node):
    fake = node(FakeModel("gpt-oss:120b-cloud", cloud=True), "qwen:7b")
    loaded = Ollama(fake.url).load("gpt-oss:120b-cloud", context=4096, within=PLENTY)
    assert loaded.name == "gpt-oss:120b-cloud"
    assert Ollama(fake.url).look(within=PLENTY).resident == ()


def test_an_older_lm_studio_says_what_is_loaded_on_its_older_page(node):
    fake = node(kind="lmstudio")
    fake.load("qwen:7b")
    newer = make_backend("lmstudio", fake.url).look(within=PLENTY)
    fake.set(status=404, only="/api/v1/models")
    older = make_backend("lmstudio", fake.url).look(within=PLENTY)
    assert [each.name for each in newer.resident] == ["qwen:7b"]
    assert newer.resident == older.resident


def test_sglang_says_how_many_requests_work_and_wait(node):
    fake = node(kind="sglang")
    inventory = make_backend(detect(fake.url, within=PLENTY), fake.url).look(within=PLENTY)
    assert (inventory.kind, inventory.busy, inventory.waiting) == ("sglang", 0, 0)
    assert inventory.held[0].context == 32_768
