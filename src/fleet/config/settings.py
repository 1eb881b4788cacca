"""The settings that the code reads, as things: `settings.run.attempts`. One field per key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class RunSettings(NamedTuple):
    attempts: int = 2
    time_limit: float = 0
    backoff: float = 10
    grace: float = 10
    stall_limit: float = 900
    gate: str = ""
    gate_limit: float = 1800
    mcp: bool = True
    env: tuple[str, ...] = ()


class BudgetSettings(NamedTuple):
    usd: float = 0
    tokens: int = 0
    minutes: float = 0


class NotifySettings(NamedTuple):
    about: tuple[str, ...] = ("asked", "failed", "done", "alert")
    desktop: bool = False
    webhook: str = ""


class WorkspaceSettings(NamedTuple):
    root: Path = Path.home() / ".fleet" / "worktrees"
    branch_prefix: str = "fleet/"
    credential_files: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    setup_timeout: float = 600
    quick: bool = False
    branch_pattern: str = ""
    teardown: tuple[str, ...] = ()
    ports: int = 0
    pool: int = 4
    pool_ignored: str = "keep"


class TmuxSettings(NamedTuple):
    prefix: str = "fleet_"


class OidcSettings(NamedTuple):
    issuer: str = ""
    audience: str = ""
    name_claim: str = "email"
    role_claim: str = "groups"
    roles: tuple[str, ...] = ()
    team_claim: str = "groups"
    teams: tuple[str, ...] = ()


class ServerSettings(NamedTuple):
    url: str = ""
    token_days: float = 90
    oidc: OidcSettings = OidcSettings()
    places: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    audit: str = "writes"
    audit_mb: int = 100


class StoreSettings(NamedTuple):
    url: str = f"sqlite:///{Path.home() / '.fleet' / 'fleet.db'}"
    schema: str = "fleet"
    pool_size: int = 0


class Settings(NamedTuple):
    max_concurrent: int = 3
    max_depth: int = 3
    coder: str = "claude"
    model: str = ""
    context_pressure_threshold_pct: int = 90
    team: str = "local"
    queue: str = "fleet"
    isolation: str = "none"
    run: RunSettings = RunSettings()
    workspace: WorkspaceSettings = WorkspaceSettings()
    store: StoreSettings = StoreSettings()
    budget: BudgetSettings = BudgetSettings()
    notify: NotifySettings = NotifySettings()
    tmux: TmuxSettings = TmuxSettings()
    server: ServerSettings = ServerSettings()


GROUPS = {
    "run": RunSettings,
    "workspace": WorkspaceSettings,
    "store": StoreSettings,
    "budget": BudgetSettings,
    "notify": NotifySettings,
    "tmux": TmuxSettings,
    "server": ServerSettings,
    "server.oidc": OidcSettings,
}


def settings_of(values: Mapping[str, Any]) -> Settings:
    """From final values by path; paths that are not settings are passed over."""
    plain: dict[str, Any] = {}
    grouped: dict[str, dict[str, Any]] = {name: {} for name in GROUPS}
    for path, value in values.items():
        group, _, name = path.rpartition(".")
        if not group and path in Settings._fields:
            plain[path] = value
        elif group in grouped:
            grouped[group][name] = value
    grouped["server"]["oidc"] = OidcSettings(**grouped.pop("server.oidc"))
    return Settings(**plain, **{name: GROUPS[name](**fields) for name, fields in grouped.items()})
