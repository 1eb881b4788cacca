"""What S3 and DynamoDB have in common: botocore's clients, its credentials and its errors."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError
from botocore.session import get_session

from fleet.domain.errors import StoreAway

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.adapters.stores.log.address import LogAddress

SECONDS = 10  # for one request
TRIES = 3


def make_client(service: str, address: LogAddress, connections: int = 2) -> Any:
    config = Config(
        connect_timeout=SECONDS,
        read_timeout=SECONDS,
        retries={"total_max_attempts": TRIES, "mode": "standard"},
        max_pool_connections=connections,
    )
    with reachable(service):
        return get_session().create_client(
            service,
            region_name=address.region or os.environ.get("AWS_REGION"),
            endpoint_url=address.endpoint or None,
            config=config,
        )


def code_of(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


@contextmanager
def reachable(service: str) -> Iterator[None]:
    """Whatever the service or the way there refuses is `StoreAway`."""
    try:
        yield
    except NoCredentialsError as error:
        raise StoreAway(
            f"There are no credentials for {service}.",
            fix="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE.",
        ) from error
    except (BotoCoreError, ClientError) as error:
        raise StoreAway(
            f"{service} refused or did not answer: {error}",
            fix="Check the store's address, the region, and what the credentials allow.",
        ) from error
