"""Take the screenshots of the dashboard from the data of `fleet demo --ui`, into docs/screens.

scripts/screens.py [DIRECTORY] [URL]: for a demo that runs already, its address as `fleet ui` prints it.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP))

from tests.web.tab import launch, why_not  # noqa: E402  # the path comes first

SCREENS = {
    "inbox": "/",
    "tasks": "/tasks",
    "board": "/tasks?as=board",
    "graph": "/tasks?as=graph",
    "task": "/t/t-7",
    "transcript": "/t/t-8/transcript",
    "changes": "/t/t-6/diff",
    "terminal": "/t/{seat}/terminal",
    "land": "/land",
    "machines": "/machines",
    "costs": "/costs?span=30",
    "team": "/team",
    "new-task": "/tasks",
    "palette": "/tasks",
}
OPENED = {"new-task": "n", "palette": "Control+k"}  # by a key, once the screen is there
HEADERS = {"Content-Type": "application/json"}
SIZES = {"desk": (1440, 900), "phone": (390, 844)}
SETTLED = 2500  # milliseconds until what is live has come
COLOURS = 128


def main() -> int:
    if why := why_not():
        print(why, file=sys.stderr)
        return 1
    into = Path(sys.argv[1]) if len(sys.argv) > 1 else TOP / "docs" / "screens"
    if len(sys.argv) > 2:
        shoot(sys.argv[2], into)
        return 0
    with tempfile.NamedTemporaryFile("w") as out:
        words = [TOP / ".venv" / "bin" / "fleet", "demo", "--ui", "--no-open"]
        name = {"LOGNAME": "ada", "USER": "ada"}
        demo = subprocess.Popen(words, stdout=out, stderr=out, env={**os.environ, **name})
        try:
            shoot(wait_for_link(demo, Path(out.name)), into)
        finally:
            demo.send_signal(signal.SIGINT)
            demo.wait(300)  # it stops every agent, and on a busy machine that takes its time
    return 0


def wait_for_link(demo: subprocess.Popen[bytes], log: Path) -> str:
    while demo.poll() is None:
        if match := re.search(r"http://\S+/#c=\S+", log.read_text()):
            return match[0]
        time.sleep(0.5)
    raise SystemExit(log.read_text())


def shoot(link: str, into: Path) -> None:
    into.mkdir(parents=True, exist_ok=True)
    playwright, browser = launch()
    url, token = link.partition("/#")[0], ""
    for theme in ("light", "dark"):
        for size, (width, height) in SIZES.items():
            phone = size == "phone"
            context = browser.new_context(
                viewport={"width": width, "height": height}, color_scheme=theme, is_mobile=phone,
                has_touch=phone, reduced_motion="reduce", device_scale_factor=2 if phone else 1,
            )  # fmt: skip
            page = context.new_page()
            if not token:
                page.goto(link)
                page.get_by_role("heading", level=1).first.wait_for()
                token = token_of(page)
            page.add_init_script(f"sessionStorage.setItem('fleet.token', '{token}')")
            for name, path in SCREENS.items():
                page.goto(url + path.format(seat=seat(url, token)))
                page.get_by_role("heading", level=1).first.wait_for()
                page.wait_for_timeout(SETTLED)
                if name in OPENED:
                    open_by_key(page, name)
                save(page.screenshot(), into / f"{name}-{size}-{theme}.webp")
            context.close()
    browser.close()
    playwright.stop()


def open_by_key(page: Any, name: str) -> None:
    page.keyboard.press(OPENED[name])
    page.get_by_role("dialog").wait_for()
    if name == "new-task":
        page.get_by_label("Title").fill("Warn before a price changes")
        page.get_by_label("Prompt").fill("Show the old price for a day, struck through.")
    else:
        page.get_by_role("combobox", name="Search").fill("the")
    page.wait_for_timeout(SETTLED)


@cache
def seat(url: str, token: str) -> str:
    """The task whose agent is in a terminal."""
    request = urllib.request.Request(
        f"{url}/v1/agent/list", b"{}", HEADERS | {"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request, timeout=30) as reply:
        rows = json.load(reply)["data"]
    return str(next((row["task"] for row in rows if row["terminal"]), rows[-1]["task"]))


def token_of(page: Any) -> str:
    """Past the page's policy, which forbids what Playwright would evaluate."""
    session = page.context.new_cdp_session(page)
    asked = {"expression": "sessionStorage.getItem('fleet.token')"}
    return str(session.send("Runtime.evaluate", asked)["result"]["value"])


def save(png: bytes, path: Path) -> None:
    """WebP is a quarter of a PNG here."""
    from PIL import Image  # noqa: PLC0415  # beside the browser, in .cache

    image = Image.open(BytesIO(png)).convert("RGB")
    if image.width > 1440:
        image.thumbnail((1440, 2000))
    image.save(path, "WEBP", quality=72, method=6)


if __name__ == "__main__":
    sys.exit(main())
