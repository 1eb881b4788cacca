"""`fleet eval`: whether every node can do its job, and how the fleet compares with hosted models."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleet.cli.compute.eval_views import detail_view, progress
from fleet.cli.terminal.connect import connect, connect_here
from fleet.cli.terminal.frame import command, wants_json
from fleet.cli.terminal.view import Result
from fleet.domain.errors import BadInput, NotFound, Unavailable, nearest

if TYPE_CHECKING:
    from fleet.app.compute.evaluate import EvalFilter, Evals, Evaluating
    from fleet.domain.evals.result import Evaluation

BILL = "{0} costs money, so it is asked only when it is named: --node {0}."
BARE = "Code of answers was run with limits on time and memory only: install bubblewrap."
OPEN = "Code of answers could reach the network: install bubblewrap."


@command("eval", config=True)
@click.option("--suite", metavar="builtin|DIR", default="builtin", help="The cases to ask.")
@click.option("--agent", metavar="NAME", default="", help="Only this agent's model and jobs.")
@click.option("--node", metavar="NAME", default="", help="Only this node.")
@click.option("--model", metavar="NAME", default="", help="Only this model, by its name or alias.")
@click.option(
    "--all", "every", is_flag=True, help="Ask every case, not only those of the agents' jobs."
)
@click.option(
    "--output-tokens",
    type=click.IntRange(min=16, max=100_000),
    help="The maximum tokens of a reply, instead of each case's own limit; for models that think first.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=1),
    help="The seed of an earlier eval: ask the same cases again.",
)
@click.option(
    "--frontier",
    metavar="MODEL",
    multiple=True,
    help="Compare with this hosted model on eight coding tasks; may be given several times.",
)
@click.option(
    "--judge",
    metavar="MODEL",
    default="",
    help="A hosted model that compares the answers to those tasks.",
)
@click.option("--frontier-url", metavar="URL", help="The address of the hosted models' API.")
@click.option(
    "--key-env", metavar="NAME", help="The environment variable with the key for that API."
)
@click.option(
    "--junit",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the results as JUnit XML, for a CI server.",
)
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Also write the results as JSON and as a Markdown page.",
)
def eval_(
    *, suite: str, agent: str, node: str, model: str, every: bool, output_tokens: int | None,
    seed: int | None, frontier: tuple[str, ...], judge: str, frontier_url: str | None,
    key_env: str | None, junit: Path | None, out: Path | None, config: Path | None,
) -> Result:  # fmt: skip
    """Ask every node to do its job, and check what it does.

    Each model is asked the jobs of the agents that use it. Answers are checked by what they do: code
    is run against tests in a sandbox, numbers are new in every run, of several items most must be
    right. A node that goes offline fails its cases. Exit status 1 if a case failed.

    With --frontier, eight coding tasks with hidden tests go to the local models and to hosted ones,
    at OpenRouter unless --frontier-url names another API. That costs money. The key is read from
    OPENROUTER_API_KEY.

    `fleet recommend` uses the results; `fleet evals` lists them.
    """
    from fleet.app.compute.evaluate import BUILTIN, EvalFilter, Evals
    from fleet.cli.compute.nodes import named_model
    from fleet.domain.evals.result import data_of
    from fleet.operations.compute.evals import detail_of

    evals = Evals(connect_here(config=config).app)
    _make_room(junit, out)
    wanted = EvalFilter(
        agent, _node(evals, node), model and named_model(evals.fleet, model).name, every
    )
    if not frontier:
        _refuse_frontier(judge, frontier_url, key_env)
        folder = None if suite == BUILTIN else Path(suite)
        made, dear, path = _suite(evals, suite, folder, seed, wanted, output_tokens)
    else:
        options = (list(frontier), judge, frontier_url, key_env)
        made, dear, path = _compare(evals, options, wanted, output_tokens)
    notes = [BILL.format(each) for each in dear] + _isolation_notes(made.isolation)
    notes += _written(made, junit, out)
    notes.append(f"Kept as {made.id} in {path.parent}.")
    return Result(
        "eval", data_of(made), detail_view(detail_of(made)), notes, 1 if _is_bad(made) else 0
    )


def _node(evals: Evals, node: str) -> str:
    nodes = evals.fleet.nodes
    if node and node not in nodes:
        fix = nearest(node, nodes) or f"Nodes: {', '.join(nodes)}."
        raise NotFound(f"There is no node '{node}'.", fix=fix)
    return node


def _refuse_frontier(judge: str, url: str | None, key_env: str | None) -> None:
    for name, value in (("--judge", judge), ("--frontier-url", url), ("--key-env", key_env)):
        if value:
            raise BadInput(f"{name} needs --frontier MODEL.", fix="Name a hosted model.")


def _suite(
    evals: Evals,
    name: str,
    folder: Path | None,
    seed: int | None,
    wanted: EvalFilter,
    output: int | None,
) -> tuple[Evaluation, list[str], Path]:
    import secrets

    number = seed or 1 + secrets.randbelow(999_999)
    subjects, dear = evals.subjects(folder, number, wanted)
    evaluating = evals.start(subjects, output or 0)
    _wait(evaluating)
    rows = [step.row for step in evaluating.steps()]
    made, path = evals.keep(name, number, rows)
    return made, dear, path


def _compare(
    evals: Evals,
    options: tuple[list[str], str, str | None, str | None],
    wanted: EvalFilter,
    output: int | None,
) -> tuple[Evaluation, list[str], Path]:
    from fleet.app.compute.evaluate import ADDRESS, KEY, Comparison

    models, judge, url, key_env = options
    hosted = evals.hosted(url or ADDRESS, key_env or KEY)
    comparison = Comparison(evals, hosted, models, judge)
    subjects, dear = comparison.subjects(wanted)
    evaluating = evals.start(subjects, output or 0)
    _wait(evaluating)
    made, path = comparison.keep(evaluating)
    return made, dear, path


def _wait(evaluating: Evaluating) -> None:
    from fleet.cli.terminal.live import Live

    if wants_json():
        while not evaluating.wait(1.0):
            pass
        return
    with Live() as live:
        while not evaluating.wait(0.2):
            if live.redraws:
                live.update(progress(evaluating.steps()))
        if live.redraws:
            live.update(progress(evaluating.steps()))


def _isolation_notes(isolation: str) -> list[str]:
    if isolation == "limits only":
        return [BARE]
    return [] if "bubblewrap" in isolation or "network" in isolation else [OPEN]


def _is_bad(made: Evaluation) -> bool:
    """Whether to exit with status 1: a case failed or, in a comparison, a system could not be asked."""
    if made.kind == "suite":
        return made.failed
    return any(not case.seconds for row in made.rows for case in row.cases)


def _written(made: Evaluation, junit: Path | None, out: Path | None) -> list[str]:
    import json
    from datetime import UTC, datetime

    from fleet.domain.evals.page import page
    from fleet.domain.evals.result import data_of
    from fleet.domain.evals.result import junit as as_junit

    files: list[tuple[Path, str]] = [(junit, as_junit(made))] if junit else []
    if out:
        day = datetime.fromtimestamp(made.at / 1_000_000, UTC)
        stem = "frontier-comparison" if made.kind == "frontier" else "eval"
        name = f"{stem}-{day:%Y-%m-%d}"
        files += [
            (out / f"{name}.json", json.dumps(data_of(made), indent=1) + "\n"),
            (out / f"{name}.md", page(made)),
        ]
    return [_write(made.id, path, text) for path, text in files]


def _make_room(junit: Path | None, out: Path | None) -> None:
    """Make the folder for the results first: asking the models takes long and may cost money."""
    folders = [("--junit", junit.parent)] if junit else []
    folders += [("--out", out)] if out else []
    for option, folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            why = "" if os.access(folder, os.W_OK) else "no permission"
        except OSError as error:
            why = (error.strerror or str(error)).lower()
        if why:
            message = f"Results cannot be written to {folder}: {why}."
            raise Unavailable(message, fix=f"Give another place: {option}.")


def _write(made: str, path: Path, text: str) -> str:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror}."
        raise Unavailable(message, fix=f"The results are kept: fleet evals {made}") from None
    return f"Written to {path}."


@command()
@click.argument("evaluation", metavar="[ID]", required=False, default="")
@click.option("--limit", type=click.IntRange(min=1, max=100), default=20, help="At most this many.")
def evals(*, evaluation: str, limit: int) -> Result:
    """List the kept results of `fleet eval`, newest first, or show one of them."""
    from fleet.cli.compute.eval_views import list_view
    from fleet.operations.compute.evals import ListEvals, ShowEval

    client = connect()
    if evaluation:
        one = client.call(ShowEval(evaluation))
        return Result("eval", one, detail_view(one))
    rows = client.call(ListEvals(limit=limit))
    return Result("evals", rows, list_view(rows))
