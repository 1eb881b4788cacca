"""The settings as records with one field for each key, such as `settings.run.attempts`."""

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
    commit: str = "auto"
    mcp: bool = True
    env: tuple[str, ...] = ()


class LandSettings(NamedTuple):
    auto: bool = False
    gate: str = ""
    onto: str = ""
    push: bool = False
    pr: bool = False
    merge: bool = False
    remote: str = "origin"
    slots: int = 2
    tries: int = 3
    reconciler: str = ""
    environment: tuple[str, ...] = ()


class ForgeSettings(NamedTuple):
    hosts: tuple[str, ...] = ()


class HookSettings(NamedTuple):
    secrets: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    label: str = "fleet"
    project: str = ""


class BudgetSettings(NamedTuple):
    usd: float = 0
    tokens: int = 0
    minutes: float = 0


class NotifySettings(NamedTuple):
    """Every field but the first turns on the channel of its name."""

    about: tuple[str, ...] = ("asked", "failed", "done", "alert")
    desktop: bool = False
    webhook: str = ""

    @property
    def any_channel(self) -> bool:
        return any(self[1:])


class ContainerSettings(NamedTuple):
    program: str = "bubblewrap"
    image: str = ""
    network: str = "full"
    mounts: tuple[str, ...] = (
        "~/.claude",
        "~/.claude.json",
        "~/.codex",
        "~/.config/opencode",
        "~/.local/share/opencode",
        "~/.gemini",
        "~/.cache",
    )


class LimitSettings(NamedTuple):
    memory: str = "4GiB"
    cpus: float = 2
    pids: int = 1024


class WorkspaceSettings(NamedTuple):
    root: Path = Path.home() / ".fleet" / "worktrees"
    branch_prefix: str = "fleet/"
    credential_files: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    setup_timeout: float = 600
    setup_cache: tuple[str, ...] = ("auto",)
    quick: bool = False
    branch_pattern: str = ""
    teardown: tuple[str, ...] = ()
    ports: int = 0
    pool: int = 4
    pool_ignored: str = "keep"
    isolation: str = "none"
    container: ContainerSettings = ContainerSettings()
    limits: LimitSettings = LimitSettings()


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
    streams: int = 100


class HostSettings(NamedTuple):
    labels: tuple[str, ...] = ()
    server: str = ""


class StoreSettings(NamedTuple):
    url: str = f"sqlite:///{Path.home() / '.fleet' / 'fleet.db'}"
    schema: str = "fleet"
    pool_size: int = 0
    lease: int = 300


class RetentionSettings(NamedTuple):
    events: float = 365
    tasks: float = 730
    kept: float = 180
    transcripts: float = 90
    transcripts_mb: int = 1500


class Settings(NamedTuple):
    max_concurrent: int = 3
    max_depth: int = 3
    coder: str = "claude"
    model: str = ""
    context_pressure_threshold_pct: int = 90
    team: str = "local"
    queue: str = "fleet"
    run: RunSettings = RunSettings()
    workspace: WorkspaceSettings = WorkspaceSettings()
    store: StoreSettings = StoreSettings()
    host: HostSettings = HostSettings()
    retention: RetentionSettings = RetentionSettings()
    budget: BudgetSettings = BudgetSettings()
    land: LandSettings = LandSettings()
    forge: ForgeSettings = ForgeSettings()
    hooks: HookSettings = HookSettings()
    notify: NotifySettings = NotifySettings()
    tmux: TmuxSettings = TmuxSettings()
    server: ServerSettings = ServerSettings()


GROUPS = {
    "run": RunSettings,
    "land": LandSettings,
    "forge": ForgeSettings,
    "hooks": HookSettings,
    "workspace": WorkspaceSettings,
    "workspace.container": ContainerSettings,
    "workspace.limits": LimitSettings,
    "store": StoreSettings,
    "host": HostSettings,
    "retention": RetentionSettings,
    "budget": BudgetSettings,
    "notify": NotifySettings,
    "tmux": TmuxSettings,
    "server": ServerSettings,
    "server.oidc": OidcSettings,
}


def settings_of(values: Mapping[str, Any]) -> Settings:
    """Make the settings of final values by path; paths that are not settings are passed over."""
    plain: dict[str, Any] = {}
    grouped: dict[str, dict[str, Any]] = {name: {} for name in GROUPS}
    for path, value in values.items():
        group, _, name = path.rpartition(".")
        if not group and path in Settings._fields:
            plain[path] = value
        elif group in grouped:
            grouped[group][name] = value
    for inner in [name for name in GROUPS if "." in name]:
        group, _, name = inner.partition(".")
        grouped[group][name] = GROUPS[inner](**grouped.pop(inner))
    return Settings(**plain, **{name: GROUPS[name](**fields) for name, fields in grouped.items()})
