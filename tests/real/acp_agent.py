"""`opencode acp` with a scripted model, set up as its user would: by its own settings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.real.driver import Place
    from tests.real.programs import Drive

QUIET = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}


def opencode(place: Place, script: Any, *, rules: Any = None, **fields: Any) -> Drive:
    run = place.drive(script, command=("opencode", "acp"), model="", env=QUIET, **fields)
    models = {"scripted": {"limit": {"context": 65_536, "output": 8192}}}
    options = {"baseURL": f"{place.servers[-1].url}/v1", "apiKey": "{env:THE_KEY}"}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": models}
    settings = {
        "model": "mine/scripted",
        "small_model": "mine/scripted",
        "provider": {"mine": provider},
        "permission": rules or {},
    }
    folder = place.home / ".config" / "opencode"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "opencode.json").write_text(json.dumps(settings))
    return run
