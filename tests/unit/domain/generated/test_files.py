from __future__ import annotations

from fleet.domain.generated.files import File, WrittenFile, plan

ONE = File("claude", "agents/one.md", "1")


def planned(*wanted, known=(), there=(), force=False, targets=("claude",)):
    digest = {file.path: file.text for file in wanted}
    return plan(wanted, dict(known), dict(there), digest, targets=targets, force=force)


def ours(path, *hashes, target="claude"):
    return path, WrittenFile(target, hashes)


def test_what_is_not_there_is_written():
    assert planned(ONE).write == (ONE,)


def test_what_is_as_it_should_be_is_left_whoever_wrote_it():
    found = planned(ONE, there=[(ONE.path, "1")])
    assert (found.write, found.same) == ((), (ONE.path,))


def test_what_we_wrote_is_written_anew():
    assert planned(ONE, known=[ours(ONE.path, "0")], there=[(ONE.path, "0")]).write == (ONE,)


def test_what_we_wrote_and_somebody_edited_is_not():
    found = planned(ONE, known=[ours(ONE.path, "0")], there=[(ONE.path, "mine")])
    assert (found.write, found.edited) == ((), (ONE.path,))


def test_what_we_never_wrote_is_not():
    found = planned(ONE, there=[(ONE.path, "mine")])
    assert (found.write, found.foreign) == ((), (ONE.path,))


def test_force_writes_over_both():
    there = [(ONE.path, "mine")]
    assert planned(ONE, there=there, force=True).write == (ONE,)
    assert planned(ONE, known=[ours(ONE.path, "0")], there=there, force=True).write == (ONE,)


def test_half_of_an_earlier_writing_is_still_ours():
    for held in ("0", "1"):
        found = planned(
            ONE._replace(text="2"), known=[ours(ONE.path, "0", "1")], there=[(ONE.path, held)]
        )
        assert [file.text for file in found.write] == ["2"]


def test_what_nobody_needs_any_more_goes_unless_it_was_edited():
    known = [ours("agents/old.md", "0"), ours("agents/kept.md", "0")]
    found = planned(ONE, known=known, there=[("agents/old.md", "0"), ("agents/kept.md", "mine")])
    assert (found.prune, found.orphans) == (("agents/old.md",), ("agents/kept.md",))


def test_what_is_for_others_stays_when_only_some_are_written():
    known = [ours(".aider.conf.yml", "0", target="aider")]
    assert planned(ONE, known=known, there=[(".aider.conf.yml", "0")]).prune == ()
