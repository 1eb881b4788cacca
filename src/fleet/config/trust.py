"""Which of a project's settings have no effect until the user trusts them.

Others write a repository. Its settings that run commands, widen what an agent may do, send data
out or choose the store are ignored until `fleet trust` has recorded exactly these values.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from fleet.config.files.problems import SettingPlace
from fleet.config.layers import Layer, Leaf
from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path as FilePath

    from fleet.config.files.problems import Problems
    from fleet.config.keys.table import Path

FILE = "trusted.json"
VERSION = 1
LOOPBACK = r"(?i)https?://(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?(/.*)?"


class TrustState(NamedTuple):
    """The settings of a project's file that need trust, and whether they have it."""

    asked: Mapping[Path, Leaf]
    trusted: bool

    @property
    def withheld(self) -> Mapping[Path, Leaf]:
        return {} if self.trusted else self.asked


def trust_state(
    layer: Layer, user: Layer, file: FilePath, home: FilePath, problems: Problems
) -> TrustState:
    leaves = {**sensitive(layer), **_addresses(layer, user), **_redirected(layer, user)}
    if not leaves:
        return TrustState(leaves, trusted=True)
    known = records(home, problems).get(str(file.resolve()), {})
    return TrustState(leaves, trusted=known.get("hash") == fingerprint(values(leaves)))


def values(leaves: Mapping[Path, Leaf]) -> dict[Path, Any]:
    return {path: leaf.value for path, leaf in leaves.items()}


def asked_by(layer: Layer) -> dict[Path, Leaf]:
    """Return all settings of a file that need trust, without regard to the user's own settings."""
    return {**sensitive(layer), **_addresses(layer, Layer({}, {}))}


def sensitive(layer: Layer) -> dict[Path, Leaf]:
    return {
        path: leaf
        for path, leaf in layer.leaves.items()
        if leaf.key.trust and leaf.value not in (leaf.key.default, *leaf.key.harmless)
    }


def _addresses(layer: Layer, user: Layer) -> dict[Path, Leaf]:
    """Return the settings that send prompts to other machines: the addresses of nodes."""
    return {
        path: leaf for path, leaf in layer.leaves.items() if _is_address(path, leaf, layer, user)
    }


def _is_address(path: Path, leaf: Leaf, layer: Layer, user: Layer) -> bool:
    if path[0] != "nodes":
        return False
    if path[2] == "endpoint":
        return re.fullmatch(LOOPBACK, str(leaf.value)) is None
    address = (*path[:2], "endpoint")
    if path[2] not in {"kind", "provider"} or address in layer.leaves or address in user.leaves:
        return False
    from fleet.domain.nodes.kinds import kind_of  # noqa: PLC0415 - only for a node without an address

    return path[2] == "provider" or not kind_of(str(leaf.value)).needs_endpoint


def _redirected(layer: Layer, user: Layer) -> dict[Path, Leaf]:
    """Return the settings that redirect a node which is sent the user's own key."""
    return {
        path: leaf
        for path, leaf in layer.leaves.items()
        if path[0] == "nodes"
        and path[2] in {"endpoint", "kind", "provider"}
        and (*path[:2], "api_key") in user.leaves
    }


def fingerprint(settings: Mapping[Path, Any]) -> str:
    import hashlib  # noqa: PLC0415 - only for a project that asks for something
    import json  # noqa: PLC0415 - likewise

    pairs = sorted(settings.items())
    return hashlib.sha256(json.dumps(pairs, sort_keys=True).encode()).hexdigest()


def withhold(layer: Layer, withheld: Mapping[Path, Leaf]) -> Layer:
    """Return the layer without the settings that are not trusted.

    An MCP server or a route with such a setting is left out altogether.
    """
    leaves = {path: leaf for path, leaf in layer.leaves.items() if path not in withheld}
    tables = {path[:2] for path in withheld if path[0] in {"mcp_servers", "routes"}}
    entries = {path: origin for path, origin in layer.entries.items() if path not in tables}
    return Layer({p: leaf for p, leaf in leaves.items() if p[:2] not in tables}, entries)


def records(home: FilePath, problems: Problems | None = None) -> dict[str, dict[str, Any]]:
    import json  # noqa: PLC0415 - only for a project that asks for something

    path = home / FILE
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["fleet"] == VERSION:
            files: dict[str, dict[str, Any]] = dict(data["files"])
            return files
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError):
        pass
    if problems is not None:
        problems.warn(SettingPlace(str(path)), "", "cannot be read, so nothing is trusted.")
    return {}


def record(home: FilePath, file: FilePath, settings: Mapping[Path, Any]) -> None:
    """Trust what this file asks for now, and nothing that it asked for before."""
    known = records(home)
    known[str(file.resolve())] = {
        "hash": fingerprint(settings),
        "settings": sorted(".".join(path) for path in settings),
    }
    _write(home, known)


def revoke(home: FilePath, file: FilePath) -> bool:
    """Stop trusting this file; return False when nothing was trusted."""
    known = records(home)
    if known.pop(str(file.resolve()), None) is None:
        return False
    _write(home, known)
    return True


def _write(home: FilePath, known: Mapping[str, Any]) -> None:
    import json  # noqa: PLC0415 - only for `fleet trust` and `fleet init`

    from fleet.config.files.write import write_whole  # noqa: PLC0415 - likewise

    text = json.dumps({"fleet": VERSION, "files": known}, indent=2) + "\n"
    write_whole(home / FILE, text.encode(), mode=0o600)
