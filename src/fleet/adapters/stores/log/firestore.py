"""The commit log in Firestore: a document for each entry, which can be created once."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from google.api_core.exceptions import AlreadyExists, GoogleAPIError
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import GoogleAuthError
from google.cloud import firestore
from google.cloud.firestore_v1.base_query import FieldFilter

from fleet.adapters.stores.log.parts import NO_PARTS, BlobParts, whole
from fleet.domain.errors import StoreAway

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.adapters.stores.log.address import LogAddress

DOCUMENT_BYTES = 900_000  # a document may have 1 MiB, its name and fields included
SECONDS = 10.0  # for one request
EMULATOR = "FIRESTORE_EMULATOR_HOST"


class FirestoreLog:
    most = DOCUMENT_BYTES

    def __init__(self, address: LogAddress) -> None:
        with reachable():
            credentials = AnonymousCredentials() if EMULATOR in os.environ else None
            self._db: Any = firestore.Client(project=address.name, credentials=credentials)
        prefix = address.prefix.replace("/", "_")
        self._entries = self._db.collection(f"{prefix}log")
        self._blobs = self._db.collection(f"{prefix}blobs")

    def append(self, number: int, entry: bytes) -> bool:
        with reachable():
            try:
                self._document(number).create({"n": number, "body": entry}, timeout=SECONDS)
            except AlreadyExists:
                return False
        return True

    def read(self, after: int, limit: int) -> list[tuple[int, bytes]]:
        entries: list[tuple[int, bytes]] = []
        query = self._entries.where(filter=FieldFilter("n", ">", after)).order_by("n").limit(limit)
        with reachable():
            for document in query.stream(timeout=SECONDS):
                if document.get("n") != after + len(entries) + 1:
                    break  # never before a number that is not there yet
                entries.append((document.get("n"), document.get("body")))
        return entries

    def put(self, name: str, blob: bytes) -> None:
        """Write in parts; the document that says how many there are comes last, then the old parts are deleted."""
        starts = range(0, len(blob) or 1, DOCUMENT_BYTES)
        parts = [blob[at : at + DOCUMENT_BYTES] for at in starts]
        mark = f"{name}-{os.urandom(8).hex()}"
        old = self._parts(name)
        with reachable():
            for number, part in enumerate(parts):
                self._blobs.document(f"{mark}-{number}").set({"body": part}, timeout=SECONDS)
            fields = {"parts": len(parts), "mark": mark}
            self._blobs.document(name).set(fields, timeout=SECONDS)
            for number in range(old.total):
                self._blobs.document(f"{old.mark}-{number}").delete(timeout=SECONDS)

    def get(self, name: str) -> bytes | None:
        return whole(lambda: self._parts(name), self._read_parts)

    def _parts(self, name: str) -> BlobParts:
        with reachable():
            document = self._blobs.document(name).get(timeout=SECONDS)
        return (
            BlobParts(document.get("mark"), document.get("parts")) if document.exists else NO_PARTS
        )

    def _read_parts(self, parts: BlobParts) -> list[bytes]:
        names = [f"{parts.mark}-{number}" for number in range(parts.total)]
        with reachable():
            documents = [self._blobs.document(name).get(timeout=SECONDS) for name in names]
        return [document.get("body") for document in documents if document.exists]

    def close(self) -> None:
        self._db.close()

    def _document(self, number: int) -> Any:
        return self._entries.document(f"{number:012d}")


@contextmanager
def reachable() -> Iterator[None]:
    try:
        yield
    except (GoogleAPIError, GoogleAuthError) as error:
        raise StoreAway(
            f"Firestore refused or did not answer: {error}",
            fix="Check GOOGLE_CLOUD_PROJECT and GOOGLE_APPLICATION_CREDENTIALS.",
        ) from error
