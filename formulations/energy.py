"""The energy ahead: what a budget bears over time, and what each option takes of its window.

By t seconds from now the cluster may use ``L(t) = B + (E - B) t / W`` joules within the window of
W seconds and ``B + sustained t`` after it, with B what is banked (`ronda.instances.round`). A job
that adds w watts to its idle GPUs for d more seconds uses ``w min(t, d)`` of them by t; its pauses
use none. A plan must keep ``base t + Σ_k w_k min(t, d_k) <= L(t)`` at every t of the window: that
is what `left_w` looks at. For models in which options add up, with ``M(t) = L(t) - (base + h) t``
for what draws h watts on for the whole window, ::

    Σ_k w_k share_k <= E / W - base,   share_k = d/W max(1, M(W) / M(d)),   d = min(W, d_k)

is enough, since ``min(t, d) / M(t)`` is greatest at d or W. It is exact for jobs of one length
beside what draws h, and for all jobs where all of E may be used at once: an option is then charged
``w min(W, d)`` joules. As h counts what runs now for longer than the window, and its nodes: should
a plan stop that, `left_w` shows whether the jobs in its place draw too much too soon. Ours.
"""

import numpy as np

from ronda.formulations.models.power import extra_w
from ronda.formulations.per_record import per_record
from ronda.formulations.watts import base_w, node_w
from ronda.instances.arrays import Floats
from ronda.instances.job import JobState, Option
from ronda.instances.round import Round

ROUNDING = 1e-12
"""Rounding of shares."""


def seconds_left(round: Round, state: JobState, option: Option) -> float:
    """Return for how long a job will draw an option's power; infinite if its size is not known."""
    work = state.remaining_at(round.now_s)
    return np.inf if work is None else work / option.rate + option.teardown_s


def may_use_j(round: Round, seconds: Floats) -> Floats:
    """Return the joules L(t) that the cluster may use within each of some times from now."""
    assert round.energy_j is not None
    energy_j, window_s = round.energy_j, round.window_s
    mean_w = energy_j / window_s
    later_w = mean_w if round.sustained_w is None else min(round.sustained_w, mean_w)
    banked_j = energy_j if round.banked_j is None else round.banked_j
    within = banked_j + (energy_j - banked_j) * (seconds / window_s)
    later = later_w * seconds + (round.banked_j or 0.0)
    return np.where(seconds <= window_s, within, later)


def share(round: Round, seconds: Floats) -> Floats:
    """Return the share of its watts that each job is charged throughout the window (see above).

    `seconds` is for how long it draws them. The round has an energy budget.
    """
    assert round.energy_j is not None
    window_s, d = round.window_s, np.minimum(seconds, round.window_s)
    base = base_w(round) + _lasting_w(round)
    whole, left = round.energy_j - base * window_s, may_use_j(round, d) - base * d
    scarcer = np.divide(whole, left, out=np.ones_like(d), where=left > 0)
    shares = d / window_s * np.maximum(1.0, scarcer)
    return np.where(shares < 1.0 - ROUNDING, shares, 1.0)


@per_record(maxsize=2)
def _lasting_w(round: Round) -> float:
    """Return the watts that what runs now draws beyond the base for the whole window."""
    topology = round.cluster.topology
    found, used = 0.0, set[int]()
    for state in round.running:
        held = state.allocation
        if held is None:
            continue
        used.update(node for node, _ in held.placement)
        if seconds_left(round, state, held.option) >= round.window_s:
            found += max(0.0, extra_w(round, held.option))
    rests = topology.sleep_w < topology.awake_w
    rests[list(used)] = False
    asleep = np.flatnonzero(rests)
    return found + max(0.0, float(node_w(topology, asleep).sum()) - base_w(round))


def left_w(
    round: Round, base: float, watts: Floats, seconds: Floats, *, until_end: bool = False
) -> float:
    """Return the watts that may come on top for as long as is looked ahead; below 0: too much.

    Parameters
    ----------
    base
        Watts of the cluster without jobs.
    watts, seconds
        (n,) what jobs add to their idle GPUs, and for how long; infinite counts as the window.
    until_end
        Whether to look ahead to the end of the last job, and not to that of the window only.
    """
    left = np.inf
    if round.power_cap_w is not None:
        left = round.power_cap_w - base - float(watts.sum())
    if round.energy_j is None:
        return float(left)
    window_s = round.window_s
    d = np.where(np.isfinite(seconds), seconds, window_s)
    if not until_end:
        d = np.minimum(d, window_s)
    order = np.argsort(d, kind="stable")
    times = np.append(d[order], window_s)
    ended_j = np.append(0.0, np.cumsum((watts * d)[order]))
    going_w = float(watts.sum()) - np.append(0.0, np.cumsum(watts[order]))
    before = np.searchsorted(times[:-1], times, side="left")  # the jobs that end before each time
    used = base * times + ended_j[before] + going_w[before] * times
    spare = (may_use_j(round, times) - used)[times > 0] / times[times > 0]
    return float(min(left, spare.min()))
