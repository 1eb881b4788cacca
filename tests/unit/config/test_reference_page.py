import re
import subprocess
import sys
from pathlib import Path

import pytest

from fleet.config.keys.table import KEYS

TOP = Path(__file__).parents[3]
REFERENCE = TOP / "docs" / "reference" / "settings.md"
GUIDE = TOP / "docs" / "how-to" / "configure.md"
TRUST = TOP / "docs" / "how-to" / "trust.md"
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)


def test_the_reference_page_is_what_the_schema_says():
    script = TOP / "scripts" / "reference_settings.py"
    done = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("key", KEYS, ids=[key.path for key in KEYS])
def test_the_reference_page_has_every_key(key):
    assert f"\n### {key.path}\n\n{key.doc}\n" in REFERENCE.read_text()


@pytest.mark.parametrize("block", BLOCKS)
def test_the_guides_examples_are_valid(world, block):
    assert world.fleet(block).trust().load().warnings == ()


def test_the_trust_page_names_everything_that_needs_trust():
    page = TRUST.read_text()
    for key in KEYS:
        if key.trust:
            section, last = key.path.split(".")[0], key.path.split(".")[-1]
            assert last in page or section in page or key.path.split(".")[1] in page, key.path
            assert key.trust in page
