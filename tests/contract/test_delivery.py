"""Text that is typed to a program in its terminal: it arrives as it is, or not at all."""

import random
import string
import threading

import pytest

from fleet.adapters.tmux.terminals import MAX_PROMPT_BYTES
from fleet.domain.errors import BadInput, Refused, Unavailable
from fleet.ports import ScreenState
from fleet.testing.clock import FakeClock
from fleet.testing.fakes import FakeMachine, FakeTerminal
from tests.contract.panes import RUN, Panes
from tests.wait import until


@pytest.fixture
def rig(tmp_path):
    made = Panes(tmp_path)
    yield made
    made.close()


@pytest.fixture
def plain(rig):
    """A program that only takes prompts."""
    rig.ready(RUN, "--plain")
    return rig


HARD = {
    "quotes": "it's \"quoted\" `here` 'there'",
    "a command": "$(touch /tmp/never) `touch x` ${HOME} ; rm -rf / & | > x",
    "lines": "one\ntwo\n\n\nfive\n",
    "a key's name": "C-c",
    "names of keys": "Enter Escape C-c C-d Up \\; ;",
    "a leading dash": "-p --help",
    "emoji": "ship it 🚀👩‍👩‍👧‍👦 ✅",
    "tabs": "\tindented\t\twith tabs\t",
    "a trailing backslash": "a path\\",
    "a trailing semicolon": "done;",
    "formats": "#{pid} %H #(date) ##",
    "other scripts": "日本語 العربية हिन्दी ñ ü",
    "colours": "\x1b[31mred\x1b[0m",
    "controls": "a\x03b\x04c\x15d\x1ae\x7ff",
    "carriage returns": "dos\r\nlines\r",
    "spaces around": "   x   ",
    "100 KB": "a long line " * 8500,
    "100 KB of lines": "line\n" * 20_000,
    "bytes that are no text": b"caf\xe9 \xff".decode("utf-8", "surrogateescape"),
}


@pytest.mark.parametrize("what", HARD)
def test_text_arrives_byte_for_byte(plain, what):
    plain.terminals.paste(RUN, HARD[what])
    until(plain.got, why="the prompt was taken")
    assert plain.got() == [HARD[what]]
    assert plain.got("key") == []


def random_text(dice: random.Random) -> str:
    """Like what people and agents send, and like nothing that anybody would."""
    size = 100_000 if dice.random() < 0.01 else dice.choice([1, 10, 80, 400, 4000])
    pieces = [
        string.ascii_letters, string.digits + " ", string.punctuation, "\n", "\t ", "\\'\"`$;#%{}()",
        "äöüßéñ", "日本語漢字", "🚀✅👩‍👩", "\u200b\u202e\ufeff", "\x1b\x03\x04\x15\x1a\x7f\r",
    ]  # fmt: skip
    words = ["C-c", "Enter", "$(x)", "[200~", "[201~", "-p", "/exit", "\x1b[A", "EOF", "\\\n", "'"]
    chosen = dice.sample(pieces, dice.randint(1, 4))
    text = ""
    while len(text) < size:
        alphabet = dice.choice(chosen)
        text += "".join(dice.choices(alphabet, k=min(size, dice.randint(1, 60))))
        text += dice.choice(words) if dice.random() < 0.2 else ""
    text = text.replace("\x1b[201~", "")
    return text if text.strip() and text.strip() != "/exit" else "x"


def deliver(rig, count, seed):
    dice = random.Random(seed)
    sent = []
    for number in range(count):
        text = f"{number} {random_text(dice)}"
        rig.terminals.paste(RUN, text)
        sent.append(text)
    until(lambda: len(rig.got()) >= count, why=lambda: f"{len(rig.got())} prompts")
    for mine, theirs in zip(sent, rig.got(), strict=True):
        assert mine == theirs
    assert rig.got("key") == []


def test_100_prompts_of_random_text_arrive_exactly(plain):
    deliver(plain, 100, seed=4)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(10))
def test_10_000_prompts_of_random_text_arrive_exactly(plain, seed):
    deliver(plain, 1000, seed)


def test_what_is_sent_while_it_works_waits_its_turn(rig):
    rig.ready()
    rig.terminals.paste(RUN, "sleep 0.5\nsay one")
    rig.until_state(ScreenState.WORKING)
    rig.terminals.paste(RUN, "say two")
    until(lambda: [h["kind"] for h in rig.hooks()].count("result") == 2)
    assert [h["text"] for h in rig.hooks() if h["kind"] == "turn"] == [
        "sleep 0.5\nsay one",
        "say two",
    ]


def test_texts_that_several_send_at_once_do_not_mix(plain):
    texts = [f"{n} " + string.ascii_letters * 40 for n in range(8)]
    threads = [threading.Thread(target=plain.terminals.paste, args=(RUN, t)) for t in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    until(lambda: len(plain.got()) == len(texts))
    assert sorted(plain.got()) == texts


def test_many_screens_are_looked_at_at_once(rig):
    for run in ("t-1.1", "t-2.1"):
        rig.ready(run)
    rig.terminals.paste("t-2.1", "permission rm -rf build")
    rig.until_state(ScreenState.WANTS, "t-2.1")
    seen = rig.terminals.screens(["t-1.1", "t-2.1", "t-3.1"])
    assert {run: screen.rule for run, screen in seen.items()} == {
        "t-1.1": "full_screen.empty-box",
        "t-2.1": "full_screen.dialog",
    }
    assert rig.terminals.screens([]) == rig.terminals.screens(["t-9.9"]) == {}


def test_a_dialog_is_never_typed_into(rig):
    rig.ready()
    rig.terminals.paste(RUN, "permission rm -rf build")
    rig.until_state(ScreenState.WANTS)
    with pytest.raises(Refused) as raised:
        rig.terminals.paste(RUN, "yes")
    assert raised.value.code == "wants_permission"
    assert "fleet attach" in raised.value.fix
    assert not rig.terminals.is_ready(RUN)
    assert rig.hooks()[-1]["kind"] == "wants"
    rig.terminals.press(RUN, "Escape")
    until(lambda: {"kind": "tool_result", "name": "run", "text": "denied"} in rig.hooks())
    assert rig.got("eaten") == ["\x1b"]  # our Escape, and nothing of the words


@pytest.mark.parametrize("text", ["say one 🚀", "say one\n" * 9, "x" * 1000])
def test_what_was_pasted_and_never_sent_is_sent_and_not_pasted_again(rig, text):
    rig.ready()
    pane = rig.terminals._terminal(RUN).pane
    rig.terminals._enter(
        RUN, rig.terminals._terminal(RUN), text, text.encode(), rig.terminals.screen(RUN)
    )
    rig.until_state(ScreenState.TYPING)
    rig.terminals.paste(RUN, text)
    until(lambda: rig.got() == [text], why=rig.got)
    rig.tmux.paste(pane, b"somebody's words")
    rig.until_state(ScreenState.TYPING)
    rig.terminals.paste(RUN, text)
    until(lambda: rig.got() == [text, text], why=rig.got)


def test_a_program_that_has_ended_is_not_typed_into(rig):
    rig.ready()
    rig.terminals.paste(RUN, "/exit")
    assert rig.ended(RUN).code == 0
    until(lambda: not rig.terminals.screen(RUN).alive)
    for act in (lambda: rig.terminals.paste(RUN, "x"), lambda: rig.terminals.press(RUN, "Enter")):
        with pytest.raises(Refused) as raised:
            act()
        assert raised.value.code == "exited"
    assert not rig.terminals.is_ready(RUN)


def test_words_that_nobody_sent_are_erased_when_nobody_is_there_to_send_them(plain):
    pane = plain.tmux.panes()[0].id
    plain.tmux.paste(pane, b"half a thou")
    plain.until_state(ScreenState.TYPING)
    assert plain.terminals.is_ready(RUN)
    plain.terminals.paste(RUN, "mine")
    until(plain.got)
    assert plain.got() == ["mine"]


def test_somebody_who_is_typing_is_not_disturbed(plain):
    pane = plain.tmux.panes()[0]
    argv = plain.tmux.attach_argv(pane.session, {})
    with Watcher(argv):
        until(lambda: plain.terminals.screen(RUN).watchers == 1)
        plain.tmux.paste(pane.id, b"half a thou")
        plain.until_state(ScreenState.TYPING)
        assert not plain.terminals.is_ready(RUN)
        with pytest.raises(Refused) as raised:
            plain.terminals.paste(RUN, "mine")
        assert raised.value.code == "typing"
        assert plain.tmux.press(pane.id, "Enter")
        until(plain.got)
    assert plain.got() == ["half a thou"]


class Watcher:
    """A person at a terminal of their own."""

    def __init__(self, argv):
        self.argv = argv

    def __enter__(self):
        import os
        import pty

        pid, self.fd = pty.fork()
        if pid == 0:
            os.environ["TERM"] = "xterm-256color"
            os.execvp(self.argv[0], self.argv)
        self.pid = pid
        threading.Thread(target=self._drain, daemon=True).start()
        return self

    def _drain(self):
        import os
        from contextlib import suppress

        with suppress(OSError):
            while os.read(self.fd, 4096):
                pass

    def __exit__(self, *_):
        import os

        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


BAD = {
    "nothing": "",
    "only spaces": " \n\t",
    "a NUL": "a\0b",
    "the end of a paste": "a\x1b[201~rm -rf /\r",
    "too much": "x" * (MAX_PROMPT_BYTES + 1),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_typed_whole_is_refused(plain, what):
    with pytest.raises(BadInput):
        plain.terminals.paste(RUN, BAD[what])
    with pytest.raises(BadInput):
        plain.terminals.press(RUN, "C-d")
    plain.terminals.paste(RUN, "fine")
    until(plain.got)
    assert plain.got() == ["fine"]


def test_a_run_without_a_terminal_has_no_screen(rig):
    for act in (rig.terminals.screen, lambda run: rig.terminals.paste(run, "x")):
        with pytest.raises(Unavailable):
            act("t-9.9")
    assert not rig.terminals.is_ready("t-9.9")


def test_a_program_that_is_slow_to_start_is_not_ready_before_it_is(rig):
    rig.start(RUN, rig.program("--slow", "1"))
    assert not rig.terminals.is_ready(RUN)
    until(lambda: rig.terminals.is_ready(RUN))
    assert rig.hooks()[0]["kind"] == "session"


def test_the_fake_terminal_promises_the_same():
    machine = FakeMachine(FakeClock(), lambda *_: None)
    terminal = FakeTerminal(machine)
    with pytest.raises(Unavailable):
        terminal.screen(RUN)
    from fleet.ports import Launch, Screen

    machine.launch(RUN, Launch(("x",), "/", terminal=True))
    machine.tick()
    assert terminal.is_ready(RUN)
    terminal.paste(RUN, "hello")
    for bad in ("", "a\0b"):
        with pytest.raises(BadInput):
            terminal.paste(RUN, bad)
    terminal.screens[RUN] = Screen("?", state=ScreenState.WANTS)
    with pytest.raises(Refused):
        terminal.paste(RUN, "no")
    with pytest.raises(Unavailable):
        machine.tell(RUN, "x", key="1")
    machine.finish(RUN, 3)
    with pytest.raises(Refused):
        terminal.press(RUN, "Enter")
    assert terminal.screen(RUN).status == 3
    assert terminal.typed == {RUN: ["hello"]}
