"""Whose doing an ending is: the run's own, a person's, or that of the machine it needed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain.run import Ending, Wanted

if TYPE_CHECKING:
    from fleet.domain.fleet import Fleet
    from fleet.domain.run import Outcome, Run
    from fleet.ports import Nodes


def blame(outcome: Outcome, run: Run, fleet: Fleet, nodes: Nodes) -> Outcome:
    """A run whose node went down did not fail: it costs no attempt."""
    node = fleet.nodes.get(run.choice.node)
    if node is None or outcome.ending not in {Ending.FAILED, Ending.STALLED}:
        return outcome
    pulse = nodes.pulse(node)
    if pulse.up is not False:
        return outcome
    why = f"Its node {node.name} is down ({pulse.why}). {outcome.detail}"
    return replace(outcome, ending=Ending.LOST, detail=why)


def wished(run: Run, otherwise: Ending) -> Ending:
    """What somebody wanted of a run that never started counts, not why it could not."""
    match run.wanted:
        case Wanted.CANCEL:
            return Ending.CANCELLED
        case Wanted.STOP:
            return Ending.STOPPED
        case Wanted.YIELD:
            return Ending.YIELDED
    return otherwise
