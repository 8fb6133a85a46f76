"""What the policies for rigid jobs share: start jobs in some order as the user asked for them."""

from collections.abc import Sequence

from ronda.formulations.models.power import extra_w
from ronda.formulations.options.requested import requested_options
from ronda.instances.job import Allocation, JobState
from ronda.instances.round import Round
from ronda.solvers.greedy.room import ROUNDING, Clocks, Room, full_clock, spare_w


def start_in_order(
    room: Room, waiting: Sequence[JobState], *, blocking: bool = True, teardown_s: float = 0.0
) -> dict[str, Allocation]:
    """Return allocations of waiting jobs in order, as far as there is room.

    If `blocking` the first job without room ends it; else those behind it are tried.
    """
    started = {}
    for state in waiting:
        allocation = room.fit(state, teardown_s)
        if allocation is not None:
            started[state.job.id] = allocation
        elif blocking:
            break
    return started


def admit(
    round: Round, order: Sequence[JobState], *, clocks: Clocks = full_clock
) -> list[JobState]:
    """Return the jobs that get a share of their pool's GPUs and of the watts, in order.

    Only numbers count, not nodes. A job that finds too few left does not block those behind it;
    running jobs that may not be stopped come first.
    """
    pools = round.cluster.topology.pools
    left, watts = [pool.gpus for pool in pools], spare_w(round)
    admitted = []
    pinned = [s for s in order if s.allocation is not None and not s.job.preemptible]
    firm = {state.job.id for state in pinned}
    for state in pinned + [s for s in order if s.job.id not in firm]:
        if state.allocation is not None:
            options = [state.allocation.option]
        elif any(left):
            options = [clocks(state, option) for option in requested_options(round, state)]
        else:
            continue
        for option in options:
            more_w = extra_w(round, option)
            enough = left[option.pool] >= option.gpus and more_w <= watts * (1 + ROUNDING)
            if enough or state.job.id in firm:
                left[option.pool] -= option.gpus
                watts -= more_w
                admitted.append(state)
                break
    return admitted


def preempt_in_order(
    round: Round,
    order: Sequence[JobState],
    *,
    clocks: Clocks = full_clock,
    most_free: bool = False,
    teardown_s: float = 0.0,
) -> dict[str, Allocation]:
    """Return the allocations of the jobs that `admit` admits; running jobs it does not stop.

    Running jobs that are admitted stay where they are. Others start in order; one that finds no
    nodes waits without blocking those behind it.
    """
    admitted = admit(round, order, clocks=clocks)
    stay = [s for s in admitted if s.allocation is not None]
    allocations = {s.job.id: s.allocation for s in stay if s.allocation is not None}
    starting = [s for s in admitted if s.allocation is None]
    if starting:
        room = Room(round, stay, clocks=clocks, most_free=most_free)
        allocations |= start_in_order(room, starting, blocking=False, teardown_s=teardown_s)
    return allocations
