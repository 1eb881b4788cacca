"""What other programs find: bandit over the source, pip-audit over the pinned packages.

Both are installed under .cache. A check that could not be made says that it was skipped: it never passes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOOLS = ROOT / ".cache" / "audit"
PROGRAMS = ("bandit==1.9.4", "pip-audit==2.10.1")
SECONDS = 300


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=SECONDS
    )


def installed() -> bool:
    if not (TOOLS / "bin" / "pip-audit").exists():
        venv.create(TOOLS, with_pip=True)
        done = run(TOOLS / "bin" / "pip", "install", "--quiet", *PROGRAMS)
        if done.returncode:
            print(f"audit      skipped: bandit and pip-audit cannot be installed\n{done.stderr}")
            return False
    return True


def bandit() -> bool:
    """Findings of medium severity and more; ruff has the same rules in `make check`."""
    done = run(TOOLS / "bin" / "bandit", "--quiet", "--recursive", "-ll", "src")
    print("bandit     " + ("FAILED\n" + done.stdout + done.stderr if done.returncode else "ok"))
    return not done.returncode


def pip_audit() -> bool:
    words = ("--format", "json", "--progress-spinner", "off", "--no-deps", "--disable-pip")
    done = run(TOOLS / "bin" / "pip-audit", *words, "--requirement", "constraints.txt")
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        print(f"pip-audit  skipped: the advisory service cannot be reached\n{done.stderr[-500:]}")
        return True
    return judged(packages)


def judged(packages: list[dict]) -> bool:
    bad = [package for package in packages if package.get("vulns")]
    unknown = sum("skip_reason" in package for package in packages)
    for package in bad:
        ids = ", ".join(vulnerability["id"] for vulnerability in package["vulns"])
        print(f"pip-audit  {package['name']} {package['version']}: {ids}")
    if unknown:
        print(f"pip-audit  skipped: nothing is known of {unknown} of {len(packages)} packages")
    elif not bad:
        print(f"pip-audit  ok, {len(packages)} packages")
    return not bad


if __name__ == "__main__":
    sys.exit(0 if not installed() or all([bandit(), pip_audit()]) else 1)
