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

from fleet.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.adapters.stores.log.address import Address

DOCUMENT_BYTES = 900_000  # a document may have 1 MiB, its name and fields included
SECONDS = 10.0  # for one request
EMULATOR = "FIRESTORE_EMULATOR_HOST"


class FirestoreLog:
    most = DOCUMENT_BYTES

    def __init__(self, address: Address) -> None:
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
        """In parts; the document that says how many there are is written last."""
        starts = range(0, len(blob) or 1, DOCUMENT_BYTES)
        parts = [blob[at : at + DOCUMENT_BYTES] for at in starts]
        mark = f"{name}-{os.urandom(8).hex()}"
        with reachable():
            for number, part in enumerate(parts):
                self._blobs.document(f"{mark}-{number}").set({"body": part}, timeout=SECONDS)
            about = {"parts": len(parts), "mark": mark}
            self._blobs.document(name).set(about, timeout=SECONDS)

    def get(self, name: str) -> bytes | None:
        with reachable():
            about = self._blobs.document(name).get(timeout=SECONDS)
            if not about.exists:
                return None
            names = [f"{about.get('mark')}-{number}" for number in range(about.get("parts"))]
            parts = [self._blobs.document(part).get(timeout=SECONDS) for part in names]
        return b"".join(part.get("body") for part in parts)

    def close(self) -> None:
        self._db.close()

    def _document(self, number: int) -> Any:
        return self._entries.document(f"{number:012d}")


@contextmanager
def reachable() -> Iterator[None]:
    try:
        yield
    except (GoogleAPIError, GoogleAuthError) as error:
        raise Unavailable(
            f"Firestore refused or did not answer: {error}",
            fix="Check GOOGLE_CLOUD_PROJECT and GOOGLE_APPLICATION_CREDENTIALS.",
        ) from error
