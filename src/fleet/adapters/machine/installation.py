"""How fleet was installed, and whether the package index has a newer release."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import suppress
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.parse import urljoin
from urllib.request import Request, urlopen

from fleet.domain.data import NamedTuple
from fleet.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "agent-fleet"
JSON = "application/vnd.pypi.simple.v1+json"
INDEX_SECONDS = 5.0
MAX_ANSWER_BYTES = 8 << 20  # bytes of an answer; the index of one project is far smaller


class Installation(NamedTuple):
    """How Fleet was installed. `command` upgrades it; empty: only the user can, see `advice`."""

    method: str
    command: tuple[str, ...]
    advice: str = ""


def installation(prefix: str = sys.prefix, origin: Mapping[str, Any] | None = None) -> Installation:
    """`origin`: what the installer recorded of where it took fleet from."""
    origin = _direct_url() if origin is None else origin
    if origin.get("dir_info", {}).get("editable"):
        folder = str(origin.get("url", "")).removeprefix("file://")
        return Installation("source", (), f"cd {folder} && git pull && make setup")
    if Path(prefix, "pipx_metadata.json").exists() or "/pipx/venvs/" in prefix:
        return Installation("pipx", ("pipx", "upgrade", NAME))
    if Path(prefix, "uv-receipt.toml").exists() or "/uv/tools/" in prefix:
        return Installation("uv", ("uv", "tool", "upgrade", NAME))
    if find_spec("pip") is None:  # as `uv venv` makes it
        words = ("uv", "pip", "install", "--python", sys.executable, "--upgrade", NAME)
        return Installation("uv pip", words)
    return Installation("pip", (sys.executable, "-m", "pip", "install", "--upgrade", NAME))


def pipx_backend(prefix: str = "") -> str:
    """What pipx installs packages with: `uv`, where pipx found one, or `pip`."""
    with suppress(OSError, ValueError, AttributeError):
        recorded = json.loads(Path(prefix or sys.prefix, "pipx_metadata.json").read_text("utf-8"))
        return str(recorded.get("backend") or "pip")
    return "pip"


def _direct_url() -> dict[str, Any]:
    with suppress(metadata.PackageNotFoundError, ValueError):
        origin = json.loads(metadata.distribution(NAME).read_text("direct_url.json") or "{}")
        return origin if isinstance(origin, dict) else {}
    return {}


def newest(how: Installation, env: Mapping[str, str]) -> str:
    """The newest release in the index; raise `Unavailable` when the index cannot be reached."""
    index = env.get("FLEET_INDEX") or env.get("PIP_INDEX_URL") or env.get("UV_INDEX_URL")
    if not index:
        return _by_tool(how, env)
    url = urljoin(index if index.endswith("/") else index + "/", f"{NAME}/")
    request = Request(url, headers={"Accept": f"{JSON}, text/html;q=0.5"})  # noqa: S310  # http(s)
    try:
        with urlopen(request, timeout=INDEX_SECONDS) as answer:  # noqa: S310  # nosec B310  # the user's own index
            body = answer.read(MAX_ANSWER_BYTES).decode("utf-8", "replace")
    except (URLError, OSError, ValueError) as error:
        why = getattr(error, "reason", None) or error
        raise Unavailable(
            f"The package index could not be reached ({_host(url)}: {why}), so the newest version is not known.",
            fix="Try again later, or set FLEET_INDEX to another index.",
            code="index_unreachable",
        ) from error
    versions = sorted(_versions(body), key=order)
    if not versions:
        raise Unavailable(
            f"The index ({_host(url)}) has no release of {NAME}.",
            fix="Set FLEET_INDEX to another index.",
            code="index_unreachable",
        )
    return versions[-1]


def _by_tool(how: Installation, env: Mapping[str, str]) -> str:
    """Ask the tool that installed Fleet, which knows the package indexes that the user set."""
    pip = ("--disable-pip-version-check", "--retries", "0", "--timeout", f"{INDEX_SECONDS:g}")
    index = (*pip, "index", "versions", NAME)
    compiled = ("compile", "--no-deps", "--no-header", "--quiet", "-")  # uv has no `index`
    argv: tuple[str, ...]
    match how.method:
        case "pipx" if pipx_backend() == "uv":  # then `runpip` is `uv pip`
            argv, stdin = ("pipx", "runpip", NAME, *compiled), f"{NAME}\n"
        case "pipx":
            argv, stdin = ("pipx", "runpip", NAME, *index), ""
        case "uv" | "uv pip":
            argv, stdin = ("uv", "pip", *compiled), f"{NAME}\n"
        case _:
            argv, stdin = (sys.executable, "-m", "pip", *index), ""
    tool = Path(argv[0]).name if argv[0] != sys.executable else "pip"
    try:
        done = subprocess.run(
            argv,
            env=dict(env),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=4 * INDEX_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _unknown(f"{tool} could not be run: {error}") from error
    match = re.search(rf"^{NAME}(?: \(|==)([^)\s;]+)", done.stdout, re.MULTILINE)
    if done.returncode or match is None:
        reason = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise _unknown(f"{tool} says: {reason.strip()[:200]}")
    return match[1]


def _unknown(why: str) -> Unavailable:
    return Unavailable(
        f"The newest version is not known: {why}.",
        fix="Try again later, or set FLEET_INDEX to another index.",
        code="index_unreachable",
    )


def _host(url: str) -> str:
    """The URL without a password."""
    return re.sub(r"//[^/@]*@", "//", url)


def _versions(body: str) -> set[str]:
    """Final releases in the index's answer: JSON, or a page of links."""
    with suppress(ValueError, AttributeError, TypeError):
        index = json.loads(body)
        names = [f["filename"] for f in index.get("files", ()) if not f.get("yanked")]
        listed = {str(v) for v in index.get("versions", ())} or set(_of(names))
        return {v for v in listed if _is_final(v)}
    return {v for v in _of(re.findall(r">\s*([^<>]+?)\s*</a>", body)) if _is_final(v)}


def _of(files: list[str]) -> list[str]:
    stem = NAME.replace("-", "[-_.]")
    matches = (re.match(rf"{stem}-([0-9][^-]*?)(?:-|\.tar\.gz$|\.zip$)", name) for name in files)
    return [match[1] for match in matches if match]


def _is_final(version: str) -> bool:
    return re.fullmatch(r"[0-9]+(\.[0-9]+)*(\.post[0-9]+)?", version) is not None


def order(version: str) -> tuple[int, ...]:
    """The sort key of a release; `1.0` and `1.0.0` are the same."""
    numbers = [int(n) for n in re.findall(r"[0-9]+", version)]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
