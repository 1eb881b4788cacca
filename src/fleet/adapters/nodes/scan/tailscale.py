"""The machines of the tailnet, as the `tailscale` program lists them."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING

from fleet.domain.errors import Unavailable
from fleet.domain.nodes.finding import ProbedAddress, machines_of_tailscale

if TYPE_CHECKING:
    from collections.abc import Mapping

SECONDS = 10.0


def tailscale_machines(env: Mapping[str, str]) -> list[ProbedAddress]:
    """Return the machines; raise `Unavailable` when `tailscale` is not installed or fails."""
    program = shutil.which("tailscale", path=env.get("PATH"))
    if program is None:
        raise Unavailable(
            "tailscale is not on PATH.",
            fix="Install Tailscale, or scan otherwise: fleet discover --scan mdns",
            code="no_tailscale",
        )
    try:
        done = subprocess.run(
            [program, "status", "--json"],
            capture_output=True,
            timeout=SECONDS,
            check=True,
            env=dict(env),
            stdin=subprocess.DEVNULL,
        )
        return machines_of_tailscale(json.loads(done.stdout))
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        words = getattr(error, "stderr", b"") or b""
        why = words.decode("utf-8", "replace").strip()[:200] or "it did not list its machines"
        raise Unavailable(
            f"tailscale status: {why}", fix="Look at: tailscale status", code="no_tailscale"
        ) from None
