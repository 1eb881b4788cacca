"""The settings of a coder of the user's own: how it is started, and how its output reads."""

from __future__ import annotations

from fleet.config.keys.key import RUNS, in_files

CODER_KEYS = (
    in_files(
        "coders.*.command",
        "texts",
        (),
        "The program and its arguments. `{prompt}`, `{model}`, `{instructions}`, "
        "`{instructions_file}`, `{permissions}` and `{gateway}` in it are replaced; without "
        "`{prompt}` the prompt is its standard input. An argument that would be empty is left "
        "out, with the flag before it.",
        trust=RUNS,
    ),
    in_files(
        "coders.*.resume",
        "texts",
        (),
        "The command for a conversation that goes on: as `command`, with `{session}`. Without it "
        "every run is a new conversation.",
        trust=RUNS,
    ),
    in_files(
        "coders.*.says.*",
        "line",
        None,
        "For a program that prints a JSON object on every line: where in it stands `session`, `text`, `thinking`, `tool`, "
        "`tool_result`, `error`, `result`, `failed`, `input`, `output`, `cached`, `context` or "
        "`usd`. The value is a path such as `message.text`; before it may stand conditions, as in "
        "`type=result response.text`. With nothing said here its output is text.",
    ),
    in_files(
        "coders.*.counts",
        "choice",
        "each",
        "Whether a line's `input`, `output`, `cached` and `usd` are of `each` reply, and add up, "
        "or the `total` of the run so far.",
        choices=("each", "total"),
    ),
    in_files(
        "coders.*.window",
        "whole",
        128_000,
        "Tokens of its context, where the model is not one of `models`.",
        low=1,
    ),
)
