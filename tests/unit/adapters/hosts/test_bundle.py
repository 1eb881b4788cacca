from __future__ import annotations

import io
import tarfile

from fleet.adapters.hosts.bundle import make_bundle


def test_the_archive_has_fleet_and_all_that_it_imports_and_the_same_name_each_time():
    bundle = make_bundle()
    with tarfile.open(fileobj=io.BytesIO(bundle.data)) as archive:
        names = archive.getnames()
    tops = {name.partition("/")[0] for name in names}
    assert {"fleet", "click", "yaml", "aiohttp", "msgspec", "psycopg"} <= tops
    assert "fleet/adapters/stores/queries.sql" in names
    assert not any("__pycache__" in name or ".." in name for name in names)
    assert make_bundle() == bundle
