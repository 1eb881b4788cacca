"""People who log in with an OpenID Connect issuer: a small real one, on loopback."""

from __future__ import annotations

import base64
import hmac
import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from fleet.config.settings import OidcSettings
from fleet.domain.access import Role
from fleet.domain.errors import Forbidden
from fleet.server.oidc_people import person_of
from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.wait import LIMIT, until

LIST = "/v1/task/list"
AUDIENCE = "fleet-server"


class Issuer:
    """Discovery, keys, and tokens with real RSA signatures."""

    def __init__(self) -> None:
        self.keys = {"first": _rsa()}
        issuer = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                about = {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/keys"}
                body = json.dumps(issuer.jwks() if self.path == "/keys" else about).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_args) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def jwks(self) -> dict:
        rows = []
        for kid, key in self.keys.items():
            public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
            rows.append({**public, "kid": kid, "use": "sig", "alg": "RS256"})
        return {"keys": rows}

    def claims(self, **changed) -> dict:
        now = time.time()
        said = {
            "iss": self.url, "aud": AUDIENCE, "sub": "8f3a", "iat": now, "exp": now + 600,
            "email": "bob@example.org", "email_verified": True, "groups": ["engineering", "red team"],
        }  # fmt: skip
        return {name: value for name, value in (said | changed).items() if value is not None}

    def token(self, kid: str = "first", **changed) -> str:
        key = self.keys.get(kid) or _rsa()
        return jwt.encode(self.claims(**changed), key, "RS256", headers={"kid": kid})


def _rsa() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture(scope="module")
def issuer():
    made = Issuer()
    yield made
    made.server.shutdown()


@pytest.fixture(scope="module")
def served(issuer, tmp_path_factory):
    scratch = Scratch(tmp_path_factory.mktemp("oidc"))
    settings = {
        "issuer": issuer.url, "audience": AUDIENCE,
        "roles": "[engineering=worker, admins=coordinator]", "teams": "[red team=red]",
    }  # fmt: skip
    for name, value in settings.items():
        scratch("config", "set", f"server.oidc.{name}={value}")
    made = Served(scratch, "--no-run")
    until(lambda: made.ask("GET", LIST, token=issuer.token())[0] == 200, "the keys to be fetched")
    yield made
    made.close()


def answer(served, token: str) -> tuple[int, str]:
    status, said = served.ask("GET", LIST, token=token)
    return status, said.get("code", "")


def test_a_person_is_who_the_issuer_and_the_settings_say(served, issuer):
    served.ask("POST", "/v1/task/add", {"title": "By Bob"}, token=issuer.token())
    task, *_ = served.ask("GET", LIST, token=issuer.token())[1]["data"]
    assert task["team"] == "red"
    status, said = served.ask("GET", "/v1/token/list", token=issuer.token())
    assert (status, said["code"]) == (403, "forbidden")
    assert "bob@example.org is a worker" in said["detail"]
    lead = issuer.token(groups=["engineering", "admins", "red team"])
    assert served.ask("GET", "/v1/token/list", token=lead)[0] == 200


def test_a_worker_of_the_issuer_causes_no_more_than_one_of_ours(served, issuer):
    body = {"title": "x", "prompt": "run id", "spec": {"coder": "scripted"}}
    theirs = served.ask("POST", "/v1/task/add", body, token=issuer.token())
    ours = served.ask("POST", "/v1/task/add", body, token=served.token("wes", "worker"))
    elsewhere = {"title": "x", "project": "/etc"}
    status, said = served.ask("POST", "/v1/task/add", elsewhere, token=issuer.token())
    assert (status, said["code"]) == (404, "no_such_place")
    assert theirs[1]["data"]["status"] == ours[1]["data"]["status"] == "held"


def test_no_claim_gives_more_than_the_mapping(served, issuer):
    token = issuer.token(role="coordinator", roles=["coordinator"], team="blue", run="t-1.1")
    assert served.ask("GET", "/v1/token/list", token=token)[0] == 403
    assert answer(served, issuer.token(groups=["coordinator", "red team"])) == (403, "no_role")
    assert answer(served, issuer.token(groups=["engineering"])) == (403, "no_role")
    assert answer(served, issuer.token(groups=None)) == (403, "no_role")


ODD = {
    "for another audience": ({"aud": "another"}, "bad_token"),
    "of another issuer": ({"iss": "https://evil.example.org"}, "bad_token"),
    "over": ({"exp": 1}, "expired_token"),
    "of the future": ({"iat": 1 << 33}, "bad_token"),
    "without an end": ({"exp": None}, "bad_token"),
    "without a time": ({"iat": None}, "bad_token"),
    "without a name": ({"email": None}, "no_role"),
    "with an address nobody has proven": ({"email_verified": False}, "no_role"),
    "with the name of an agent": ({"email": "t-3.1"}, "no_role"),
    "with the supervisor's name": ({"email": "supervisor"}, "no_role"),
}


@pytest.mark.parametrize("odd", ODD)
def test_a_token_that_is_not_for_us_is_refused(served, issuer, odd):
    changed, code = ODD[odd]
    status, said = answer(served, issuer.token(**changed))
    assert (status in {401, 403}, said) == (True, code)


def test_a_public_key_signs_nothing(served, issuer):
    """The classic mistake: HS256 with the public key as the secret, and no algorithm at all."""
    pem = (
        issuer.keys["first"]
        .public_key()
        .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    unsigned = jwt.encode(issuer.claims(), "x" * 32, "HS256", headers={"kid": "first"})
    head, _, _ = unsigned.rpartition(".")
    mark = base64.urlsafe_b64encode(hmac.digest(pem, head.encode(), "sha256")).rstrip(b"=")
    forged = f"{head}.{mark.decode()}"
    none = jwt.encode(issuer.claims(), None, "none", headers={"kid": "first"})
    assert answer(served, forged) == (401, "unknown_key")
    assert answer(served, none) == (401, "bad_token")
    other = jwt.encode(issuer.claims(), _rsa(), "RS256", headers={"kid": "first"})
    assert answer(served, other) == (401, "bad_token")


def test_a_key_that_nobody_knows_is_asked_for_once_and_refused(served, issuer):
    token = issuer.token("nobody's")
    until(lambda: answer(served, token) == (401, "unknown_key"), "the keys to be looked at again")


def test_a_person_of_the_issuer_is_revoked_by_name(served, issuer):
    token = issuer.token(email="eve@example.org")
    assert answer(served, token) == (200, "")
    until(lambda: "eve@example.org" in served.scratch("teams", "red"), "eve to be seen")
    served.scratch("token", "revoke", "eve@example.org")
    until(lambda: answer(served, token) == (401, "revoked_token"), "eve to be sent away")
    later = issuer.token(email="eve@example.org", iat=time.time() + 1)
    assert answer(served, later) == (200, "")


def test_our_own_tokens_count_beside_those_of_the_issuer(served):
    assert answer(served, served.token("ann")) == (200, "")


def test_an_issuer_without_an_audience_is_refused(tmp_path):
    scratch = Scratch(tmp_path)
    scratch("config", "set", "server.oidc.issuer=https://login.example.org")
    assert "server.oidc.audience" in scratch.fails("serve", "--port", "0", status=2)
    said = scratch.fails("config", "set", "server.oidc.roles=[admins=boss]", status=2)
    assert "'boss' is not one of them" in said


def test_of_several_roles_the_strongest_counts_and_of_several_teams_the_first():
    settings = OidcSettings(
        roles=("a=monitor", "b=team-lead", "c=worker"), teams=("x=blue", "y=red")
    )
    claims = {"email": "bob@example.org", "groups": ["y", "x", "c", "b", "a"]}
    actor = person_of(claims, settings)
    assert (actor.role, actor.team) == (Role.TEAM_LEAD, "blue")
    with pytest.raises(Forbidden):
        person_of({"email": "bob@example.org", "groups": "d"}, settings)


def test_without_the_package_that_checks_signatures_the_server_names_it(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    settings = "server: {oidc: {issuer: 'https://login.example.org', audience: fleet}}\n"
    (home / "config.yaml").write_text(settings)
    without = "import sys; sys.modules['cryptography'] = None; from fleet.cli.main import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", without, "serve", "--port", "0", "--no-run"],
        env={**os.environ, "FLEET_HOME": str(home)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "pip install 'agent-fleet[oidc]'" in done.stderr
