"""Objectives: orders and values derived by hand, symmetries, bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from by_fill import allocate_by_fill
from ronda.formulations.objectives.by_name import OBJECTIVES, values
from ronda.formulations.options.build import build
from ronda.instances.errors import InputError
from ronda.instances.job import Estimate
from ronda.instances.profile import Parametric, PowerCurve, Profile
from valued_rounds import COSTS, cluster, job, rigid, run, snapshot, value_of

# -- rank --------------------------------------------------------------------------------------


def test_rank_of_equal_elasticity_is_hesrpt():
    """Three jobs of p = 0.5 on 64 GPUs: value = v_i sqrt(n / 64), v = 1, sqrt 3, sqrt 5.

    q = 2: v_i = sqrt(i^2 - (i-1)^2); the largest job has i = 1.
    """
    table, v = value_of(snapshot(job("a", 10.0), job("b", 30.0), job("c", 20.0)))
    rank = np.array([5.0, 1.0, 3.0])[table.job]
    np.testing.assert_allclose(v, np.sqrt(rank * table.gpus / 64))


def test_rank_of_rigid_jobs_of_one_width():
    """Four jobs of 2 of 8 GPUs: value = i/4 + (1 - 1/4)/2, the shortest with i = 4."""
    states = [rigid(f"{x}", x, gpus=2) for x in (40.0, 10.0, 30.0, 20.0)]
    _, v = value_of(snapshot(*states, on=cluster(8)))
    np.testing.assert_allclose(v, np.array([1, 4, 2, 3]) / 4 + 0.375)


def test_rigid_jobs_rank_by_gpu_seconds():
    """40 GPU-seconds on 4 GPUs are more than 20 s on one, which so has the higher rank.

    What a job of one GPU takes from others is 1 2/3: beside the second of four the third and the
    fourth earn 2/9 and 4/9 less (test_width).
    """
    narrow = [rigid(f"{k}", 100.0, submit_s=k) for k in range(3)]
    wide, long = rigid("wide", 10.0, gpus=4), rigid("long", 20.0)
    _, v = value_of(snapshot(wide, long, *narrow, on=cluster(4)))
    # wide: i = 4, n/N = 1: 4. long: i = 5, n/N = 5/12: 25/12 + (1 - 5/12)/2 = 2.375
    np.testing.assert_allclose(v[:2], [4.0, 2.375])


def test_a_short_job_is_not_passed_over_for_gangs_as_long_ones_could_run_beside_it():
    """16 GPUs; two minutes on 8, or an hour on all of them: 20 hours on the other 8 can wait."""
    gangs = [rigid(f"{k}", 3600.0, gpus=16, submit_s=k) for k in range(3)]
    short, long = rigid("short", 120.0, gpus=8), rigid("long", 72_000.0, gpus=8)
    _, v = value_of(snapshot(short, long, *gangs, on=cluster(16)))
    assert v[0] + v[1] > v[2:].max()


def test_a_rigid_job_that_leaves_gpus_idle_takes_them():
    """Of 4 s on all GPUs and 5 s on three of four the shorter goes first: they cannot share."""
    _, v = value_of(snapshot(rigid("all", 4.0, gpus=4), rigid("some", 5.0, gpus=3), on=cluster(4)))
    np.testing.assert_allclose(v, [2.0, 1.0])


def test_what_others_earn_counts_beside_the_gpus_that_are_left_idle():
    """On 8 GPUs 5 and 2 leave one idle that 8 would use: each takes one more.

    By the GPU-seconds so taken, 60, 300 and 240, they have ranks 3, 1 and 2; on a GPU of their own
    they earn (15/8 + 3/16)/5 = 33/80 and (1/4 + 3/8)/2 = 25/80. So the first takes 2 x 8/33 more.
    """
    states = [rigid("five", 10.0, gpus=5), rigid("two", 100.0, gpus=2), rigid("all", 30.0, gpus=8)]
    _, v = value_of(snapshot(*states, on=cluster(8)))
    share = (6 + 16 / 33) / 8
    np.testing.assert_allclose(v, [3 * share + 0.5 * (1 - share), 3 / 8 + 5 / 16, 2.0])


def test_elastic_jobs_do_not_starve_rigid_ones():
    """Unit mix-ups between elasticities were what starved jobs: the short rigid job runs.

    16 long jobs with p = 0.9 want all 64 GPUs; a rigid job that needs one GPU for a second gets it.
    """
    states = [job(f"{i}", 1e4, "p0.9") for i in range(16)]
    round = snapshot(*states, rigid("short", 1.0))
    table, v = value_of(round)
    assert allocate_by_fill(round, table, v).chosen[16] >= 0


def test_ties_go_to_the_earlier_submission():
    """Of two equal jobs the one that was submitted first has the higher rank."""
    _, v = value_of(
        snapshot(rigid("late", 5.0, submit_s=9.0), rigid("early", 5.0), now_s=10.0, on=cluster(1))
    )
    assert v[1] > v[0]


def test_weights_scale_a_job():
    """A job of weight w counts as w jobs: z = 3 and 1, w = 3 and 1, on one GPU."""
    _, v = value_of(snapshot(rigid("heavy", 6.0, weight=3.0), rigid("light", 3.0), on=cluster(1)))
    # sizes per weight: 2 and 3, so light is the larger: z = 1; heavy: z = 1 + 3
    np.testing.assert_allclose(v, [4.0, 1.0])


def test_partitions_rank_apart():
    """A job's rank counts only the jobs of its own partition."""
    on = cluster(8, ("a", "b"))
    alone = rigid("x", 5.0, partition="a")
    crowd = [rigid(f"{i}", 5.0 + i, partition="b") for i in range(9)]
    _, single = value_of(snapshot(alone, on=on))
    _, among = value_of(snapshot(alone, *crowd, on=on))
    assert among[0] == pytest.approx(single[0])


def test_jobs_without_options_have_no_rank():
    """A job that is too wide for the cluster does not raise the rank of others."""
    states = [rigid("a", 5.0), rigid("b", 7.0)]
    _, alone = value_of(snapshot(*states, on=cluster(4)))
    _, beside = value_of(snapshot(rigid("wide", 6.0, gpus=9), *states, on=cluster(4)))
    assert beside.tolist() == alone.tolist()


def test_unknown_sizes_follow_attained_work():
    """Of two jobs of unknown size the one that has done less is worth more per GPU-second."""
    _, v = value_of(
        snapshot(rigid("old", None, done=900.0), rigid("new", None, done=100.0), on=cluster(1))
    )
    # 900 and 100 are expected to be left, each with spread 1.5
    larger = 1 / (1 + np.exp(-1.702 * np.log(9) / np.hypot(1.5, 1.5)))
    np.testing.assert_allclose(v, [1 + 1 - larger, 1 + larger])


def test_sizes_that_are_not_sure_are_compared_by_probability():
    """10 s and 20 s, with standard deviations as large: spreads of sqrt(ln 2)."""
    states = [rigid("short", 10.0), rigid("long", 20.0)]
    unsure = [
        replace(s, job=replace(s.job, estimate=Estimate(work=work, sd=work)))
        for s, work in zip(states, (10.0, 20.0), strict=True)
    ]
    _, v = value_of(snapshot(*unsure, on=cluster(1)))
    larger = 1 / (1 + np.exp(-1.702 * np.log(2) / np.sqrt(2 * np.log(2))))
    np.testing.assert_allclose(v, [1 + larger, 2 - larger])
    _, v = value_of(snapshot(*states, on=cluster(1)))
    np.testing.assert_allclose(v, [2.0, 1.0])


# -- the other forms ---------------------------------------------------------------------------


def test_density_is_rate_over_remaining_work():
    """100 units of which 60 are done: rate / 40."""
    table, v = value_of(snapshot(job("a", done=60.0)), "density")
    np.testing.assert_allclose(v, table.rate / 40)


def test_density_lets_jobs_age():
    """Both take 100 s alone: 400 s older, at patience 2, is one doubling of the weight."""
    old, new = rigid("old", 100.0), rigid("new", 100.0)
    new = replace(new, job=replace(new.job, submit_s=400.0), since_s=400.0)
    round_ = replace(snapshot(old, new, on=cluster(1)), now_s=400.0)
    assert value_of(round_, "density", patience=2.0)[1].tolist() == pytest.approx([0.02, 0.01])
    assert value_of(round_, "density", patience=4.0)[1].tolist() == pytest.approx([0.01, 0.01])


def test_snapshot_is_the_gain_in_remaining_time():
    """Works 100 and 300: mean wait 200 s; 4 GPUs (rate 2) end the first in 50 s of 100."""
    table, v = value_of(snapshot(job("a"), job("b", 300.0)), "snapshot")
    assert v[(table.job == 0) & (table.gpus == 1)] == pytest.approx(200.0)
    assert v[(table.job == 0) & (table.gpus == 4)] == pytest.approx(250.0)
    assert v[(table.job == 1) & (table.gpus == 4)] == pytest.approx(350.0)


@pytest.mark.parametrize(
    ("power", "four"),
    [(-0.5, 1.1 - 2**-0.5), (1.0, 2.0), (0.0, 1 + np.log(2.0))],
)
def test_goodput_is_a_power_of_the_speed_up(power, four):
    """With p = 0.5 four GPUs give speed-up 2 over one."""
    table, v = value_of(snapshot(job("a")), "weighted-goodput", power=power)
    assert v[table.gpus == 4] == pytest.approx(four)


def test_makespan_prefers_the_critical_job():
    """Equal jobs but for their size: the longer one's progress is worth more."""
    table, v = value_of(snapshot(job("a", 100.0), job("b", 1000.0)), "makespan")
    # C = max(1000/8, (100 + 1000)/64) = 125 s; T = 12.5 and 125 s
    ratio = v[table.job == 1] / v[table.job == 0]
    np.testing.assert_allclose(ratio, (1 + 1) / (1 + 0.1**2))


def test_fairness_prefers_the_job_that_lags():
    """Two equal jobs, one submitted long ago: its rho and value are higher."""
    states = (job("old"), job("new", submit_s=400.0))
    table, v = value_of(snapshot(*states, now_s=400.0), "finish-time-fairness", power=1.0)
    # fair share: 32 GPUs, rate sqrt 32: 17.68 s; rho = (400 + 17.68)/17.68 and 1
    ideal = 100 / 32**0.5
    ratio = v[table.job == 0] / v[table.job == 1]
    np.testing.assert_allclose(ratio, (400 + ideal) / ideal)
    assert v[(table.job == 1) & (table.gpus == 32)] == pytest.approx(1.0)


def test_deadlines_value_options_that_are_on_time():
    """100 units due in 60 s need a rate of 1.67: 4 GPUs and more are on time."""
    states = (job("a", deadline_s=60.0), job("b"), job("late", deadline_s=5.0))
    table, v = value_of(snapshot(*states), "deadlines", best_effort=0.0)
    own = table.job == 0
    assert (v[own] > 0).tolist() == (table.gpus[own] >= 4).tolist()
    # slack: 60 - 100/8 s
    np.testing.assert_allclose(v[own][-1], 600 / (600 + 47.5))
    assert (v[~own] == 0).all()


def test_energy_prefers_the_frugal_clock():
    """With phi = 1 half clock halves the rate and draws 96 of 220 W: less energy, more time."""
    model = Parametric(alpha_c_s=0.1, beta_c_s=0.0)
    curve = PowerCurve(a_w=26, b_w=140, c_w=222, s0=0.88)
    own = Profile(name="own", throughput={"V100": model}, power={"V100": curve})
    state = job("a", profile="own", min_gpus=None, max_gpus=None)
    round = snapshot(state, profiles={"own": own})
    full = 219.913216
    for eta in (0.0, 0.5, 1.0):
        table, v = value_of(round, "energy", eta=eta)
        watts = np.array([96.0, full])
        cost = (eta * watts + (1 - eta) * full) / np.array([5.0, 10.0])
        np.testing.assert_allclose(v, cost.min() / cost)
        assert table.clock.tolist() == [0.5, 1.0]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_form_values_every_row(objective):
    """Finite values, at least 0, for every form in a round with all kinds of jobs."""
    round = snapshot(
        run(job("run", 500.0, done=10.0), 2, 2**0.5),
        job("new", deadline_s=50.0),
        rigid("rigid", 7.0, gpus=3),
        job("unknown", None),
        rigid("too wide", 7.0, gpus=100),
        run(job("fixed", 500.0, preemptible=False), 8, 8**0.5),
        costs=COSTS,
        now_s=5.0,
    )
    table, v = value_of(round, objective)
    assert v.shape == (len(table),)
    assert np.isfinite(v).all()
    assert (v >= 0).all()
    assert v.sum() > 0


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_form_takes_an_empty_round(objective):
    """No jobs, no values, no warnings."""
    with np.errstate(all="raise"):
        _, v = value_of(snapshot(), objective)
    assert v.shape == (0,)


@pytest.mark.parametrize("objective", [o for o in OBJECTIVES if o != "energy"])
def test_a_faster_option_is_never_worth_less(objective):
    """Among a waiting job's options values do not fall with the rate."""
    table, v = value_of(snapshot(job("a"), job("b", 9.0, "p0.9", deadline_s=5.0)), objective)
    for j in range(2):
        own = table.job == j
        assert (np.diff(v[own][np.argsort(table.rate[own])]) >= -1e-12).all()


def test_unknown_objective_lists_the_known():
    """The error names all objectives."""
    with pytest.raises(InputError, match="one of: rank, gittins, density, snapshot"):
        value_of(snapshot(job("a")), "jct")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"speed": 1.0},
            r"rank: found parameter 'speed'; expected one of: patience, alone_s, horizon_s",
        ),
        ({"horizon_s": 0.0}, r"objective rank\(horizon_s\): found 0.0"),
        ({"horizon_s": float("nan")}, r"objective rank\(horizon_s\): found nan"),
    ],
)
def test_bad_parameters_are_input_errors(params, message):
    """Unknown names and values out of range are refused in one line."""
    with pytest.raises(InputError, match=message):
        value_of(snapshot(job("a")), **params)


def test_parameters_have_ranges():
    """Zeus' eta is a share."""
    with pytest.raises(InputError, match=r"energy\(eta\): found 2.*a number from 0 to 1"):
        value_of(snapshot(job("a")), "energy", eta=2.0)


jobs = st.builds(
    lambda work, profile, done, weight, gpus: job(
        f"{work}", work, profile, done=done * work, weight=weight, gpus=gpus
    ),
    st.floats(1.0, 1e5),
    st.sampled_from(["p0.3", "p0.5", "p0.9", "rigid"]),
    st.floats(0.0, 0.9),
    st.sampled_from([1.0, 2.0]),
    st.integers(1, 8),
)


@settings(deadline=None)
@given(
    states=st.lists(jobs, min_size=1, max_size=6, unique_by=lambda s: s.job.id),
    objective=st.sampled_from(sorted(OBJECTIVES)),
    order=st.randoms(),
)
def test_permuting_jobs_changes_nothing(states, objective, order):
    """A job's values do not depend on the order of the jobs (sizes differ)."""

    def by_id(states):
        table, v = value_of(snapshot(*states), objective)
        return {s.job.id: v[table.job == j] for j, s in enumerate(states)}

    first = by_id(states)
    shuffled = list(states)
    order.shuffle(shuffled)
    for name, v in by_id(shuffled).items():
        np.testing.assert_allclose(v, first[name], rtol=1e-9)


@settings(deadline=None)
@given(
    states=st.lists(jobs, min_size=1, max_size=4),
    objective=st.sampled_from(sorted(OBJECTIVES)),
)
def test_values_do_not_depend_on_pruning(states, objective):
    """A row that pruning keeps is worth the same in the full table."""
    round = snapshot(*states)
    pruned, full = (build(round, prune=p, mind_power=True) for p in (True, False))
    v, w = values(round, pruned, objective), values(round, full, objective)
    names = ("job", "gpus", "clock")
    rows = zip(*(getattr(full, n).tolist() for n in names), strict=True)
    known = dict(zip(rows, w.tolist(), strict=True))
    kept = zip(*(getattr(pruned, n).tolist() for n in names), strict=True)
    np.testing.assert_allclose(v, [known[row] for row in kept])
