from __future__ import annotations

from fleet.server.http.connections import Door, Guest, group_of


class Line:
    """A connection that remembers whether it was shown out."""

    def __init__(self, door: Door, address: str = "10.0.0.1") -> None:
        self.busy = self.out = False
        self.guest = Guest(door, address, lambda: self.busy, self._leave)
        self.is_in = door.enter(self.guest)

    def _leave(self) -> None:
        self.out = True


def test_the_oldest_idle_stranger_leaves_for_the_next():
    door = Door(3)
    first, second, third = (Line(door, f"10.0.0.{n}") for n in range(3))
    first.busy = True
    newest = Line(door, "10.0.0.9")
    assert newest.is_in
    assert (first.out, second.out, third.out) == (False, True, False)
    assert len(door) == 3


def test_who_showed_a_token_leaves_last():
    door = Door(2)
    known, stranger = Line(door, "10.0.0.1"), Line(door, "10.0.0.2")
    known.guest.prove()
    assert Line(door, "10.0.0.3").is_in
    assert (known.out, stranger.out) == (False, True)


def test_nobody_enters_while_all_others_are_being_answered():
    door = Door(2)
    for line in (Line(door, "10.0.0.1"), Line(door, "10.0.0.2")):
        line.busy = True
    assert not Line(door, "10.0.0.3").is_in
    assert (len(door), door.turned_away) == (2, 1)


def test_one_address_has_half_of_the_connections_and_only_its_own_leave_for_it():
    door = Door(4)
    other = Line(door, "10.0.0.2")
    lines = [Line(door, "10.0.0.1") for _ in range(3)]
    assert [line.out for line in lines] == [True, False, False]
    assert not other.out


def test_a_proxy_may_have_them_all():
    door = Door(4, proxies=("10.0.0.1",))
    lines = [Line(door, "10.0.0.1") for _ in range(4)]
    assert not any(line.out for line in lines)
    assert not any(line.out for line in [Line(Door(2), "127.0.0.1") for _ in range(2)])


def test_who_left_is_not_counted():
    door = Door(1)
    for _ in range(3):
        line = Line(door)
        line.guest.leave()
        assert line.is_in
    assert (len(door), door.turned_away) == (0, 0)


def test_an_address_stands_for_its_network():
    assert group_of("2001:db8::1") == group_of("2001:db8::ffff") == "2001:db8::/64"
    assert group_of("::ffff:10.0.0.1") == "10.0.0.1"
    assert group_of("::1") == group_of("127.0.0.1") == group_of("no address") == ""
