"""Settings of workspaces: how they are named, furnished, kept for the next task and removed."""

from __future__ import annotations

from fleet.config.keys.key import RUNS, Key

WORKSPACE_KEYS = (
    Key(
        "workspace.branch_pattern",
        "pattern",
        "",
        "A regular expression that the name of every new branch must match as a whole; empty: any.",
    ),
    Key(
        "workspace.teardown",
        "texts",
        (),
        "Shell commands run in a worktree, in order, before it is removed. One that fails is told "
        "of, and the rest goes on. Each may take `setup_timeout`.",
        trust=RUNS,
    ),
    Key(
        "workspace.ports",
        "whole",
        0,
        "How many ports each workspace has to itself on this host, from `$FLEET_PORT_BASE` on.",
        low=0,
        high=100,
    ),
    Key(
        "workspace.pool",
        "whole",
        4,
        "How many used worktrees of each repository are kept for the next tasks; 0 is none.",
        low=0,
        high=1000,
    ),
    Key(
        "workspace.pool_ignored",
        "choice",
        "keep",
        "What becomes of files that git ignores when a worktree is kept for the next task.",
        choices=("keep", "clean"),
    ),
)
