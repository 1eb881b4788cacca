"""The screen of `fleet top`: the list left, what is selected right; on a narrow terminal one of them."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual.app import App
from textual.binding import Binding
from textual.containers import Horizontal
from textual.css.query import NoMatches
from textual.widgets import Input, Static

from fleet.cli.terminal.measure import fit, harmless
from fleet.cli.top.lines import Rows, ScrollingText
from fleet.cli.top.reader import Deed, Hands, TopReader, WantedPage
from fleet.cli.top.rows import (
    TopReading,
    TopRow,
    facts,
    first_tab,
    is_running,
    keys_of,
    own_keys,
    rows_of,
    summary,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from fleet.cli.top.reader import Page
    from fleet.client import Client

NARROW = 72  # columns below which there is one pane
LANDING = "worktree.merge"  # the operation that lands a task
HELP = """\
↑ ↓ j k    choose a row
⏎ Esc Tab  open it, back, the other pane
o d i      its output, diff, facts
/          find by words; Esc shows all
e          this project, or every one
1-9 a      choose an answer, or write one
y n        approve or deny a permission
p          send the agent a prompt
t          attach to its terminal
r          retry it, or let it start
c          accept work that was reviewed
l          land it
x          end it, cancel its task
q          quit; the agents go on
"""


class Top(App[None]):
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { layout: vertical; }
    #head, #keys, #said { height: 1; }
    #head { text-style: reverse; }
    #panes { height: 1fr; }
    Rows { width: 45%; }
    ScrollingText { width: 1fr; padding: 0 0 0 1; border-left: solid $foreground-muted; }
    Rows, ScrollingText { scrollbar-size-vertical: 1; background: transparent; }
    ScrollingText:focus { border-left: heavy $foreground; }
    .one Rows { width: 100%; }
    .one ScrollingText { width: 100%; border-left: none; padding: 0; }
    .one.page Rows { display: none; }
    .one.list ScrollingText { display: none; }
    Input { display: none; height: 1; border: none; padding: 0; }
    Input.asking { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,ctrl+c", "quit", "quit"),
        Binding("down,j", "move(1)"),
        Binding("up,k", "move(-1)"),
        Binding("pagedown", "leap(1)"),
        Binding("pageup", "leap(-1)"),
        Binding("g,home", "move(-100000)"),
        Binding("G,end", "move(100000)"),
        Binding("enter", "open"),
        Binding("escape", "leave"),
        Binding("tab", "other", priority=True),
        Binding("o", "tab('output')"),
        Binding("d", "tab('diff')"),
        Binding("i", "tab('about')"),
        Binding("question_mark", "help"),
        Binding("slash", "find"),
        Binding("e", "everywhere"),
        Binding("a", "answer"),
        Binding("p", "prompt"),
        Binding("y", "permit('once')"),
        Binding("Y", "permit('always')"),
        Binding("n", "permit('deny')"),
        Binding("r", "retry"),
        Binding("c", "accept"),
        Binding("l", "land"),
        Binding("x", "kill"),
        Binding("t", "attach"),
        *[Binding(str(n), f"choose({n})") for n in range(1, 10)],
    ]

    def __init__(self, connect: Callable[[], Client], *, scope_name: str, away: bool) -> None:
        super().__init__(ansi_color=True)
        self._scope_name, self._away = scope_name, away
        self._seen = TopReading()
        self._tab, self._find = ("", ""), ""  # which tab was asked for, of which row
        self._then: Callable[[str], None] | None = None
        self._sure: Callable[[], None] | None = None
        self._page: Page | None = None
        self._help = self._is_laid_out = False
        self.reader = TopReader(
            connect, self._from_thread(self.saw), self._from_thread(self.turned)
        )
        self.hands = Hands(connect, self._from_thread(self.report))

    def _from_thread(self, show: Callable[..., None]) -> Callable[..., None]:
        def draw(*given: Any) -> None:
            with suppress(NoMatches):  # the screen goes just now
                show(*given)

        def later(*given: Any) -> None:
            with suppress(RuntimeError):  # its loop has ended
                self.call_later(draw, *given)

        return later

    def compose(self) -> ComposeResult:
        yield Static(id="head")
        with Horizontal(id="panes"):
            yield Rows(id="rows")
            yield ScrollingText(id="page")
        yield Static(id="said")
        yield Input(id="input", compact=True)
        yield Static(id="keys")

    def on_mount(self) -> None:
        self.rows, self.page = self.query_one(Rows), self.query_one(ScrollingText)
        self.panes, self.input = self.query_one("#panes"), self.query_one(Input)
        self._is_laid_out = True
        self.rows.focus()
        self._fold(self.size.width)
        self._line("#head", "fleet top · reading …")
        self.reader.start()
        self.hands.start()

    def on_unmount(self) -> None:
        self.reader.end()

    def on_resize(self, event: events.Resize) -> None:
        if self._is_laid_out:
            self._fold(event.size.width)

    def _fold(self, columns: int) -> None:
        one = columns < NARROW
        self.panes.set_class(one, "one")
        if not (self.panes.has_class("page") or self.panes.has_class("list")):
            self.panes.add_class("list")
        self._draw()

    def saw(self, look: TopReading) -> None:
        """The reader has looked; when it could not, what was seen last stays, dimmed."""
        self.rows.stale = bool(look.error)
        self._seen = self._seen._replace(error=look.error) if look.error else look
        self._draw()

    def turned(self, page: Page) -> None:
        self._page = page
        self._draw_page()

    def report(self, words: str, failed: bool) -> None:  # noqa: FBT001  # given by position
        self._line("#said", words, "red" if failed else "green")
        self.reader.again()

    def _draw(self) -> None:
        self.rows.show(rows_of(self._seen, self._find), self._seen.at)
        self._draw_head()
        self._draw_page()

    def _draw_head(self) -> None:
        scope_name = (
            "every project" if self.reader.everywhere and not self._away else self._scope_name
        )
        words = f" {summary(self._seen, scope_name)}"
        if self._find:
            words += f" · /{self._find}"
        if self._seen.error:
            words = f" Not connected, trying again: {self._seen.error}"
        self._line("#head", words)

    def _draw_page(self) -> None:
        row = self.rows.selected
        self._line("#keys", keys_of(row))
        if self._help:
            self.page.show("help", [("Keys", "bold")], HELP.splitlines(), live=False)
        elif row is None:
            self.page.show("", [], _nothing(self._seen), live=False)
        else:
            self._want(row)

    def _want(self, row: TopRow) -> None:
        run = (row.item.run if row.item else "") or (
            row.row.run.id if row.row and row.row.run else ""
        )
        tab = self._tab[1] if self._tab[0] == row.key else first_tab(row)
        wanted = WantedPage(row.task, run, tab) if row.task else None
        self.reader.want(wanted)
        page = self._page
        lines = page.lines if page is not None and page.wanted == wanted else []
        live = page is not None and page.live
        head = facts(row, self._seen.at)
        self.page.show((row.key, tab, bool(lines)), head, lines, live=live)

    def _line(self, where: str, words: str, style: str = "") -> None:
        line = fit(harmless(words.replace("\n", " ")), self.size.width)
        self.query_one(where, Static).update(Text(line, style, no_wrap=True))

    # what keys do

    def action_move(self, by: int) -> None:
        if self._reading:
            self.page.scroll_relative(y=by, animate=False)
            return
        self._help = False
        self._confirmed(sure=False)  # that was about another row
        self.rows.move(by)
        self._draw_page()

    def action_leap(self, pages: int) -> None:
        pane = self.page if self._reading else self.rows
        self.action_move(pages * max(pane.size.height - 1, 1))

    @property
    def _reading(self) -> bool:
        return self.focused is self.page

    def action_open(self) -> None:
        self._turn_to("page")

    def action_leave(self) -> None:
        self._help, self._then = False, None
        self._confirmed(sure=False)
        self.input.remove_class("asking")
        if not self._reading and self._find:
            self._find = ""
        self._turn_to("list")
        self._draw()

    def action_other(self) -> None:
        self._turn_to("list" if self._reading else "page")

    def _turn_to(self, pane: str) -> None:
        self.panes.remove_class("page", "list")
        self.panes.add_class(pane)
        (self.page if pane == "page" else self.rows).focus()

    def action_tab(self, tab: str) -> None:
        row = self.rows.selected
        self._tab, self._help = (row.key if row else "", tab), False
        self._turn_to("page" if self.panes.has_class("one") else "list")
        self._draw_page()

    def action_help(self) -> None:
        self._help = not self._help
        if self.panes.has_class("one"):
            self._turn_to("page" if self._help else "list")
        self._draw_page()

    def action_everywhere(self) -> None:
        if not self._away:
            self.reader.everywhere = not self.reader.everywhere
            self.reader.again()

    def action_find(self) -> None:
        self._ask("Find:", self._find_by, self._find)

    def _find_by(self, words: str) -> None:
        self._find = words
        self._draw()

    def action_choose(self, number: int) -> None:
        row = self._needs("question", "budget")
        if row is not None and row.item is not None and number <= len(row.item.options):
            self._answer(row, str(number))

    def action_answer(self) -> None:
        if row := self._needs("question", "budget"):
            self._ask(f"Answer {row.task}:", lambda text: self._answer(row, text))

    def _answer(self, row: TopRow, text: str) -> None:
        name = row.key.rpartition(":")[2]  # the question
        self._do("message.answer", f"Answered {row.task}.", name=name, text=text)

    def action_prompt(self) -> None:
        if row := self._any():
            self._ask(f"Tell {row.task}:", lambda text: self._tell_agent(row, text))

    def _tell_agent(self, row: TopRow, text: str) -> None:
        self._do("message.send", f"Sent to {row.task}.", task=row.task, text=text)

    def action_permit(self, choice: str) -> None:
        if self._sure is not None:
            self._confirmed(sure=choice == "once")
            return
        row = self._needs("permission")
        if row is not None:
            allow, always = choice != "deny", choice == "always"
            if always and not (row.item and row.item.always):
                self.report(f"{row.task} is not offered that. Approve it once: y", failed=True)
                return
            done = f"{'Approved' if allow else 'Denied'} {row.task}{' from now on' * always}."
            asks = (
                row.words if row.item and row.words != row.item.title else ""
            )  # what one has read
            self._do("run.permit", done, task=row.task, allow=allow, asks=asks, always=always)

    def _confirmed(self, *, sure: bool) -> None:
        then, self._sure = self._sure, None
        self._line("#said", "")
        if sure and then is not None:
            then()

    def action_retry(self) -> None:
        if row := self._needs("failed", "conflict", "held"):
            is_held = row.item is not None and row.item.kind == "held"
            done = "may start" if is_held else "is open again"
            operation = "task.resume" if is_held else "task.retry"
            self._do(operation, f"{row.task} {done}.", task=row.task)

    def action_accept(self) -> None:
        if row := self._needs("review"):
            self._do("task.close", f"{row.task} is done.", task=row.task)

    def action_land(self) -> None:
        row = self._needs("review", "not-landed", "conflict")
        if row is not None:
            self._confirm(f"Land {row.task}?", LANDING, f"Landed {row.task}.", row)

    def action_kill(self) -> None:
        if row := self._any():
            what = "End and cancel" if is_running(row) else "Cancel"
            self._confirm(f"{what} {row.task}?", "task.cancel", f"Cancelled {row.task}.", row)

    def action_attach(self) -> None:
        row = self._any()
        if row is None:
            return
        with self.suspend():
            done = subprocess.run([sys.executable, "-m", "fleet", "attach", row.task], check=False)
        self.refresh()
        if done.returncode:
            self._line("#said", f"{row.task} has no terminal now.", "red")

    def _any(self) -> TopRow | None:
        row = self.rows.selected
        return row if row is not None and row.task else None

    def _needs(self, *kinds: str) -> TopRow | None:
        """The selected row, if it is an item of such a kind; else the keys that it takes are said."""
        row = self._any()
        if row is not None and row.item is not None and row.item.kind in kinds:
            return row
        if row is not None:
            keys = ", ".join(own_keys(row)) or "none but those below"
            self._line(
                "#said", f"That key does nothing for {row.task}. Its keys: {keys}.", "yellow"
            )
        return None

    def _do(self, operation: str, words: str, **fields: str | bool) -> None:
        self._line("#said", "…")
        self.hands.do(Deed(operation, words, fields))

    def _confirm(self, question: str, operation: str, words: str, row: TopRow) -> None:
        self._sure = lambda: self._do(operation, words, task=row.task)
        self._line("#said", f"{question} (y/n)", "bold")

    def _ask(self, question: str, then: Callable[[str], None], given: str = "") -> None:
        self._then = then
        self._line("#said", question, "bold")
        self.input.value = given
        self.input.add_class("asking")
        self.input.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        then, self._then = self._then, None
        self.input.remove_class("asking")
        self._line("#said", "")
        self._turn_to("list")
        if then is not None and (event.value.strip() or then == self._find_by):
            then(event.value.strip())


def _nothing(look: TopReading) -> list[str]:
    if not look.at:
        return []
    return ["Nothing needs you, and nothing runs.", "", 'fleet add "TITLE" queues a task.']
