from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from postgres import private_postgres


@pytest.fixture(scope="session")
def postgres_server():
    with private_postgres() as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server, request):
    """A database of its own for each test."""
    import psycopg

    name = f"t{abs(hash(request.node.nodeid)):x}"
    with psycopg.connect(postgres_server, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")
    return postgres_server.replace("/postgres?", f"/{name}?")
