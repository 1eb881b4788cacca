"""The runner of a train of pull requests: each is tested, proposed on the forge, and followed there.

Every step can be repeated: a branch that is there is not pushed again, a pull request of that branch
is found before one is opened, and the newest report of a gate counts. So a process that is killed between two
of them, the next supervisor neither doubles nor loses one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain.errors import Refused, Unavailable
from fleet.domain.event import Kind
from fleet.domain.forges.pull import (
    GateNote,
    PullState,
    draft_of,
    follow,
    gate_note,
    is_ours,
    is_proposed,
    may_merge,
)
from fleet.domain.landing.landing import MERGE, LandingState, Pull, landed, with_pull
from fleet.domain.landing.train import TRIES
from fleet.ports import LandingQuery, Put
from fleet.supervisor.landing.lander import AHEAD, MOST_WAITING, TrainRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleet.domain.forges.pull import PullDraft, PullSeen
    from fleet.domain.landing.landing import Landing, Train
    from fleet.ports import Branches, Change, Forge, MemberWork

FOLLOW_SECONDS = 20.0  # between two looks at the pull requests of one train
MERGE_SECONDS = 30.0  # between two tries to merge one that the forge does not merge yet
WAIT_SECONDS = 15.0  # before a forge that did not answer is asked again
OF_ONE = frozenset({"rejected", "forge_refused"})  # what is in the way of one landing, not of all
FAR = float("inf")


class PullRunner(TrainRunner):
    """`TrainRunner` builds and tests; here nothing is stacked, and the forge moves the branch."""

    _followed_at = -FAR
    _retry_merge = 0.0

    def try_again(self) -> None:
        super().try_again()
        self._followed_at = -FAR

    def wait(self, why: str, *, for_person: bool) -> None:
        super().wait(why, for_person=for_person)
        self._not_before = self._parts.clock.since_boot() + WAIT_SECONDS

    def step(self, train: Train) -> None:
        """What a person holds is followed, too: it may be merged or reopened on the forge."""
        if self._job is None and not train.paused and self._is_due() and self._in_view(train):
            self._follow(self._adopted(train))
            return
        super().step(train)

    def _is_due(self) -> bool:
        now = self._parts.clock.since_boot()
        return now >= self._not_before and now - self._followed_at >= FOLLOW_SECONDS

    def _in_view(self, train: Train) -> list[Landing]:
        query = LandingQuery(train=train.id, open_only=True, limit=MOST_WAITING)
        return [one for one in self._parts.store.landings(query) if one.pull is not None]

    def _advance(self, train: Train, queue: Sequence[Landing]) -> None:
        merging = [one for one in queue if one.wish.pull and one.wish.pull.merge]
        fresh = [one for one in queue if not is_proposed(one)]
        self.idle = not (fresh or self.gates.count)
        if not fresh and not merging:
            self.gates.keep(set())
            self._plan(train, ())
            return
        now = self._parts.clock.since_boot()
        if self._target is None or now - self._looked_at >= 2.0:
            self._look(train, queue)
            return
        if not self._open.issuperset(self._behind.values()):
            self._behind.clear()
            self._built.clear()
        fresh += [one for one in merging if self._is_stale(one)]
        if fresh:
            self._prepare(train, fresh[:AHEAD])
        elif now >= self._retry_merge:
            self._merge(train, merging)

    def _is_stale(self, landing: Landing) -> bool:
        """Whether the branch has moved since the test, so that it must be tested again before a merge."""
        assert self._target is not None
        pull = landing.pull
        return pull is not None and is_proposed(landing) and pull.tested_on != self._target.commit

    def _prepare(self, train: Train, fresh: Sequence[Landing]) -> None:
        by_id = {landing.id: landing for landing in fresh}
        verdicts = {i: self._verdict(by_id, (i,)) for i in by_id}
        if good := [i for i in by_id if verdicts[i].good]:
            self._propose(train, by_id[good[0]])
        elif bad := [i for i in by_id if verdicts[i].failed >= TRIES]:
            self._blame(train, by_id[bad[0]])
        else:
            slots = max(1, self._parts.world("").settings.land.slots)
            behind = self._behind
            self._test(train, [(i,) for i in by_id if i not in behind][:slots], by_id, slots)

    def _work(self, landing: Landing) -> MemberWork:
        return super()._work(landing)._replace(how=MERGE)  # the tree is the same; see `publish`

    def _propose(self, train: Train, landing: Landing) -> None:
        assert self._target is not None
        built, base = self._built[(landing.id,)], self._target.commit
        work = self._work(landing)
        branch = landing.pull.branch if landing.pull else work.branch
        if not branch or branch == landing.onto:
            raise Refused(f"{landing.task} has no branch of its own for a pull request.")
        gate = self._gate((landing.id,), {landing.id: landing})
        note = gate_note(gate, base, landing.wish.force)
        draft = draft_of(landing, self._parts.store.task(landing.task), branch)
        git, forge = self._git(train), self._forge(train)
        seen: list[tuple[str, PullSeen]] = []
        refused: list[str] = []

        def act() -> None:
            there = forge()
            try:
                seen.append(proposed(git, there, work, draft, built.commit, note))
            except Refused as error:
                if error.code not in OF_ONE:
                    raise
                refused.append(f"{error.message} {error.fix}".strip())

        def then() -> None:
            self._clear_trouble()
            if refused:
                self._write(
                    replace(landing, state=LandingState.HELD, why=refused[0]), Kind.LANDING_HELD
                )
                return
            ((head, pull),) = seen
            new = Pull(pull.number, pull.url, branch, head, landing.tip, base)
            self._write(follow(with_pull(landing, new), pull), Kind.PULL_OPENED)
            self._followed_at = self._parts.clock.since_boot()

        self._begin(act, then)

    def _forge(self, train: Train) -> Callable[[], Forge]:
        return lambda: self._more.forge(train.repository, train.remote)

    def _follow(self, train: Train) -> None:
        self._followed_at = self._parts.clock.since_boot()
        landings, forge, git = self._in_view(train), self._forge(train), self._git(train)
        seen: dict[str, PullSeen] = {}

        def act() -> None:
            there = forge()
            for one in landings:
                assert one.pull is not None
                pull = there.show(one.pull.number)
                if pull.state is PullState.MERGED:
                    check_merged(git, one.onto, pull)
                seen[one.id] = pull

        def then() -> None:
            self._clear_trouble()
            for one in landings:
                self._note_seen(one.id, seen[one.id])

        self._begin(act, then)

    def _note_seen(self, landing_id: str, seen: PullSeen, trouble: str | None = None) -> None:
        """The landing may have changed while the forge was asked. `trouble`: why it did not merge."""
        landing = self._parts.store.landing(landing_id)
        pull = landing.pull
        if not landing.open or pull is None or pull.number != seen.number:
            return
        if trouble is not None:
            pull = replace(pull, trouble=trouble)
        self._write(follow(with_pull(landing, pull), seen), None, before=landing)

    def _write(self, after: Landing, kind: Kind | None, before: Landing | None = None) -> None:
        if after == before:
            return
        store = self._parts.store
        about = {"url": after.pull.url} if after.pull else {"why": after.why}
        changes: list[Change] = [Put(after)]
        events = [self._event(kind, after, **about)] if kind else []
        if after.state is LandingState.LANDED:
            task = store.task(after.task)
            changes.append(Put(landed(task, after.commit, now=store.now())))
            events.append(self._event(Kind.TASK_LANDED, after, commit=after.commit))
        elif after.state is LandingState.HELD and before and before.state != after.state:
            events.append(self._event(Kind.PULL_CLOSED, after, **about))
        store.commit(changes, events)

    def _merge(self, train: Train, merging: Sequence[Landing]) -> None:
        """One of them. The forge refuses when its head is no longer what we tested."""
        self._retry_merge = self._parts.clock.since_boot() + MERGE_SECONDS
        forge, git = self._forge(train), self._git(train)
        seen: dict[str, PullSeen] = {}
        trouble: dict[str, str] = {}

        def act() -> None:
            there = forge()
            for one in merging:
                assert one.pull is not None
                pull = there.show(one.pull.number)
                if may_merge(one, pull):
                    try:
                        there.merge(pull.number, pull.head, one.wish.how)
                        pull = there.show(pull.number)
                    except (
                        Refused
                    ) as error:  # its head moved, or a rule of the forge is not met yet
                        trouble[one.id] = error.message
                if pull.state is PullState.MERGED:
                    check_merged(git, one.onto, pull)
                seen[one.id] = pull
                if pull.state is PullState.MERGED:
                    return  # the branch has moved: the others are tested again

        def then() -> None:
            for landing_id, pull in seen.items():
                self._note_seen(landing_id, pull, trouble.get(landing_id, ""))
            self._clear_trouble()
            self._target = None

        self._begin(act, then)

    def _blame(self, train: Train, landing: Landing) -> None:
        """The status of what was proposed earlier must not go on saying that it passes."""
        pull = landing.pull
        if pull is None:
            super()._blame(train, landing)
            return
        assert self._target is not None
        forge = self._forge(train)
        note = GateNote(False, f"Fails the gate when merged with {self._target.commit[:12]}.")
        self._begin(
            lambda: forge().report(pull.head, note),
            lambda: super(PullRunner, self)._blame(train, landing),
        )


def proposed(
    git: Branches, forge: Forge, work: MemberWork, draft: PullDraft, built: str, note: GateNote
) -> tuple[str, PullSeen]:
    """Push, open what is not open yet, and report the gate: the commit, and its pull request."""
    head = git.publish(work, draft.branch, built)
    seen = forge.find(draft.branch, draft.base)
    if not is_ours(seen, head):
        seen = forge.open(draft)
    assert seen is not None
    if seen.state is PullState.OPEN:
        if (seen.title, seen.body) != (draft.title, draft.body):
            forge.update(seen.number, draft)
        forge.report(head, note)
        seen = seen._replace(head=head)  # a forge reads a push a moment later
    return head, seen


def check_merged(git: Branches, onto: str, seen: PullSeen) -> None:
    """Raise unless the branch really has it: a forge has said so of commits that never arrived."""
    commit = seen.merged_as or seen.head
    if not git.has(onto, [commit]):
        raise Unavailable(
            f"The forge reports {seen.url} as merged, but {onto} does not have {commit[:12]} yet.",
            fix=f"Look at {onto} there.",
            code="not_there",
        )
