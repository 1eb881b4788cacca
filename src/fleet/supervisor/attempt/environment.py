"""Choose the variables of the server's environment that an agent or a gate inherits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.forges.kinds import TOKENS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

# Set by an outer agent, or by a git hook that called us. Coders drop their own variables.
NOT_INHERITED = ("FLEET_RUN_", "FLEET_TASK_", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
KEY = (
    "JWT_SECRET",  # whoever has it can sign any token
    *TOKENS,  # of forges: whoever has one can merge and write publicly
    "FLEET_HOOK_",  # whoever has it can queue tasks
)
STORE = ("DATABASE_URL", "POSTGRESQL_")  # prefixes of variables that hold the store's password
PROVIDER_KEYS = ("_API_KEY", "_AUTH_TOKEN", "_OAUTH_TOKEN")  # how their names end
OTHER_PROVIDER_KEYS = frozenset({"HF_TOKEN", "LITELLM_MASTER_KEY"})
NO_KEYS: tuple[str, ...] = ()  # for a gate, which needs no model, and a coder that uses the gateway


def inherited(env: Mapping[str, str], *, store_url: str, passed: Collection[str]) -> dict[str, str]:
    """Return the environment without the server's secrets: its token key and the store's password.

    `store_url` is the address of the store; when empty, the agent opens the store itself and keeps
    its password. `passed` are the names in the setting `run.env`.
    """

    def is_inherited(name: str, value: str) -> bool:
        if name.startswith(NOT_INHERITED + KEY):
            return False
        if not store_url or name in passed:
            return True
        return not name.startswith(STORE) and not ("://" in value and value == store_url)

    return {name: value for name, value in env.items() if is_inherited(name, value)}


def for_coder(
    env: Mapping[str, str],
    own: tuple[str, ...] | None,
    *,
    passed: Collection[str],
    node_keys: Collection[str] = (),
) -> dict[str, str]:
    """Return the environment without the keys of nodes and of other providers.

    `own`: how the names of the variables of the coder's own provider begin. None: the coder may use
    any provider, so it gets all keys.
    """
    if own is None:
        return dict(env)
    return {
        name: value
        for name, value in env.items()
        if name in passed
        or not (is_provider_key(name) or name in node_keys)
        or (own and name.startswith(own))
    }


def is_provider_key(name: str) -> bool:
    return name.endswith(PROVIDER_KEYS) or name in OTHER_PROVIDER_KEYS
