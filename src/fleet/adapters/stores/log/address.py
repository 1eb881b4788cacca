"""The addresses of stores in a cloud service, and how one of them is opened.

s3://BUCKET/PREFIX?region=eu-central-1&endpoint=http://127.0.0.1:9000
dynamodb://TABLE/PREFIX?region=us-east-1
firestore://PROJECT/PREFIX
"""

from __future__ import annotations

from hashlib import sha256
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from fleet.adapters.stores.log.store import LogStore
from fleet.domain.data import NamedTuple
from fleet.domain.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fleet.adapters.home.bell import Bell

LOGS = {"s3": "s3:S3Log", "dynamodb": "dynamodb:DynamoLog", "firestore": "firestore:FirestoreLog"}
OPTIONS = {"region", "endpoint"}


class LogAddress(NamedTuple):
    kind: str
    name: str  # of the bucket, the table or the project
    prefix: str
    region: str = ""
    endpoint: str = ""


def address_of(url: str) -> LogAddress:
    parts = urlsplit(url)
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    if unknown := sorted(options.keys() - OPTIONS):
        raise BadInput(
            f"The store's address has an unknown option: {unknown[0]}.",
            fix=f"Use {' or '.join(sorted(OPTIONS))}.",
        )
    if not parts.netloc:
        raise BadInput(
            "The store's address has no name after ://.", fix=f"{parts.scheme}://NAME/PREFIX"
        )
    prefix = parts.path.strip("/")
    return LogAddress(parts.scheme, parts.netloc, f"{prefix}/" if prefix else "", **options)


def open_url(
    url: str,
    bell: Bell | None,
    taken: Callable[[str], bool] | None,
    *,
    copies: Path,
    copying: bool = False,
    **_others: object,
) -> LogStore:
    """`copies`: the folder for this host's copies of logs."""
    address = address_of(url)
    module, _, name = LOGS[address.kind].partition(":")
    log = getattr(import_module(f"fleet.adapters.stores.log.{module}"), name)(address)
    for folder in (copies.parent, copies):
        folder.mkdir(mode=0o700, exist_ok=True)
    file = f"{address.kind}-{sha256(url.encode()).hexdigest()[:16]}.db"
    return LogStore(log, copies / file, bell=bell, taken=taken, copying=copying)
