"""Write docs/reference/settings.md from the schema; `--check` only says whether it is stale."""

from __future__ import annotations

import sys
from pathlib import Path

from fleet.config.files.yaml_edit import rendered
from fleet.config.keys.kinds import LISTS
from fleet.config.keys.lookup import variable
from fleet.config.keys.table import (
    DECLARED,
    NAMES,
    NEEDLESS,
    PROJECT,
    REFUSED,
    SETTINGS,
    SettingKey,
)

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "settings.md"
HEAD = """\
# Settings

Made from the schema by `scripts/reference_settings.py`; do not edit.

Settings are in layers, and a later one wins: the defaults, your own `$FLEET_HOME/config.yaml`, the
project's `fleet.yaml`, the environment, flags. Mappings merge by key, lists replace.
`fleet config --show-origin` names the layer of every value; [Configure](../how-to/configure.md) shows
how to set them, and [Trust](../how-to/trust.md) what a project may not set on its own.

`*` in a path is a name that you choose. A setting without a variable can only be set in a file or by
`fleet config set`. An empty variable counts as not set. A list in a variable is `["one", "two"]`, or one
item per line. A path may begin with `~` or `$FLEET_HOME`, and is otherwise relative to the file that
sets it. Top-level keys of a file that begin with `x-` are ignored; use them for YAML anchors.
"""
KINDS = {
    "text": "text",
    "private": "text, never shown",
    "line": "one line of text",
    "word": "letters, digits, `.` `_` `-`",
    "coder": "a coder's name",
    "whole": "a whole number",
    "number": "a number",
    "flag": "`true` or `false`",
    "texts": "a list of texts",
    "inside": "a list of paths inside the project",
    "pairs": "a list of `VALUE=MEANING`",
    "networks": "a list of IP addresses and networks",
    "path": "a path",
    "branch": "what git allows in a branch's name",
    "pattern": "a regular expression, as Python reads it",
    "host": "a host name or address",
    "url": "an `http` or `https` address",
    "store": "a store's address",
    "address": "an http address, or a reference to one",
    "variable": "the name of a variable",
    "secret": "a reference to a key",
    "mac": "a hardware address",
    "address_port": "an address, with or without a port",
    "size": "an amount of memory, such as `24GB`",
}
SECTIONS = {
    "": ("Work", "Settings of the supervisor and of tasks."),
    "run": ("run", "One run of a task."),
    "land": ("land", "How finished work comes to its branch."),
    "hooks": ("hooks", "Events of forges that queue tasks."),
    "forge": ("forge", "Forges: where pull requests are opened, and where tickets come from."),
    "workspace": ("workspace", "Where runs change files."),
    "budget": (
        "budget",
        "What all runs of a task together may cost; when it is spent, Fleet asks you whether to continue.",
    ),
    "notify": ("notify", "How Fleet notifies you when something needs you."),
    "server": ("The server", "What clients of `fleet serve` may do."),
    "tmux": (
        "tmux",
        (
            "The terminals that agents run in. They are on a tmux server of Fleet's own, so `tmux ls` does "
            "not show them."
        ),
    ),
    "host": ("host", "This machine, among those that share a store."),
    "store": ("store", "Where tasks, runs and events are kept."),
    "retention": ("retention", "How long what is no longer needed is kept."),
    "project": ("project", "The fleet itself. `gateway` may also be at the top of the file."),
    "nodes": ("nodes", "The places that serve models."),
    "models": (
        "models",
        (
            "The names that requests are routed by. Models with one alias and one upstream name are one "
            "model, served by all their nodes in the order of the file."
        ),
    ),
    "agents": (
        "agents",
        (
            "The roles. Every coder's name is also an agent with defaults, which an entry of that name "
            "changes; any other entry needs `model` and `description`, or `coder`."
        ),
    ),
    "coders": (
        "coders",
        (
            "Coders of your own, beside Fleet's: programs that are started by a command. "
            "[Add a coder](../how-to/add-a-coder.md) builds one."
        ),
    ),
    "routes": (
        "routes",
        "Rules that choose the agent or model of a task by what it is; the first that matches decides.",
    ),
    "mcp_servers": ("mcp_servers", "Servers that agents may use over MCP."),
}


def reference() -> str:
    parts = [HEAD]
    for section, (title, words) in SECTIONS.items():
        keys = [key for key in (*SETTINGS, *DECLARED) if section_of(key) == section]
        parts.append(f"## {title}\n\n{words}{name_rule(section)}\n")
        parts += [key_part(key) for key in keys]
    needless = [f"| `{path}` | it is not needed: {why} |" for path, why in NEEDLESS.items()]
    refused = [f"| `{path}` | {why} |" for path, why in REFUSED.items()]
    parts.append(
        "## Settings of subagent-fleet that did nothing\n\n"
        "`false` asks for nothing, and is valid. The first two are warnings, the others are refused.\n\n"
        + "\n".join(["| key | instead |", "|---|---|", *needless, *refused])
        + "\n"
    )
    return "\n".join(parts)


def section_of(key: SettingKey) -> str:
    head, _, rest = key.path.partition(".")
    return head if rest else ""


def name_rule(section: str) -> str:
    return f" Their names are made of {NAMES[section].words}." if section in NAMES else ""


def key_part(key: SettingKey) -> str:
    facts = [values(key), default(key)]
    names = [f"`{name}`" for name in (variable(key), *key.env) if name]
    facts += [f"variable {', '.join(names)}"] if names else []
    older = [f"`{name}`" for name in key.also]
    facts += [f"also written {', '.join(older)}"] if older else []
    facts += [] if PROJECT in key.layers else ["not in a project's file"]
    facts += (
        [f"in a project's file it [needs trust](../how-to/trust.md): {key.trust}"]
        if key.trust
        else []
    )
    return f"### {key.path}\n\n{key.doc}\n\n" + "\n".join(f"- {fact}" for fact in facts) + "\n"


def values(key: SettingKey) -> str:
    if key.choices:
        return "one of " + ", ".join(f"`{choice}`" for choice in key.choices)
    words = KINDS[key.kind]
    if key.low is not None and key.high is not None:
        return f"{words} from {key.low} to {key.high}"
    return words if key.low is None else f"{words}, at least {key.low}"


def default(key: SettingKey) -> str:
    if key.default is None:
        return "no default"
    value = list(key.default) if key.kind in LISTS else key.default
    return f"default `{rendered(value)}`"


if __name__ == "__main__":
    from write_page import main

    sys.exit(main(PAGE, reference()))
