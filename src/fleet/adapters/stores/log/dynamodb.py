"""The commit log in DynamoDB: an item for each entry, put only if there is none.

One table, with the partition key `log` (a string) and the sort key `n` (a number).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from fleet.adapters.stores.log.aws import code_of, make_client, reachable
from fleet.adapters.stores.log.parts import BlobParts, whole

if TYPE_CHECKING:
    from fleet.adapters.stores.log.address import LogAddress

ITEM_BYTES = 350_000  # an item may have 400 KB, its keys and names included
ENTRIES = "entries"
PAGE = 100


class DynamoLog:
    most = ITEM_BYTES

    def __init__(self, address: LogAddress) -> None:
        self._table = address.name
        self._prefix = address.prefix
        self._db: Any = make_client("dynamodb", address)
        self._make_table()

    def append(self, number: int, entry: bytes) -> bool:
        with reachable("DynamoDB"):
            try:
                self._db.put_item(
                    TableName=self._table,
                    Item=self._item(ENTRIES, number, entry),
                    ConditionExpression="attribute_not_exists(n)",
                )
            except self._db.exceptions.ConditionalCheckFailedException:
                return False
        return True

    def read(self, after: int, limit: int) -> list[tuple[int, bytes]]:
        entries: list[tuple[int, bytes]] = []
        for number, body in self._items(ENTRIES, after, limit):
            if number != after + len(entries) + 1:
                break  # never before a number that is not there yet
            entries.append((number, body))
        return entries

    def put(self, name: str, blob: bytes) -> None:
        """Write in parts; the item that says how many there are comes last, then the old parts are deleted."""
        parts = [blob[at : at + ITEM_BYTES] for at in range(0, len(blob), ITEM_BYTES)] or [b""]
        mark = f"{name}/{os.urandom(8).hex()}"
        old = self._parts(name)
        with reachable("DynamoDB"):
            for number, part in enumerate(parts):
                self._db.put_item(TableName=self._table, Item=self._item(mark, number, part))
            self._db.put_item(
                TableName=self._table, Item=self._item(name, 0, f"{len(parts)} {mark}".encode())
            )
            for number in range(old.total):
                key = self._key(old.mark, number)
                self._db.delete_item(TableName=self._table, Key=key)

    def get(self, name: str) -> bytes | None:
        return whole(lambda: self._parts(name), self._read_parts)

    def _parts(self, name: str) -> BlobParts:
        index = self._items(name, -1, 1)
        count, _, mark = index[0][1].decode().partition(" ") if index else ("0", "", "")
        return BlobParts(mark, int(count))

    def _read_parts(self, parts: BlobParts) -> list[bytes]:
        return [body for _, body in self._items(parts.mark, -1, parts.total)]

    def close(self) -> None:
        self._db.close()

    def _item(self, log: str, number: int, body: bytes) -> dict[str, Any]:
        return {**self._key(log, number), "body": {"B": body}}

    def _key(self, log: str, number: int) -> dict[str, Any]:
        return {"log": {"S": self._prefix + log}, "n": {"N": str(number)}}

    def _items(self, log: str, after: int, limit: int) -> list[tuple[int, bytes]]:
        items: list[tuple[int, bytes]] = []
        with reachable("DynamoDB"):
            while len(items) < limit:
                page = self._db.query(
                    TableName=self._table,
                    ConsistentRead=True,
                    KeyConditionExpression="#log = :log AND n > :n",
                    ExpressionAttributeNames={"#log": "log"},
                    ExpressionAttributeValues={
                        ":log": {"S": self._prefix + log},
                        ":n": {"N": str(items[-1][0] if items else after)},
                    },
                    Limit=min(PAGE, limit - len(items)),
                )
                items += [(int(item["n"]["N"]), item["body"]["B"]) for item in page["Items"]]
                if "LastEvaluatedKey" not in page:
                    break
        return items

    def _make_table(self) -> None:
        with reachable("DynamoDB"):
            try:
                self._db.describe_table(TableName=self._table)
            except self._db.exceptions.ResourceNotFoundException:
                self._create()

    def _create(self) -> None:
        try:
            self._db.create_table(
                TableName=self._table,
                BillingMode="PAY_PER_REQUEST",
                KeySchema=[
                    {"AttributeName": "log", "KeyType": "HASH"},
                    {"AttributeName": "n", "KeyType": "RANGE"},
                ],
                AttributeDefinitions=[
                    {"AttributeName": "log", "AttributeType": "S"},
                    {"AttributeName": "n", "AttributeType": "N"},
                ],
            )
        except self._db.exceptions.ClientError as error:
            if code_of(error) != "ResourceInUseException":  # another process makes it
                raise
        self._db.get_waiter("table_exists").wait(TableName=self._table)
