"""The commit log in S3: an object for each entry, put only if there is none."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from fleet.adapters.stores.log.aws import code_of, make_client, reachable

if TYPE_CHECKING:
    from fleet.adapters.stores.log.address import LogAddress

ABSENT = {"NoSuchKey", "404"}
TAKEN = {"PreconditionFailed", "ConditionalRequestConflict"}
SIDE_BY_SIDE = 8  # entries that are read at the same time by one who is behind


class S3Log:
    most = 64 << 20

    def __init__(self, address: LogAddress) -> None:
        self._bucket = address.name
        self._prefix = address.prefix
        self._s3: Any = make_client("s3", address, SIDE_BY_SIDE)

    def append(self, number: int, entry: bytes) -> bool:
        with reachable("S3"):
            try:
                self._s3.put_object(
                    Bucket=self._bucket, Key=self._key(number), Body=entry, IfNoneMatch="*"
                )
            except self._s3.exceptions.ClientError as error:
                if code_of(error) in TAKEN:
                    return False
                raise
        return True

    def read(self, after: int, limit: int) -> list[tuple[int, bytes]]:
        first = self.get(self._entry(after + 1))
        if first is None:
            return []
        entries = [(after + 1, first)]
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            while len(entries) < limit:
                start = entries[-1][0] + 1
                numbers = range(start, start + min(SIDE_BY_SIDE, limit - len(entries)))
                for number, body in zip(
                    numbers, pool.map(lambda n: self.get(self._entry(n)), numbers), strict=True
                ):
                    if body is None:
                        return entries
                    entries.append((number, body))
        return entries

    def put(self, name: str, blob: bytes) -> None:
        with reachable("S3"):
            self._s3.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=blob)

    def get(self, name: str) -> bytes | None:
        with reachable("S3"):
            try:
                reply = self._s3.get_object(Bucket=self._bucket, Key=self._prefix + name)
                return bytes(reply["Body"].read())
            except self._s3.exceptions.ClientError as error:
                if code_of(error) in ABSENT:
                    return None
                raise

    def close(self) -> None:
        self._s3.close()

    def _entry(self, number: int) -> str:
        return f"log/{number:012d}"

    def _key(self, number: int) -> str:
        return self._prefix + self._entry(number)
