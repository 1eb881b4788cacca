import subprocess
import sys

from tests.docs.tree import TOP


def test_the_security_page_says_what_each_role_may_cause():
    """Every cell is asked of a server in `tests/integration/test_causes.py`."""
    argv = [sys.executable, "scripts/reference_causes.py", "--check"]
    done = subprocess.run(argv, cwd=TOP, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
