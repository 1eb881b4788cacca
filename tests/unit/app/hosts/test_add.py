from __future__ import annotations

from fleet.app.hosts.add import peers_of

# As `tailscale status --json` prints it, shortened.
STATUS = {
    "Self": {"HostName": "laptop", "DNSName": "laptop.tail1.ts.net.", "Online": True},
    "Peer": {
        "nodekey:1": {
            "HostName": "Old Box", "DNSName": "old-box.tail1.ts.net.", "OS": "linux",
            "TailscaleIPs": ["100.64.0.3", "fd7a::3"], "Online": False,
        },
        "nodekey:2": {
            "HostName": "mini", "DNSName": "mini.tail1.ts.net.", "OS": "macOS",
            "TailscaleIPs": ["100.64.0.2"], "Online": True,
        },
        "nodekey:3": {"HostName": "theirs", "ShareeNode": True, "Online": True},
    },
}  # fmt: skip


def test_machines_of_the_tailnet_are_listed_by_the_names_that_ssh_takes():
    assert [(p["name"], p["address"], p["online"]) for p in peers_of(STATUS)] == [
        ("mini", "100.64.0.2", True),
        ("old-box", "100.64.0.3", False),
    ]
    assert peers_of({"Peer": None}) == []
