import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "scripts" / "reference_commands.py"


def test_the_reference_of_commands_is_what_the_code_says():
    found = subprocess.run(
        [sys.executable, SCRIPT, "--check"], capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stderr) == (0, "")


def test_a_command_is_shown_with_its_usage_and_options():
    code = "from reference_commands import command_parts; print(*command_parts('completion'))"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=SCRIPT.parent, capture_output=True, text=True, check=True
    )
    assert "### fleet completion\n\nPrint a shell's completion script. *Local.*\n" in found.stdout
    assert "```text\nfleet completion [OPTIONS] {bash|fish|zsh}\n```" in found.stdout
    assert "| `--json` | Print one JSON document instead of text. |" in found.stdout
