"""`fleet ui`: open the dashboard, signed in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.view import Result, Text
from fleet.domain.access import ROLES
from fleet.domain.errors import BadInput, Unavailable

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.client import Client

PORT = 3847
PHONE_SECONDS = 600  # in which the code on the screen is scanned
HALVES = {(0, 0): " ", (1, 0): "▀", (0, 1): "▄", (1, 1): "█"}
QUIET = 2  # light modules around it; readers need some


@command(config=True)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    envvar="PORT",
    help=f"The port to serve on, if no server runs yet. Default: {PORT}, or a free one.",
)
@click.option("--no-open", is_flag=True, help="Print the address instead of opening a browser.")
@click.option("--no-run", is_flag=True, help="Start the server without a supervisor.")
@click.option("--phone", is_flag=True, help="Show a QR code that signs a phone in.")
@click.option(
    "--role",
    type=click.Choice(ROLES),
    default="team-lead",
    show_default=True,
    help="With --phone: what the phone may do.",
)
@click.option(
    "--url", default="", help="With --phone: the address by which the phone reaches the server."
)
def ui(
    *, port: int | None, no_open: bool, no_run: bool, phone: bool, role: str, url: str,
    config: Path | None,
) -> Result:  # fmt: skip
    """Open the dashboard in the browser, signed in as you.

    If no server runs, this starts one in the background, with a supervisor that starts ready tasks;
    `fleet serve --stop` stops both. The address works once, within a minute.

    --phone shows a QR code, valid for ten minutes and for one phone. The phone must be able to
    reach the server: one that listens on an address of your network, or behind a proxy (--url).
    A team-lead cannot allow what an agent asks permission for; --role coordinator can.
    """
    client = connect(config=config)
    if phone:
        return _phone(client, url, role)
    started = not _local_url(client)
    if started:
        _start(client, config, port, no_run=no_run)
    return _open(client, started=started, given=port, quietly=no_open)


def _local_url(client: Client) -> str:
    """The server's address for a browser on this machine; empty when none runs."""
    from fleet.app.server_process import serving_at

    if client.is_remote:
        return client.server_url.rstrip("/")
    return serving_at(client.home).replace("//0.0.0.0:", "//127.0.0.1:").replace("[::]", "[::1]")


def _start(client: Client, config: Path | None, port: int | None, *, no_run: bool) -> None:
    from fleet.cli.server.serve import start_in_background

    app = client.this_machine("The server").app
    words = ["--no-run"] if no_run else []
    words += [f"--config={config.absolute()}"] if config is not None else []
    try:
        at = port or _free(PORT) or _free(0)
        start_in_background(app, [f"--port={at}", *words], at)
    except Unavailable:
        if port or _free(at):
            raise
        at = _free(0)  # another process was faster
        start_in_background(app, [f"--port={at}", *words], at)


def _free(port: int) -> int:
    """The port, or any for 0; 0 if some program has it."""
    import socket

    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return 0
        return int(tried.getsockname()[1])


def _open(client: Client, *, started: bool, given: int | None, quietly: bool) -> Result:
    from fleet.operations.team.sessions import CreateCode

    url, made = _local_url(client), client.call(CreateCode())
    link = f"{url}/#c={made.code}"
    opened = not quietly and open_browser(link)
    data = {"url": url, "link": link, "until": made.until, "opened": opened, "started": started}
    text = f"Opened {url} as {made.name}." if opened else f"Open this within a minute: {link}"
    notes = ["Started the server; `fleet serve --stop` stops it."] if started else []
    if given and not started and not url.endswith(f":{given}"):
        notes.append(f"The server was running already, and not on port {given}.")
    return Result("ui", data, Text(text), notes=notes)


def open_browser(link: str) -> bool:
    """Without a screen there is no browser but those that take over the terminal."""
    import os
    import sys
    import webbrowser

    has_screen = sys.platform == "darwin" or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME")
    )
    if not (has_screen or os.environ.get("BROWSER")):
        return False
    try:
        return webbrowser.open(link)
    except (webbrowser.Error, OSError):
        return False


def _phone(client: Client, url: str, role: str) -> Result:
    import re

    from fleet.operations.team.enrolments import CreateEnrolment

    at = _reachable(client, url)
    name = re.sub(r"[^\w-]", "-", client.actor.name, flags=re.ASCII)[:50]
    made = client.call(CreateEnrolment(role, name=name, seconds=PHONE_SECONDS, uses=1))
    link = f"{at}/#c={made.secret}"
    data = {"url": at, "link": link, "until": made.until, "role": role, "enrolment": made.id}
    words = f"Scan it within ten minutes: it signs one phone in as {name}, {role}."
    notes = [] if at.startswith("https:") else [PLAIN]
    return Result("ui", data, Text(f"{qr_text(link)}\n{words}\n{link}"), notes=notes)


PLAIN = "The address is plain HTTP, so others on the network can read it all. Use HTTPS or a VPN."


def _reachable(client: Client, url: str) -> str:
    from urllib.parse import urlsplit

    at = (url or client.server_url).rstrip("/")
    parts = urlsplit(at)
    if url and (parts.scheme not in {"http", "https"} or not parts.hostname):
        raise BadInput(f"'{url[:100]}' is not an address.", fix="Such as --url https://fleet.lan")
    is_up = bool(url or client.is_remote or _local_url(client))
    if not is_up or parts.hostname in {None, "127.0.0.1", "localhost", "::1", "0.0.0.0", "::"}:  # noqa: S104  # nosec B104  # not bound here
        what = f"is known as {parts.hostname}" if is_up else "is not running"
        raise Unavailable(
            f"The server {what}, so no phone can reach it.",
            fix="Serve on an address of your network (JWT_SECRET=… fleet serve --host ADDRESS), or "
            "name the proxy in front of it: fleet ui --phone --url https://NAME",
            code="not_reachable",
        )
    return at


def qr_text(words: str) -> str:
    """A QR code, two rows of it in each line; drawn for a dark terminal, which readers take inverted too."""
    import segno

    rows = [
        list(row) for row in segno.make(words, error="l", micro=False).matrix_iter(border=QUIET)
    ]
    rows += [[0] * len(rows[0])] * (len(rows) % 2)
    return "\n".join(
        "".join(HALVES[1 - upper, 1 - lower] for upper, lower in zip(*pair, strict=True))
        for pair in zip(rows[::2], rows[1::2], strict=True)
    )
