"""What the page is made of: plain files that run as they are, and nothing from elsewhere."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
WEB = ROOT / "src" / "fleet" / "web"
MODULES = sorted(p for p in WEB.rglob("*.js") if "vendor" not in p.parts)
IMPORT = re.compile(r"""(?:from|import\()\s*"(\.[^"]+)\"""")
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|\beval\(|new Function"
    r"|document\.cookie|https?://"
)

STYLE_SHEET = "page.css"  # the server makes one of all in `css/`


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(WEB)))
def test_every_import_is_a_file_of_the_page(module):
    for name in IMPORT.findall(module.read_text()):
        assert (module.parent / name).resolve().is_file(), name


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(WEB)))
def test_no_module_makes_html_of_text_or_names_another_server(module):
    assert FORBIDDEN.findall(module.read_text()) == []


def test_the_shell_has_no_inline_script_and_names_files_that_exist():
    shell = (WEB / "index.html").read_text()
    allowed = shell.replace(
        '<style nonce="{nonce}">', ""
    )  # the server writes both, for this answer
    assert re.findall(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=", allowed) == []
    for name in re.findall(r'(?:src|href)="/ui/{hash}/([^"]+)"', shell):
        assert (WEB / name).is_file() or name == STYLE_SHEET, name


def test_the_first_screen_needs_few_files():
    seen, todo = set(), [WEB / "app.js", WEB / "screens" / "inbox.js"]
    while todo:
        module = todo.pop()
        seen.add(module)
        static = re.findall(
            r'^(?:import|export)[^;]*?from "(\.[^"]+)";', module.read_text(), re.MULTILINE
        )
        todo += [p for name in static if (p := (module.parent / name).resolve()) not in seen]
    assert len(seen) <= 12  # each is one more request, all at once: the shell names them


def test_the_libraries_are_those_of_the_lock():
    lock = json.loads((WEB / "vendor" / "lock.json").read_text())
    files = [path for path in (WEB / "vendor").iterdir() if path.name != "lock.json"]
    assert {p.name: sha256(p.read_bytes()).hexdigest() for p in files} == lock["sha256"]


def test_the_types_are_those_of_the_operations():
    script = ROOT / "scripts" / "reference_web_types.py"
    done = subprocess.run(
        [sys.executable, script, "--check"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
