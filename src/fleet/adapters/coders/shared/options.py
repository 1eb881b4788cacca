"""What every adapter reads from `Brief.options`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast
from urllib.parse import quote

from fleet.domain.data import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.ports import Brief

Permissions = Literal["read", "edit", "full"]


AGENT_HEADER = "x-fleet-agent"
RUN_HEADER = "x-fleet-run"
PROJECT_HEADER = "x-fleet-project"
LONGEST_ARGUMENT = 120_000  # bytes in one argument; the kernel takes 128 KiB


@dataclass(frozen=True, slots=True)
class GatewayOption:
    """The gateway to send requests to, instead of the user's own login."""

    url: str  # without `/v1`
    key_env: str  # the variable of the run's environment that holds the key
    context: int = 0  # tokens that the model takes; 0: unknown
    agent: str = ""  # whose requests these are, for who reads traces
    run: str = ""
    project: str = ""  # its directory: a gateway may serve several

    @property
    def headers(self) -> dict[str, str]:
        """Headers that name the agent and the project; the gateway passes them on."""
        project = quote(self.project)
        values = {AGENT_HEADER: self.agent, RUN_HEADER: self.run, PROJECT_HEADER: project}
        return {name: value for name, value in values.items() if value}


@dataclass(frozen=True, slots=True)
class TeamTools:
    """Our MCP server, for one run: as a `command` that speaks on its pipes, or at a `url`."""

    url: str = ""  # empty: no server runs
    token_env: str = ""  # the variable of the run's environment that holds the token
    command: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()  # the variables that the command needs


def team_tools(brief: Brief) -> TeamTools | None:
    given = cast("Mapping[str, Any] | None", brief.options.get("mcp"))
    if not given:
        return None
    return TeamTools(
        str(given.get("url", "")),
        str(given.get("token_env", "")),
        tuple(given.get("command", ())),
        tuple(given.get("passes", ())),
    )


def gateway(brief: Brief) -> GatewayOption | None:
    given = cast("Mapping[str, object] | None", brief.options.get("gateway"))
    if not given:
        return None
    url = str(given["base_url"]).rstrip("/").removesuffix("/v1")
    context, agent = int(str(given.get("context", 0))), str(given.get("agent", ""))
    project = str(given.get("project", ""))
    return GatewayOption(url, str(given["key_env"]), context, agent, brief.run_id, project)


def permissions(brief: Brief) -> Permissions:
    given = brief.options.get("permissions", "edit")
    return given if given in {"read", "edit", "full"} else "read"


def strings(brief: Brief, name: str) -> tuple[str, ...]:
    """`extra_args`, `command`, `writable`: a list of words, or nothing."""
    given = brief.options.get(name) or ()
    return tuple(str(one) for one in cast("tuple[object, ...]", given))


def first_words(brief: Brief, *, when_resumed: bool = True) -> tuple[tuple[str, ...], str | None]:
    """The prompt of a program with a screen: as its argument; or, if that cannot be, to be pasted.

    It cannot when it is too long; nor, unless `when_resumed`, in a conversation that goes on.
    """
    if not brief.prompt:
        return (), None
    fits = len(brief.prompt.encode()) <= LONGEST_ARGUMENT and (when_resumed or not brief.session)
    return ((brief.prompt,), None) if fits else ((), brief.prompt)


def artifact_dir(brief: Brief) -> str:
    """Where a run writes its notes, whatever its permissions are."""
    return brief.env.get("FLEET_ARTIFACT_DIR") or str(Path(brief.task_dir, "artifacts"))
