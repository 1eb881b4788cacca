"""This installation in one archive: Fleet and what it imports, for a machine without an index."""

from __future__ import annotations

import gzip
import hashlib
import io
import platform
import re
import sys
import sysconfig
import tarfile
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import fleet
from fleet.adapters.machine.installation import NAME
from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

EXTRAS = frozenset({"postgres"})
WORD = re.compile(r"[A-Za-z0-9._-]+")
EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")
QUICK = 1  # of gzip's levels: the network is rarely slower than level 9
START = """\
#!{python}
import sys
from fleet.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
# What a machine must have in common with this one to run compiled packages from here.
TAG = "import sys,sysconfig,platform; print(sys.implementation.cache_tag, sysconfig.get_platform(), platform.libc_ver()[0])"


class Bundle(NamedTuple):
    """`name`: of its folder there: the release, and a hash of all that is in it."""

    name: str
    data: bytes


def tag() -> str:
    return f"{sys.implementation.cache_tag} {sysconfig.get_platform()} {platform.libc_ver()[0]}"


def make_bundle() -> Bundle:
    files = dict(_files())
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\0".encode() + hashlib.sha256(files[name].read_bytes()).digest())
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=QUICK, mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w") as archive,
    ):
        for name in sorted(files):
            archive.add(files[name], name, recursive=False)
    return Bundle(f"{fleet.__version__}-{digest.hexdigest()[:8]}", packed.getvalue())


def _files() -> Iterator[tuple[str, Path]]:
    """The files, by the path that each has below a directory of `sys.path`."""
    package = Path(fleet.__file__).parent
    for path in package.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield f"fleet/{path.relative_to(package)}", path
    for dist in _needed():
        for file in dist.files or ():
            path = Path(str(file.locate()))
            outside = file.parts[0] == ".." or "__pycache__" in file.parts
            if not outside and file.parts[0] != "fleet" and path.is_file():
                yield str(file), path


def _needed() -> list[metadata.Distribution]:
    """The installed packages that Fleet needs, itself first."""
    distributions: dict[str, metadata.Distribution] = {}
    queue: list[tuple[str, frozenset[str]]] = [(NAME, EXTRAS)]
    while queue:
        name, extras = queue.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        try:
            dist = distributions.get(key) or metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # of another system, or of an extra that is not installed here
        if key in distributions and not extras:
            continue
        distributions[key] = dist
        queue += _requirements(dist, extras)
    return [*distributions.values()]


def _requirements(
    dist: metadata.Distribution, extras: frozenset[str]
) -> Iterator[tuple[str, frozenset[str]]]:
    for line in dist.requires or ():
        what, _, marker = line.partition(";")
        wanted = EXTRA.search(marker)
        if wanted and wanted[1] not in extras:
            continue
        if match := WORD.match(what):
            inner = re.search(r"\[([^\]]+)\]", what)
            yield match[0], frozenset(WORD.findall(inner[1])) if inner else frozenset()
