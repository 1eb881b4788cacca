"""Which variables of the server's environment an agent, or a gate, is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.forges.kinds import TOKENS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

# Set by an outer agent, or by a git hook that called us. Coders drop their own variables.
NOT_INHERITED = ("FLEET_RUN_", "FLEET_TASK_", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
KEY = (
    "JWT_SECRET",  # its holder can make every token
    *TOKENS,  # their holder can merge, and write where everybody reads
    "FLEET_HOOK_",  # its holder can queue tasks
)
STORE = ("DATABASE_URL", "POSTGRESQL_")  # with the store's password
PROVIDER_KEYS = ("_API_KEY", "_AUTH_TOKEN", "_OAUTH_TOKEN")  # how their names end
OTHER_PROVIDER_KEYS = frozenset({"HF_TOKEN", "LITELLM_MASTER_KEY"})
NO_KEYS: tuple[str, ...] = ()  # for what needs no model: a gate, a coder that asks the gateway


def inherited(env: Mapping[str, str], *, store_url: str, passed: Collection[str]) -> dict[str, str]:
    """Without the server's own secrets: the key that signs tokens, and the store's password.

    `store_url` is the address of the store; empty: the agent must open the store itself. `passed`
    are the names in the setting `run.env`.
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
    """With the keys of the coder's own provider alone; only the relay needs those of nodes.

    `own`: how the names of its provider's variables begin. None: it works with any provider, as its
    own settings say, and gets all keys.
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
