"""What every Launcher promises: the real keepers, and the fake that tests and simulations use."""

import json
import os

import pytest

from fleet.base import machine
from fleet.domain.errors import Unavailable
from fleet.ports import Launch, Presence
from fleet.testing.clock import FakeClock
from fleet.testing.fakes import FakeMachine
from tests.contract.launching import Rig, is_alive, shell
from tests.wait import until

RUN = "t-1.1"


class Real:
    """Coders are shell scripts; time passes by itself."""

    def __init__(self, place):
        self.rig = Rig(place)
        self.launcher = self.rig.keepers

    def talker(self, *lines, code):
        """A coder that says this and ends so."""
        said = " ".join(f"'{line}'" for line in lines)
        return shell(f"printf '%s\\n' {said}; exit {code}" if lines else f"exit {code}")

    def stayer(self):
        """A coder that works until it is stopped, and repeats what it hears."""
        return shell(f"echo $$ > {self.rig.note('pid')}; exec cat", keep_stdin=True)

    def heard(self, run):
        return self.rig.said(run).decode()

    def pass_time(self):
        pass

    def since_boot(self):
        return machine.since_boot()

    def kill_keeper(self, run):
        self.rig.pid("pid")
        os.kill(self.rig.keeper(run), 9)

    def working(self, run):
        return (self.rig.place / "pid").exists() and is_alive(self.rig.pid("pid"))

    def close(self):
        self.rig.close()


class Fake:
    """Coders are told what to do by their argv; time passes when it is told to."""

    def __init__(self, _place):
        self.clock = FakeClock()
        self.launcher = FakeMachine(self.clock, self._work)

    def _work(self, run, process):
        if process.launch.argv[0] == "talk":
            code, *lines = json.loads(process.launch.argv[1])
            process.lines += lines
            self.launcher.finish(run, code)
        elif process.closed:
            self.launcher.finish(run, 0)

    def talker(self, *lines, code):
        return Launch(("talk", json.dumps([code, *lines])), "/")

    def stayer(self):
        return Launch(("stay",), "/", keep_stdin=True)

    def heard(self, run):
        return "".join(self.launcher.processes[run].told.values())

    def pass_time(self):
        self.clock.advance(0.1)
        self.launcher.tick()

    def since_boot(self):
        return self.clock.since_boot()

    def kill_keeper(self, run):
        self.launcher.kill_keeper(run)

    def working(self, run):
        return run in self.launcher.running()

    def close(self):
        pass


@pytest.fixture(params=[Real, Fake])
def world(request, tmp_path):
    made = request.param(tmp_path)
    yield made
    made.close()


def presence(world, run=RUN):
    return world.launcher.look(run).presence


def wait_for(world, *wanted):
    def there():
        world.pass_time()
        return presence(world) in wanted

    until(there, why=f"{wanted}")


def test_a_run_that_was_never_launched_has_no_keeper(world):
    assert presence(world) is Presence.NEVER


def test_a_run_is_alive_until_its_coder_has_ended(world):
    before = world.since_boot()
    world.launcher.launch(RUN, world.stayer())
    wait_for(world, Presence.ALIVE)
    assert before <= world.launcher.look(RUN).began <= world.since_boot()
    until(lambda: world.working(RUN))
    world.launcher.stop(RUN, grace=5)
    wait_for(world, Presence.EXITED)
    assert not world.working(RUN)
    assert world.launcher.look(RUN).code == -15


@pytest.mark.parametrize("code", [0, 1, 77])
def test_the_exit_status_of_the_coder_is_kept(world, code):
    world.launcher.launch(RUN, world.talker("hello", code=code))
    wait_for(world, Presence.EXITED)
    assert world.launcher.look(RUN).code == code


def test_launching_again_and_again_starts_one_coder(world):
    for _ in range(5):
        world.launcher.launch(RUN, world.talker("hello", code=0))
    wait_for(world, Presence.EXITED)
    world.launcher.launch(RUN, world.talker("hello again", code=1))
    for _ in range(3):
        world.pass_time()
    assert presence(world) is Presence.EXITED
    assert world.launcher.read(RUN, 0, final=True).lines == ("hello",)


def test_what_is_told_is_heard_in_order(world):
    world.launcher.launch(RUN, world.stayer())
    wait_for(world, Presence.ALIVE)
    for n in range(20):
        world.launcher.tell(RUN, f"{n}\n", key=f"m-{n}")
    until(lambda: world.heard(RUN) == "".join(f"{n}\n" for n in range(20)))


def test_what_is_told_under_one_key_is_heard_once_however_often_it_is_told(world):
    world.launcher.launch(RUN, world.stayer())
    wait_for(world, Presence.ALIVE)
    for key in ("a", "b", "a", "b", "ab", "a"):
        world.launcher.tell(RUN, f"{key}\n", key=key)
    until(lambda: world.heard(RUN).count("\n") >= 3)
    assert world.heard(RUN) == "a\nb\nab\n"


def test_a_coder_whose_input_is_closed_hears_the_end_of_it(world):
    world.launcher.launch(RUN, world.stayer())
    wait_for(world, Presence.ALIVE)
    world.launcher.tell(RUN, "last words\n", key="m-1")
    world.launcher.close(RUN)
    world.launcher.close(RUN)
    wait_for(world, Presence.EXITED)
    assert world.launcher.look(RUN).code == 0
    assert world.heard(RUN) == "last words\n"


def test_what_a_conversation_began_with_can_be_asked_for_later(world):
    launch = world.stayer()._replace(opening='{"id": 7}')
    assert world.launcher.opening(RUN) == ""
    world.launcher.launch(RUN, launch)
    wait_for(world, Presence.ALIVE)
    assert world.launcher.opening(RUN) == '{"id": 7}'


def test_nothing_can_be_said_to_a_run_that_has_not_started(world):
    with pytest.raises(Unavailable):
        world.launcher.tell(RUN, "hello\n", key="m-1")
    with pytest.raises(Unavailable):
        world.launcher.close(RUN)
    with pytest.raises(Unavailable):
        world.launcher.stop(RUN, grace=1)
    assert presence(world) is Presence.NEVER


def test_a_run_whose_keeper_was_killed_is_gone_and_what_is_left_of_it_can_be_ended(world):
    world.launcher.launch(RUN, world.stayer())
    wait_for(world, Presence.ALIVE)
    world.kill_keeper(RUN)
    wait_for(world, Presence.GONE)
    until(lambda: world.launcher.end(RUN))
    assert not world.working(RUN)
    assert presence(world) is Presence.GONE


def test_ending_a_living_run_is_proven_only_later(world):
    world.launcher.launch(RUN, world.stayer())
    wait_for(world, Presence.ALIVE)
    assert world.launcher.end(RUN) is False
    wait_for(world, Presence.EXITED)
    assert world.launcher.end(RUN) is True
    assert not world.working(RUN)


def test_ending_a_run_that_never_started_forbids_that_it_ever_does(world):
    assert world.launcher.end(RUN) is True
    world.launcher.launch(RUN, world.talker("hello", code=0))
    for _ in range(3):
        world.pass_time()
    assert presence(world) is Presence.GONE
    assert world.launcher.read(RUN, 0, final=True).lines == ()
    assert world.launcher.end(RUN) is True


def test_ending_a_run_twice_changes_nothing(world):
    world.launcher.launch(RUN, world.talker(code=3))
    wait_for(world, Presence.EXITED)
    assert (world.launcher.end(RUN), world.launcher.end(RUN)) == (True, True)
    assert world.launcher.look(RUN).code == 3


def test_stopping_a_run_that_has_ended_changes_nothing(world):
    world.launcher.launch(RUN, world.talker(code=3))
    wait_for(world, Presence.EXITED)
    world.launcher.stop(RUN, grace=0)
    assert world.launcher.look(RUN).code == 3


def test_a_keeper_ends_its_coder_when_the_lease_runs_out_and_not_before(world):
    world.launcher.launch(RUN, world.stayer())
    wait_for(world, Presence.ALIVE)
    over = world.since_boot() + 1.5
    world.launcher.renew([RUN], until=over)
    wait_for(world, Presence.EXITED)
    assert world.since_boot() >= over
    assert not world.working(RUN)
    assert world.launcher.look(RUN).expired


def test_a_coder_that_ended_by_itself_did_not_end_by_its_lease(world):
    world.launcher.launch(RUN, world.talker(code=3))
    wait_for(world, Presence.EXITED)
    world.launcher.renew([RUN], until=world.since_boot() - 1)
    assert not world.launcher.look(RUN).expired


def test_a_lease_that_is_renewed_ends_nothing(world):
    world.launcher.launch(RUN, world.stayer())
    wait_for(world, Presence.ALIVE)
    first = world.since_boot() + 0.4
    world.launcher.renew([RUN], until=first)
    world.launcher.renew([RUN], until=first + 60)

    def later():
        world.pass_time()
        return world.since_boot() > first + 1.2

    until(later)
    assert presence(world) is Presence.ALIVE


def test_a_keeper_that_comes_after_its_lease_starts_nothing(world):
    world.launcher.renew([RUN], until=world.since_boot())
    world.launcher.launch(RUN, world.talker("hello", code=0))
    wait_for(world, Presence.EXITED)
    assert world.launcher.look(RUN).code == -9
    assert world.launcher.read(RUN, 0, final=True).lines == ()


def test_a_transcript_is_read_from_where_the_last_reader_stopped(world):
    world.launcher.launch(RUN, world.talker("one", "two", "three", code=0))
    wait_for(world, Presence.EXITED)
    first = world.launcher.read(RUN, 0)
    assert first.lines == ("one", "two", "three")
    assert world.launcher.read(RUN, first.offset, final=True).lines == ()
    assert world.launcher.read(RUN, first.offset).offset == first.offset


def test_a_run_that_never_started_has_said_nothing(world):
    assert world.launcher.read(RUN, 0).lines == ()
    assert world.launcher.stderr(RUN) == ""
