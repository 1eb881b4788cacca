"""Hosted models that a fleet is compared with, at OpenRouter or a server that speaks as it does."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fleet.adapters.evals.speak import Prices, Speaker
from fleet.adapters.nodes.http import Asking
from fleet.base.loose_json import mapping, mappings, string
from fleet.domain.errors import BadInput, NotFound, Unavailable, nearest
from fleet.domain.nodes.kinds import KINDS, MODELS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ADDRESS = KINDS["openrouter"].address
KEY = KINDS["openrouter"].key.removeprefix("os.environ/")
LOOPBACK = {"127.0.0.1", "::1", "localhost"}
LOOK, TIMEOUT = 20.0, 300.0


class Hosted:
    """`url`: of the API, with its `/v1`. `variable`: of the environment, which has the key."""

    def __init__(self, url: str, variable: str, env: Mapping[str, str]) -> None:
        self.url = url.rstrip("/")
        parts = urlsplit(self.url)
        is_near = parts.hostname in LOOPBACK
        if parts.scheme != "https" and not (parts.scheme == "http" and is_near):
            raise BadInput(
                f"{url} is not an https address.",
                fix="A key is sent over https, or on this machine.",
            )
        key = env.get(variable, "")
        if not key and not is_near:
            raise Unavailable(
                f"{variable} is not set, so {parts.hostname} cannot be asked.",
                fix=f"export {variable}=…",
            )
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._prices: dict[str, Prices | None] | None = None

    def check(self, models: Sequence[str]) -> None:
        """Raise `NotFound` for a model that is not in its list, if it has a list."""
        known = self._listed()
        for model in models:
            if known and model not in known:
                fix = nearest(model, known) or f"{self.url}/models lists them."
                raise NotFound(f"{self.url} has no model '{model}'.", fix=fix)

    def speaker(self, model: str) -> Speaker:
        speaker = Speaker(
            KINDS["openrouter"], self.url, self._headers, model, timeout=TIMEOUT, is_billed=True
        )
        speaker.prices = self._listed().get(model)
        return speaker

    def _listed(self) -> dict[str, Prices | None]:
        """The provider's models with their prices; empty when it does not list them."""
        if self._prices is None:
            base = self.url.removesuffix("/v1")
            try:
                with Asking(base, self._headers, within=LOOK) as asking:
                    models = mappings(mapping(asking.json(MODELS)).get("data"))
            except Unavailable:
                models = []
            self._prices = {
                string(model.get("id")): _prices(mapping(model.get("pricing"))) for model in models
            }
        return self._prices


def _prices(pricing: Mapping[str, object]) -> Prices | None:
    try:
        return Prices(float(str(pricing["prompt"])), float(str(pricing["completion"])))
    except (KeyError, ValueError):
        return None
