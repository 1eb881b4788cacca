"""The public keys of an OpenID Connect issuer, fetched beside everything else and kept."""

from __future__ import annotations

import json
import threading
import time
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import jwt

ANSWER_SECONDS = 5.0  # of the issuer
ANSWER_BYTES = 1 << 20  # bytes of one answer
FRESH_SECONDS = 300.0  # after which the keys are fetched again, when one is used
PAUSE_SECONDS = 10.0  # between two tries: an unknown key must not make us ask all the time
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class IssuerKeys:
    """The keys of an issuer. No request waits for it: a key that is new is known at the next request."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched = self._tried = float("-inf")
        self._lock = threading.Lock()
        self.problem = ""

    def find(self, key_id: str) -> jwt.PyJWK | None:
        key, now = self._keys.get(key_id), time.monotonic()
        if key is None or now - self._fetched > FRESH_SECONDS:
            self._fetch_beside(now)
        return key

    @property
    def is_fetching(self) -> bool:
        return self._lock.locked()

    def _fetch_beside(self, now: float) -> None:
        if now - self._tried < PAUSE_SECONDS or not self._lock.acquire(blocking=False):
            return
        self._tried = now
        threading.Thread(target=self._fetch, name="oidc-keys", daemon=True).start()

    def _fetch(self) -> None:
        try:
            self._keys = _keys_of(self._issuer)
            self._fetched, self.problem = time.monotonic(), ""
        except (OSError, ValueError, TypeError, KeyError, jwt.PyJWTError) as error:
            self.problem = f"{type(error).__name__}: {error}"  # what was known stays known
        finally:
            self._lock.release()


def _keys_of(issuer: str) -> dict[str, jwt.PyJWK]:
    document = _read(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    if document["issuer"] != issuer:
        raise ValueError(f"the issuer calls itself {document['issuer']}")
    keys = _read(str(document["jwks_uri"]))["keys"]
    public = [key for key in keys if key.get("kty") in {"RSA", "EC", "OKP"} and key.get("kid")]
    return {str(key["kid"]): jwt.PyJWK(key) for key in public if key.get("use", "sig") == "sig"}


def _read(url: str) -> Any:
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in LOOPBACK:
        raise ValueError(f"{url} is not an https address")
    with urlopen(Request(url), timeout=ANSWER_SECONDS) as answer:  # noqa: S310  # nosec B310  # checked just above
        return json.loads(answer.read(ANSWER_BYTES))
