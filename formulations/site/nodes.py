"""The nodes that the rules of a round's site close to a job, whoever else runs there."""

from collections.abc import Callable
from operator import attrgetter

import numpy as np

from ronda.formulations.node_rules.hosts import binding
from ronda.formulations.node_rules.outages import closed_before
from ronda.formulations.node_rules.parts import closed_by_parts, has_parts
from ronda.formulations.node_rules.shapes import closed_by_name
from ronda.instances.base import Mask
from ronda.instances.job import JobState, Option
from ronda.instances.models.cache import per_record
from ronda.instances.round import Round

CLOSES: tuple[Callable[[Round, JobState, Option], Mask | None], ...] = (
    closed_before,
    closed_by_name,
    closed_by_parts,
)
"""Functions that return the nodes (N,) that a rule closes to a job with an option, or None."""

_OF_NODES = attrgetter("nodes", "features", "exclusive", "slices", "neighbourhoods", "one_node")
"""What a job may say of its nodes."""


def closed_to(round: Round, state: JobState, option: Option) -> Mask | None:
    """Return the nodes (N,) that are closed to a job with an option, or None if none is."""
    found = None
    for closes in CLOSES if round.has_rules else ():
        more = closes(round, state, option)
        if more is not None:
            found = more if found is None else found | more
    return None if found is None or not np.any(found) else found


@per_record(maxsize=4)
def concerns_nodes(round: Round) -> bool:
    """Return whether any rule is about single nodes, so that equal numbers of GPUs are not enough.

    Jobs are then placed by a `ronda.formulations.placement.book.NodeBook`.
    """
    if not round.has_rules:
        return False
    if round.leaving or binding(round).any() or has_parts(round):
        return True
    return any(map(any, (_OF_NODES(state.job) for state in round.jobs)))
