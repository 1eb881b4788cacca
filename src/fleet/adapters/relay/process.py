"""The relay as a process of its own: `python -m fleet.adapters.relay.process CONFIG.json`.

SIGHUP, or a change of the file, makes it read the file again; on SIGTERM it finishes its requests.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web

from fleet.adapters.relay.app import Relay
from fleet.adapters.relay.plan import read_plan
from fleet.domain.errors import FleetError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CHANGED = 1.0  # seconds between looks at the file
LONGEST_HEAD = 1 << 16

log = logging.getLogger("fleet.relay")


@asynccontextmanager
async def open_relay(relay: Relay) -> AsyncIterator[tuple[web.TCPSite, int]]:
    """A relay that listens, and its port, which the system chooses when the settings say 0."""
    await relay.open()
    runner = web.AppRunner(
        relay.app(),
        handler_cancellation=True,
        access_log=None,
        shutdown_timeout=1.0,
        max_field_size=LONGEST_HEAD,
    )
    try:
        await runner.setup()
        settings = relay.plan.settings
        site = web.TCPSite(runner, settings.host, settings.port, backlog=512)
        await site.start()
        yield site, runner.addresses[0][1]
    finally:
        await runner.cleanup()
        await relay.close()


class Process:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._relay = Relay(read_plan(path))
        self._stamp = _stamp(path)
        self._relay.config_at = self._stamp[-1]
        self._over = asyncio.Event()
        self._again = asyncio.Event()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._over.set)
        loop.add_signal_handler(signal.SIGHUP, self._again.set)
        async with open_relay(self._relay) as (site, port):
            log.info("listening on %s:%s", self._relay.plan.settings.host, port)
            gc.freeze()
            await self._until_over()
            await site.stop()
            await self._relay.drain(self._relay.plan.settings.grace)

    async def _until_over(self) -> None:
        over = asyncio.create_task(self._over.wait())
        while not over.done():
            again = asyncio.create_task(self._again.wait())
            await asyncio.wait({over, again}, timeout=CHANGED, return_when=asyncio.FIRST_COMPLETED)
            again.cancel()
            if self._again.is_set() or _stamp(self._path) != self._stamp:
                self._again.clear()
                self._read()

    def _read(self) -> None:
        """After an incomplete or wrong file the old plan stays in force."""
        self._stamp = _stamp(self._path)
        try:
            self._relay.adopt(read_plan(self._path))
        except FleetError as error:
            log.warning("%s The old one stays in force.", error)
        else:
            self._relay.config_at = self._stamp[-1]
            log.info("read %s again", self._path)


def _stamp(path: Path) -> tuple[int, int, int]:
    try:
        stat = path.stat()
    except OSError:
        return (0, 0, 0)
    return (stat.st_ino, stat.st_size, stat.st_mtime_ns)


def main() -> None:
    parser = argparse.ArgumentParser(description="The relay between the gateway and the nodes.")
    parser.add_argument("config", type=Path)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    try:
        asyncio.run(_main(parser.parse_args().config))
    except (FleetError, OSError) as error:
        log.error("%s", error)  # noqa: TRY400  # a sentence, not a traceback
        sys.exit(3 if isinstance(error, OSError) else error.exit_status)


async def _main(path: Path) -> None:
    await Process(path).run()


if __name__ == "__main__":
    main()
