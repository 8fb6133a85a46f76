"""The marginal greedy: steps, priorities, and the same answer as a priority queue gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.formulations.objectives.outlook import outlook
from ronda.formulations.objectives.switching_cost import horizon_s
from ronda.formulations.options.build import build
from ronda.instances import generate
from ronda.instances.clock import OutOfTimeError, ending
from ronda.solvers.greedy.counted import Counted, RowUses, uses
from ronda.systems.powerflow.marginal import admitted, climbed, priced, relative, steps_of


def snapshot_of(round_):
    """Return a round's options without pruning, seconds and joules until completion, and steps."""
    table = build(round_, prune=False, mind_power=True)
    left_s = outlook(round_, table, horizon_s(round_)).left_s
    energy_j = table.power_w * left_s
    return table, left_s, energy_j, steps_of(table, left_s, energy_j)


def some(gpus, watts=np.inf, node_w=None):
    """Return one pool of some GPUs, and watts at once."""
    return Counted([gpus], [watts, np.inf], [np.zeros(gpus + 1) if node_w is None else node_w])


def using(*rows):
    """Return uses of the pool: pairs of GPUs and watts."""
    gpus, watts = np.array(rows, dtype=float).T
    return RowUses(
        np.zeros(len(rows), dtype=int), gpus.astype(int), np.stack([watts, watts], axis=1)
    )


def taken(left, used, rows):
    """Return what is left beside some rows, and whether there was room for all."""
    left = left.rest()
    rows = [(int(used.pool[k]), int(used.gpus[k]), used.watts[k].tolist()) for k in rows]
    enough = [left.take(*row, anyhow=True) for row in rows]
    return left, all(enough)


def test_priorities_by_hand():
    """One job, three rows: 100 s and 10 kJ; 50 s and 12 kJ; 40 s and 9 kJ.

    Relative, first step: (50/100) / (2/10) = 2.5. The second saves 10 s and energy: infinite. Back
    from 40 s to 100 s nothing is saved: never.
    """
    left_s, energy_j = np.array([100.0, 50.0, 40.0]), np.array([10e3, 12e3, 9e3])
    up = np.array([[1, 2, 0], [-1, -1, -1]])
    assert relative(up, left_s, energy_j)[0].tolist() == [2.5, np.inf, -np.inf]
    assert relative(up, left_s, energy_j)[1].tolist() == [-np.inf] * 3
    # At a budget of 20 kJ and 8 GPUs, from one GPU to two: 50 s / (2/20 + 1/8) = 222.2 s.
    cost = energy_j / 20e3 + np.array([1.0, 2.0, 4.0]) / 8
    assert priced(up, -left_s, cost)[0, 0] == pytest.approx(50 / 0.225)


def test_two_jobs_by_hand():
    """Four GPUs, 13 watts; one step a job: A saves most but B's is the better bargain.

    Rows 0, 1 of job A: 1 GPU 4 W, 2 GPUs 10 W; rows 2, 3 of job B: 1 GPU 3 W, 2 GPUs 5 W. Both
    start with 7 W; A's step takes 6 W, B's 2 W. Worth 3 and 4: B first, then A no longer fits
    (5 + 10 > 13). With 15 W both do.
    """
    up = np.array([[1, -1, 3, -1], [-1] * 4])
    worth = np.array([[3.0, 0.0, 4.0, 0.0], [0.0] * 4])
    used = using((1, 4), (2, 10), (1, 3), (2, 5))
    for watts, expected in ((13.0, [0, 3]), (15.0, [1, 3]), (7.0, [0, 2])):
        left, enough = taken(some(4, watts), used, [0, 2])
        assert enough
        assert climbed(left, used, np.array([0, 2]), up, worth).tolist() == expected


def test_a_step_that_does_not_fit_makes_room_for_the_other():
    """Two GPUs are not there, but the next clock is."""
    up = np.array([[1, -1, -1], [2, -1, -1]])
    worth = np.array([[9.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    used = using((1, 0), (2, 0), (1, 0))
    assert climbed(taken(some(1), used, [0])[0], used, np.array([0]), up, worth).tolist() == [2]


def test_a_step_that_leaves_watts_lets_others_try_again():
    """A's second GPU needs 6 W of the 2 W left, so B steps first, which leaves 5 W more.

    A, rows 0 to 2: 4 W, 10 W with two GPUs, 20 W at a higher clock; B, rows 3 and 4: 6 W and 1 W.
    """
    up = np.array([[1, -1, -1, 4, -1], [2, -1, -1, -1, -1]])
    worth = np.array([[9.0, 0.0, 0.0, 1.0, 0.0], [0.5, 0.0, 0.0, 0.0, 0.0]])
    used = using((1, 4), (2, 10), (1, 20), (1, 6), (1, 1))
    left, _ = taken(some(4, 12.0), used, [0, 3])
    assert climbed(left, used, np.array([0, 3]), up, worth).tolist() == [1, 4]


def test_nodes_that_wake_take_watts():
    """Nodes of two GPUs that draw 5 W awake: three jobs of one GPU and 1 W need 3 + 10 W."""
    node_w = np.array([0.0, 5.0, 5.0, 10.0, 10.0])
    for watts, count in ((6.9, 1), (7.0, 2), (12.9, 2), (13.0, 3)):
        left = some(4, watts, node_w)
        assert len(admitted(left, using((1, 1), (1, 1), (1, 1)), np.arange(3))) == count


def test_who_does_not_fit_is_passed_over():
    """Of 4, 3 and 1 GPUs on 5, the first and the last are admitted."""
    assert admitted(some(5), using((4, 0), (3, 0), (1, 0)), np.arange(3)).tolist() == [0, 2]


def test_long_queues_look_at_the_clock():
    """Neither who is admitted nor who may climb is asked once the time is over."""
    used = using((1, 0), (1, 0), (1, 0))
    with ending(0.0), pytest.raises(OutOfTimeError):
        admitted(some(1), used, np.arange(3))
    with ending(0.0), pytest.raises(OutOfTimeError):
        climbed(some(1), used, np.arange(3), np.full((2, 3), -1), np.zeros((2, 3)))


def test_steps_double_the_gpus_or_raise_the_clock():
    """Every step of a generated round does one of both, to the next level, in the same pool."""
    table, _, energy_j, steps = snapshot_of(generate.round(40, 128, "balanced", 3))
    assert (steps.up >= 0).any(axis=1).all()
    for kind, at in np.argwhere(steps.up >= 0).tolist():
        to = steps.up[kind, at]
        assert table.job[to] == table.job[at]
        assert table.pool[to] == table.pool[at]
        if kind == 0:
            assert table.gpus[to] == 2 * table.gpus[at]
            assert table.clock[to] == table.clock[at]
        else:
            assert table.gpus[to] == table.gpus[at]
            assert table.clock[to] > table.clock[at]
    for j, start in enumerate(steps.start.tolist()):
        own = slice(table.start[j], table.start[j + 1])
        fewest = table.gpus[own] == table.gpus[own].min()
        assert table.gpus[start] == table.gpus[own].min()
        assert energy_j[start] == energy_j[own][fewest].min()
        assert table.power_w[steps.frugal[j]] == table.power_w[own][fewest].min()


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), severity=st.sampled_from(["balanced", "tight"]))
def test_the_climb_keeps_the_limits_and_leaves_no_step_that_fits(seed, severity):
    """What jobs use together is within the limits, and every further step would break one."""
    round_ = generate.round(12, 40, severity, seed)
    table, left_s, energy_j, steps = snapshot_of(round_)
    whole, used = Counted.of(round_), uses(round_, table)
    left = whole.rest()
    fit = admitted(left, used, steps.start)
    start = np.full(len(table.jobs), -1)
    start[table.job[fit]] = fit
    for worth in (
        relative(steps.up, left_s, energy_j),
        priced(steps.up, -left_s, table.gpus / 40 + table.power_w / 1e4),
    ):
        chosen = climbed(left.rest(), used, start, steps.up, worth)
        assert taken(whole, used, chosen[chosen >= 0])[1]
        for job in np.flatnonzero(chosen >= 0):  # nobody could climb on
            for up, gain in zip(steps.up[:, chosen[job]], worth[:, chosen[job]], strict=True):
                more = np.where(np.arange(len(chosen)) == job, up, chosen)
                assert up < 0 or gain == -np.inf or not taken(whole, used, more[more >= 0])[1]
