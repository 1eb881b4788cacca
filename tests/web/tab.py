"""A tab of a real Chromium at a real server, and what went wrong in it."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
INSTALLED = ROOT / ".cache" / "browser"  # by scripts/browser
CHROMIUM = "/usr/bin/chromium"
WIDTHS = {"phone": 360, "tablet": 768, "desk": 1440}
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]

SHOWN = """(async () => {
    const list = document.querySelector(".virtual"), rows = {};
    if (!list) return rows;
    for (let top = 0; top <= list.scrollHeight; top += 300) {
        list.scrollTop = top;
        await new Promise((done) => setTimeout(done, 60));
        for (const row of list.querySelectorAll(".row:not(.heads)")) {
            rows[row.querySelector(".c-task").innerText] = row.querySelector(".status").innerText;
        }
    }
    return rows;
})()"""


def why_not() -> str:
    """Why no browser can be had here; empty when one can."""
    if not Path(CHROMIUM).exists():
        return f"{CHROMIUM} is not installed; scripts/browser installs it"
    if not (INSTALLED / ".ready").exists():
        return "Playwright is not installed; scripts/browser installs it"
    return ""


def launch():
    """Playwright, and its browser."""
    if str(INSTALLED) not in sys.path:
        sys.path.append(str(INSTALLED))
    from playwright.sync_api import sync_playwright

    playwright = sync_playwright().start()
    return playwright, playwright.chromium.launch(
        executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
    )


@cache
def axe_source() -> str:
    return next(INSTALLED.glob("axe_playwright_python/**/axe.min.js")).read_text()


class Tab:
    """`wrong` is all that the browser complained of: errors, and what the policy forbids."""

    def __init__(self, browser, url: str, token: str = "", *, width=1440, theme="light") -> None:
        touch = width < 500
        self.context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=theme, has_touch=touch,
            is_mobile=touch, reduced_motion="reduce",
        )  # fmt: skip
        self.page = self.context.new_page()
        self.url, self.wrong = url, []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        if token:
            self.page.add_init_script(
                "if (!sessionStorage.getItem('began')) {"
                f"sessionStorage.setItem('began', '1'); sessionStorage.setItem('fleet.token', '{token}') }}"
            )

    def _heard(self, message) -> None:
        if message.type == "error":
            self.wrong.append(message.text)

    def open(self, path: str = "/"):
        self.page.goto(self.url + path)
        return self.page

    def run(self, script: str):
        """What the script says, past the page's policy, which forbids `eval`."""
        session = self.context.new_cdp_session(self.page)
        asked = {"expression": script, "awaitPromise": True, "returnByValue": True}
        answer = session.send("Runtime.evaluate", asked)
        session.detach()
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def faults(self) -> list[str]:
        """What axe finds: the rule, and where."""
        if not self.run("Boolean(window.axe)"):  # only here: it would slow every page down
            self.run(axe_source() + "; true")
        tags = str(RULES)
        return self.run(
            f"axe.run({{runOnly: {tags}}}).then(r => r.violations.map("
            "v => v.id + ': ' + v.nodes.map(n => n.target + ' ' + n.failureSummary).slice(0, 3).join(' | ')))"
        )

    def overflow(self) -> int:
        """Pixels by which the page is wider than the window."""
        return self.run("document.documentElement.scrollWidth - innerWidth")

    def close(self) -> None:
        self.context.close()


def milliseconds_until(tab: Tab, selector: str, click: str) -> float:
    """From a click on one element until another is shown, as the page itself measures it."""
    return tab.run(
        f"""new Promise((done) => {{
            const begun = performance.now();
            const look = () => document.querySelector({selector!r})
                ? requestAnimationFrame(() => done(performance.now() - begun))
                : setTimeout(look, 1);
            document.querySelector({click!r}).click();
            look();
        }})"""
    )


def rows_shown(tab: Tab) -> dict[str, str]:
    """The status of each task in the table, by its id, read while scrolling to its end."""
    return tab.run(SHOWN)
