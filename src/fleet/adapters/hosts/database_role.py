"""A login of its own for each machine that uses a PostgreSQL store."""

from __future__ import annotations

import re
import secrets
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from fleet.domain.data import NamedTuple
from fleet.domain.errors import Unavailable

CONNECT_SECONDS = 10
WHERE = frozenset({"host", "hostaddr", "port"})  # in the query of a URL
MOST_CONNECTIONS = 20  # a supervisor, and a few commands beside it


class Login(NamedTuple):
    role: str
    url: str


def role_for(name: str) -> str:
    """A name that no other login has."""
    return f"fleet_{re.sub(r'[^a-z0-9]+', '_', name.lower())[:40]}_{secrets.token_hex(3)}"


def make_login(url: str, name: str, role: str = "") -> Login | None:
    """A login that acts as this URL's own role, and can be removed alone; None: it may make none.

    What it makes belongs to that role, so that every machine can migrate the store. `role`: its name;
    one that is there already gets a new password.
    """
    from psycopg import Error, connect, sql  # noqa: PLC0415  # of an extra

    role = role or role_for(name)
    password = secrets.token_urlsafe(24)
    try:
        with connect(url, connect_timeout=CONNECT_SECONDS, autocommit=True) as link:
            row = link.execute(
                "SELECT current_user, rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user"
            ).fetchone()
            if row is None or not row[1]:
                return None
            mine, owner = sql.Identifier(role), sql.Identifier(row[0])
            if link.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone():
                again = sql.SQL("ALTER ROLE {} PASSWORD {}").format(mine, sql.Literal(password))
                link.execute(again)
                return Login(role, _as(url, role, password))
            link.execute(
                sql.SQL("CREATE ROLE {} LOGIN PASSWORD {} CONNECTION LIMIT {} IN ROLE {}").format(
                    mine, sql.Literal(password), sql.Literal(MOST_CONNECTIONS), owner
                )
            )
            link.execute(sql.SQL("ALTER ROLE {} SET role TO {}").format(mine, owner))
    except Error as error:
        raise Unavailable(f"PostgreSQL could not create a login for {name}: {error}") from error
    return Login(role, _as(url, role, password))


def drop_login(url: str, role: str) -> None:
    """Drop the role, which owns nothing. Its open connections go on until they end."""
    from psycopg import Error, connect, sql  # noqa: PLC0415  # of an extra

    try:
        with connect(url, connect_timeout=CONNECT_SECONDS, autocommit=True) as link:
            link.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(role)))
    except Error as error:
        raise Unavailable(f"PostgreSQL could not remove the login {role}: {error}") from error


def at_address(url: str, address: str) -> str:
    """The URL with this address of its server, and its own user, password and database.

    `address`: `HOST[:PORT]`, or a URL, of which only that counts; empty: as it is. A socket that the
    URL names in its query is this machine's alone, so that is left out.
    """
    if not address:
        return url
    netloc = urlsplit(address if "://" in address else f"//{address}").netloc.rpartition("@")[2]
    parts = urlsplit(url)
    user, at, _ = parts.netloc.rpartition("@")
    query = urlencode([(k, v) for k, v in parse_qsl(parts.query) if k not in WHERE])
    return urlunsplit(parts._replace(netloc=f"{user}{at}{netloc}", query=query))


def _as(url: str, role: str, password: str) -> str:
    parts = urlsplit(url)
    where = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{quote(role)}:{quote(password)}@{where}"))
