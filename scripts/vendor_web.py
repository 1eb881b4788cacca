"""Make src/fleet/web/vendor from npm packages at the versions in its lock.json; needs npm.

Run it by hand after changing a version there. `--check` only compares the hashes of what is there.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

VENDOR = Path(__file__).parent.parent / "src" / "fleet" / "web" / "vendor"
LOCK = VENDOR / "lock.json"
LANGUAGES = (
    *("bash", "c", "css", "go", "ini", "java", "javascript", "json", "python"),
    *("rust", "sql", "typescript", "xml", "yaml"),
)
# What each file has. Its first lines are for the checker of types.
BUNDLES = {
    "preact.js": """\
import htm from "htm";
import { h } from "preact";
export { createContext, Fragment, h, options, render } from "preact";
export { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
export { batch, computed, effect, signal, useComputed, useSignal } from "@preact/signals";
export const html = htm.bind(h);
""",
    "dagre.js": 'export { graphlib, layout } from "@dagrejs/dagre";\n',
    "hljs.js": 'import core from "highlight.js/lib/core";\n'
    + "".join(
        f'import {name} from "highlight.js/lib/languages/{name}";\n'
        f'core.registerLanguage("{name}", {name});\n'
        for name in LANGUAGES
    )
    + "export default core;\n",
    "marked.js": 'export { Lexer } from "marked";\n',
    "virtual.js": """\
export { elementScroll, measureElement, observeElementOffset, observeElementRect, Virtualizer } from "@tanstack/virtual-core";
""",
    "qr.js": 'export { encode } from "uqr";\n',
    "xterm.js": """\
export { Terminal } from "@xterm/xterm";
export { FitAddon } from "@xterm/addon-fit";
""",
}
SHEETS = {"xterm.css": "@xterm/xterm/css/xterm.css"}
TYPES = {"preact.js": '// @ts-self-types="../preact.d.ts"\n'}
ESBUILD = ("--bundle", "--format=esm", "--minify", "--target=es2022", "--legal-comments=none")


def make() -> None:
    lock = json.loads(LOCK.read_text())
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        (place / "package.json").write_text("{}")
        names = [f"{name}@{version}" for name, version in lock["packages"].items()]
        subprocess.run(["npm", "install", "--silent", *names], cwd=place, check=True)
        for name, entry in BUNDLES.items():
            _bundle(place, name, entry)
        for name, source in SHEETS.items():
            words = (place / "node_modules" / source, "--minify", "--legal-comments=none")
            _esbuild(place, *words, f"--outfile={VENDOR / name}")
        (VENDOR / "LICENSES.txt").write_text(_licences(place, lock["packages"]))
    lock["sha256"] = {path.name: _hash(path) for path in _files()}
    LOCK.write_text(json.dumps(lock, indent=2) + "\n")


def _bundle(place: Path, name: str, entry: str) -> None:
    (place / "entry.js").write_text(entry)
    banner = f"--banner:js={TYPES.get(name, '')}// @ts-nocheck"
    _esbuild(place, "entry.js", *ESBUILD, banner, f"--outfile={VENDOR / name}")


def _esbuild(place: Path, *words: str | Path) -> None:
    subprocess.run([place / "node_modules" / ".bin" / "esbuild", *words], cwd=place, check=True)


def _licences(place: Path, names: dict[str, str]) -> str:
    """Of what is in the bundle: esbuild only makes it."""
    shipped = [name for name in names if name != "esbuild"]
    texts = (
        f"{name} {names[name]}\n\n{(place / 'node_modules' / name / 'LICENSE').read_text().strip()}\n"
        for name in shipped
    )
    return "\n\n".join(texts)


def _files() -> list[Path]:
    return sorted(path for path in VENDOR.iterdir() if path.name != LOCK.name)


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check() -> int:
    expected = json.loads(LOCK.read_text())["sha256"]
    wrong = [p.name for p in _files() if expected.get(p.name) != _hash(p)]
    wrong += sorted(expected.keys() - {p.name for p in _files()})
    if wrong:
        print(f"{', '.join(wrong)}: not what {LOCK} says. Run `python {sys.argv[0]}`.")
    return bool(wrong)


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(check())
    make()
