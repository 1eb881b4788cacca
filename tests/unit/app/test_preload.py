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
