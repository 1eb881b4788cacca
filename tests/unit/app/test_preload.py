"""What a supervisor loads as it starts: all that it may need later, nothing of other processes."""

import subprocess
import sys
from pathlib import Path

import fleet

SOURCE = Path(fleet.__file__).parent
PRINT_LOADED = (
    "import sys; from fleet.app.coders import preload; preload(); print(*sys.modules, sep='\\n')"
)
NEEDED = ("app", "client", "domain", "operations", "supervisor", "adapters/git")


WITHOUT_A_FILE = """
import errno, sys
refused = []

def refuse(event, args):
    if event == "open" and "/yaml/" in str(args[0]) and "dumper" in str(args[0]) and len(refused) < 2:
        refused.append(args[0])  # what was compiled, and the source
        raise OSError(errno.EMFILE, "Too many open files")

sys.addaudithook(refuse)
from fleet.app.coders import preload

try:
    preload()
except OSError:
    preload()
    print(len(refused))
"""


def modules_under(folder: str) -> set[str]:
    paths = (path.relative_to(SOURCE.parent) for path in (SOURCE / folder).rglob("*.py"))
    return {".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in paths}


def test_every_module_of_the_supervisor_is_loaded_and_not_what_the_relay_needs():
    result = subprocess.run(
        [sys.executable, "-c", PRINT_LOADED], capture_output=True, text=True, check=True
    )
    loaded = set(result.stdout.splitlines())
    for folder in NEEDED:
        assert modules_under(folder) <= loaded, folder
    assert "aiohttp" not in loaded  # the relay is a process of its own; this is a third of the time


def test_what_could_not_be_loaded_for_want_of_files_is_loaded_the_next_time():
    """Half of a package would stay, and every later attempt would fail for another reason."""
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT_A_FILE], capture_output=True, text=True, check=False
    )
    assert result.stdout == "2\n", result.stderr
