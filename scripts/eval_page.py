"""Writes docs/evals: the built-in suite and the comparison, with a real small model on this machine.

    .venv/bin/python scripts/eval_page.py [builtin-suite|frontier-comparison]

The node is llama.cpp with SmolLM2-135M. The "hosted" models are scripted by tests/frontier_server.py:
one sends right answers that people wrote, the other the same answers with one slip in each, and a third
judges by length. It takes some minutes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from fleet.domain.evals.page import page  # noqa: E402  # after the path
from fleet.domain.evals.result import evaluation_of  # noqa: E402  # likewise
from tests.eval_student import answer, hasty, longer  # noqa: E402  # likewise
from tests.frontier_server import KEY, FrontierServer  # noqa: E402  # likewise
from tests.real.llama_server import NAME, LlamaServer  # noqa: E402  # likewise

FOLDER = ROOT / "docs" / "evals"
FLEET_YAML = """\
nodes:
  here: {{endpoint: "{url}", kind: llamacpp}}
models:
  {name}: {{node: here, upstream: {name}, context: 8192, timeout: 600}}
"""
RIGHT, HASTY, JUDGE = "scripted/right", "scripted/hasty", "scripted/judge"
TOKENS = 300
SUITE = (
    "The node is a real llama.cpp server with SmolLM2-135M, a model of 135 million parameters, on one "
    "thread. It is far too small for these jobs: this page shows what the suite says of a model that "
    "cannot do them."
)
COMPARED = (
    "**No hosted model was asked.** The local system is real: llama.cpp with SmolLM2-135M, a model of 135 "
    f"million parameters, on one thread. `{RIGHT}` and `{HASTY}` are scripts that send answers which "
    "people wrote, the second with one slip in each; their cost is invented, and their latency is that "
    "of a file. The judge is a script too: it prefers the longer answer, and of two that are as long the "
    f"first. The replies of the local model were cut off after {TOKENS} tokens. This page shows what a comparison "
    "looks like, and says nothing about any hosted model."
)


def main(pages: list[str]) -> None:
    with (
        LlamaServer(context=8192) as llama,
        FrontierServer({RIGHT: answer, HASTY: hasty, JUDGE: longer}) as hosted,
        tempfile.TemporaryDirectory() as scratch,
    ):
        folder = Path(scratch)
        (folder / "fleet.yaml").write_text(FLEET_YAML.format(url=llama.url, name=NAME))
        if "frontier-comparison" not in pages:
            _write("builtin-suite", SUITE, _eval(folder))
        if "builtin-suite" not in pages:
            words = ["--frontier", RIGHT, "--frontier", HASTY, "--frontier-url", hosted.url]
            words += ["--judge", JUDGE, "--output-tokens", str(TOKENS)]
            _write("frontier-comparison", COMPARED, _eval(folder, *words))


def _eval(folder: Path, *words: str) -> dict[str, object]:
    env = os.environ | {"FLEET_HOME": str(folder / "home"), "OPENROUTER_API_KEY": KEY}
    argv = [sys.executable, "-m", "fleet", "eval", "--json", "--seed", "1", *words]
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise SystemExit(done.stderr)
    data: dict[str, object] = json.loads(done.stdout)["data"]
    return data


def _write(name: str, remark: str, data: dict[str, object]) -> None:
    evaluation = evaluation_of(data)
    assert evaluation is not None, data
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(data, indent=1) + "\n", "utf-8")
    (FOLDER / f"{name}.md").write_text(page(evaluation, remark), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
