"""The only package that chooses adapters."""

from __future__ import annotations

from fleet.app.app import ISOLATED, App
from fleet.app.coders import make_coder, preload, probe_programs
from fleet.app.store.open import open_store
from fleet.app.worlds import Worlds

__all__ = ["ISOLATED", "App", "Worlds", "make_coder", "open_store", "preload", "probe_programs"]
