from __future__ import annotations

import json
import urllib.request


def test_the_page_can_be_installed_as_an_app(shop, token, tab):
    """By what Chromium itself says of the manifest."""
    shown = tab(shop, token, width=390)
    shown.open("/")
    session = shown.context.new_cdp_session(shown.page)
    manifest = session.send("Page.getAppManifest")
    assert manifest["errors"] == []
    declared = json.loads(manifest["data"])
    assert (declared["display"], declared["start_url"]) == ("standalone", "/")
    sizes = set()
    for icon in declared["icons"]:
        url = manifest["url"].rpartition("/")[0] + "/" + icon["src"]
        with urllib.request.urlopen(url, timeout=20) as answer:
            assert answer.headers["content-type"] == icon["type"]
        sizes.add(icon["sizes"])
    assert {"192x192", "512x512"} <= sizes
    errors = session.send("Page.getInstallabilityErrors")["installabilityErrors"]
    # a tab without a profile can install nothing, whatever its page is like
    assert [e["errorId"] for e in errors if e["errorId"] != "in-incognito"] == []
