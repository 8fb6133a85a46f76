"""Objectives: heSRPT's optimality, orders derived by hand, switching costs, bad input."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.formulations.greedy_fill import fill
from ronda.formulations.hesrpt import expected_rank, prices
from ronda.formulations.objectives import OBJECTIVES, minds_power, values
from ronda.formulations.options import OptionTable, build
from ronda.formulations.outlook import outlook
from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.errors import InputError
from ronda.instances.instance import Round
from ronda.instances.job import Allocation, Costs, Estimate, Job, JobState, Option
from ronda.instances.profile import Parametric, PowerCurve, Profile, Tabular, rigid_profile


def cluster(gpus=64, partitions=("default",)):
    """Return one big node in each partition."""
    return Cluster(
        gpu_types=(GpuType(name="V100", memory_gib=16, idle_w=30.0, clocks=(0.5, 1.0)),),
        node_groups=tuple(
            NodeGroup(name=p, count=1, gpus_per_node=gpus, gpu_type="V100", partition=p)
            for p in partitions
        ),
    )


def power_law(p, gpus=(1, 2, 4, 8, 16, 32, 64)):
    """Return a profile whose rate with n GPUs is n^p: a batch of 1 in n^-p seconds."""
    model = Tabular(
        gpus=gpus,
        nodes=(1,) * len(gpus),
        local_batch=tuple(1 / n for n in gpus),
        step_s=tuple(n**-p for n in gpus),
        sync_s=(0.0,) * len(gpus),
    )
    return Profile(name=f"p{p}", throughput={"V100": model})


PROFILES = {f"p{p}": power_law(p) for p in (0.3, 0.5, 0.9)} | {"rigid": rigid_profile("V100")}


def job(name, work=100.0, profile="p0.5", done=0.0, **fields):
    """Return a waiting job that an elastic policy may give 1 to 64 GPUs."""
    estimate = None if work is None else Estimate(work=work)
    given = {"submit_s": 0.0, "min_gpus": 1, "max_gpus": 64, "estimate": estimate} | fields
    return JobState(job=Job(id=name, profile=profile, **given), since_s=0.0, done=done)


def rigid(name, seconds, gpus=1, **fields):
    """Return a waiting rigid job."""
    return job(name, seconds, "rigid", gpus=gpus, min_gpus=None, max_gpus=None, **fields)


def run(state, gpus, rate, since_s=0.0, batch=1.0):
    """Return the job running on some GPUs of node 0."""
    held = Option(pool=0, gpus=gpus, span="node", batch=batch, rate=rate)
    allocation = Allocation(option=held, placement=((0, gpus),))
    return msgspec.structs.replace(state, allocation=allocation, started=True, since_s=since_s)


def snapshot(*states, on=None, **fields):
    """Return a round of these jobs."""
    fields = {"cluster": on or cluster(), "profiles": PROFILES} | fields
    return Round(
        running=tuple(s for s in states if s.allocation is not None),
        waiting=tuple(s for s in states if s.allocation is None),
        **fields,
    )


def value_of(round, objective="rank", **params):
    """Return the table and its values."""
    table = build(round, mind_power=minds_power(objective))
    return table, values(round, table, objective, **params)


# -- heSRPT ------------------------------------------------------------------------------------


def flow_time(sizes, p, shares):
    """Return the total flow time of jobs with speed-up n^p when `shares` splits one unit."""
    left, total = np.sort(sizes)[::-1].astype(float), 0.0
    while len(left):
        speed = shares(left) ** p
        step = (left / speed).min()
        total += step * len(left)
        left = left - speed * step
        left = np.sort(left[left > 1e-12 * sizes.max()])[::-1]
    return total


def rank_shares(p):
    """Return the maximiser of sum v_i share_i^p, which is share_i ~ v_i^(1/(1-p))."""

    def shares(left):
        m = len(left)
        v = prices(np.arange(1.0, m + 1), np.ones(m), np.full(m, p)) ** (1 / (1 - p))
        return v / v.sum()

    return shares


SIZES = np.random.default_rng(5).lognormal(0.0, 1.5, 50)


@pytest.mark.parametrize("p", [0.3, 0.5, 0.7, 0.9])
def test_prices_are_the_gradient_of_the_least_flow_time(p):
    """Serving by these prices costs sum_i v_i x_i, the closed form of heSRPT's total flow time."""
    ranked = np.sort(SIZES)[::-1]
    v = prices(np.arange(1.0, 51), np.ones(50), np.full(50, p))
    assert flow_time(SIZES, p, rank_shares(p)) == pytest.approx(float(v @ ranked), rel=1e-9)


@pytest.mark.parametrize("p", [0.3, 0.5, 0.7, 0.9])
def test_rank_beats_the_other_forms_when_all_jobs_are_present(p):
    """Flow time: heSRPT beats equal shares, density and snapshot; snapshot is worst from p = 0.5.

    Density maximises sum share^p / x: share ~ x^(-1/(1-p)). Snapshot minimises sum x share^-p:
    share ~ x^(1/(1+p)).
    """

    def by(exponent):
        return lambda left: left**exponent / (left**exponent).sum()

    best = flow_time(SIZES, p, rank_shares(p))
    equal = flow_time(SIZES, p, by(0.0)) / best
    density = flow_time(SIZES, p, by(-1 / (1 - p))) / best
    snapshot = flow_time(SIZES, p, by(1 / (1 + p))) / best
    assert min(equal, density, snapshot) > 1
    if p >= 0.5:
        assert snapshot > max(equal, density)


def test_no_other_shares_do_better():
    """Random perturbations of the optimal shares never lower the flow time (p = 0.5)."""
    rng, best = np.random.default_rng(1), flow_time(SIZES, 0.5, rank_shares(0.5))
    for _ in range(20):
        noise = rng.lognormal(0, 0.3, 50)

        def shares(left, noise=noise):
            theta = rank_shares(0.5)(left) * noise[: len(left)]
            return theta / theta.sum()

        assert flow_time(SIZES, 0.5, shares) >= best


def simulate(objective, p, gpus=256, jobs=24):
    """Return the flow time when `values` and `fill` decide a cluster of n^p jobs at every end."""
    counts = np.unique(np.round(np.geomspace(1, gpus, 60))).astype(np.int64)
    on = cluster(gpus)
    left, total, now = np.sort(SIZES)[::-1][:jobs] * 1000, 0.0, 0.0
    while len(left):
        states = tuple(job(f"{i}", float(x)) for i, x in enumerate(left))
        round = snapshot(*states, on=on)
        table = law_table(round, states, counts, p)
        rows = fill(round, table, values(round, table, objective))
        rate = np.where(rows >= 0, table.rate[rows], 0.0)
        step = (left / np.maximum(rate, 1e-12)).min()
        now += step
        total += step * len(left)
        left = left - rate * step
        left = left[left > 1e-6]
    return total


def law_table(round, states, counts, p):
    """Return the options of jobs that may take any of the counts, at rate count^p."""
    jobs, k = len(states), len(states) * len(counts)
    return OptionTable(
        jobs=states,
        pools=round.cluster.topology.pools,
        start=np.arange(jobs + 1) * len(counts),
        job=np.repeat(np.arange(jobs), len(counts)),
        pool=np.zeros(k, dtype=np.int64),
        gpus=np.tile(counts, jobs),
        span=np.zeros(k, dtype=np.int64),
        width=np.ones(k, dtype=np.int64),
        clock=np.ones(k),
        batch=np.ones(k),
        rate=np.tile(counts.astype(float) ** p, jobs),
        power_w=np.zeros(k),
        current=np.zeros(k, dtype=bool),
        must_run=np.zeros(jobs, dtype=bool),
    )


@pytest.mark.parametrize("p", [0.5, 0.9])
def test_values_and_fill_come_close_to_the_optimum(p):
    """With whole GPUs, `rank` stays within 3 % of heSRPT; `density` and `snapshot` are worse."""
    ranked = np.sort(SIZES)[::-1][:24] * 1000
    v = prices(np.arange(1.0, 25), np.ones(24), np.full(24, p))
    optimum = float(v @ ranked) / 256**p
    rank = simulate("rank", p) / optimum
    assert 1 - 1e-9 <= rank < 1.03
    assert simulate("density", p) / optimum > rank
    assert simulate("snapshot", p) / optimum > 1.2


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
    """8 s on 4 GPUs are 32 GPU-seconds, more than 20 s on one: the latter has the higher rank."""
    _, v = value_of(snapshot(rigid("wide", 8.0, gpus=4), rigid("long", 20.0), on=cluster(4)))
    # wide: i = 1, n/N = 1: 1. long: i = 2, n/N = 1/4: 2/4 + (1 - 1/4)/2 = 0.875
    np.testing.assert_allclose(v, [1.0, 0.875])


def test_elastic_jobs_do_not_starve_rigid_ones():
    """Unit mix-ups between elasticities were what starved jobs: the short rigid job runs.

    16 long jobs with p = 0.9 want all 64 GPUs; a rigid job that needs one GPU for a second gets it.
    """
    states = [job(f"{i}", 1e4, "p0.9") for i in range(16)]
    round = snapshot(*states, rigid("short", 1.0))
    table, v = value_of(round)
    assert fill(round, table, v)[16] >= 0


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


def test_unknown_sizes_follow_attained_work():
    """Of two jobs of unknown size the one that has done less is worth more per GPU-second."""
    _, v = value_of(
        snapshot(rigid("old", None, done=900.0), rigid("new", None, done=100.0), on=cluster(1))
    )
    # r = 900/100: the older is the larger with probability 9 (8 - ln 9)/64
    larger = 9 * (8 - np.log(9)) / 64
    np.testing.assert_allclose(v, [1 + 1 - larger, 1 + larger])


def test_expected_rank_of_equal_guesses_is_the_middle():
    """Five jobs of which nothing is known: each expects rank 3."""
    ones = np.ones(5)
    rank = expected_rank(ones, ones, np.arange(5.0), np.ones(5, dtype=bool))
    np.testing.assert_allclose(rank, 3.0, rtol=1e-6)


def test_expected_rank_against_sampling():
    """Drawn from P(R > x) = s / (s + x), ranks agree with the closed form on average."""
    rng = np.random.default_rng(3)
    size, weight = np.array([1.0, 5.0, 20.0, 3.0]), np.array([1.0, 2.0, 1.0, 0.5])
    guessed = np.array([True, True, False, True])
    u = rng.random((200_000, 4))
    drawn = np.where(guessed, size * (1 - u) / u, size)
    larger = drawn[:, None, :] >= drawn[:, :, None]  # [sample, j, k]: k is not smaller than j
    sampled = (larger @ weight).mean(axis=0)
    found = expected_rank(size, weight, np.zeros(4), guessed)
    np.testing.assert_allclose(found, sampled, atol=0.01)


@given(
    sizes=st.lists(st.floats(0.1, 1e6), min_size=1, max_size=8),
    unknown=st.lists(st.booleans(), min_size=8, max_size=8),
)
def test_expected_ranks_sum_up(sizes, unknown):
    """Whatever is known: ranks lie in [1, m] and sum to m (m + 1) / 2, up to ties of guesses."""
    m, size = len(sizes), np.array(sizes)
    guessed = np.array(unknown[:m])
    rank = expected_rank(size, np.ones(m), np.zeros(m), guessed)
    assert (rank >= 1 - 1e-3).all()
    assert (rank <= m + 1e-3).all()
    assert rank.sum() == pytest.approx(m * (m + 1) / 2, rel=1e-3)


# -- switching ---------------------------------------------------------------------------------

COSTS = Costs(start_s=20.0, restart_s=60.0)


def test_a_switch_costs_its_pause_over_the_horizon():
    """Long job, horizon 600 s, restart 60 s: other options lose a tenth, the current none."""
    round = snapshot(run(job("a", 1e6), 4, 2.0), costs=COSTS)
    table, v = value_of(round, "density")
    lost = v / (table.rate / 1e6)
    np.testing.assert_allclose(lost[table.current], 1.0)
    np.testing.assert_allclose(lost[~table.current], 0.9)


def test_the_horizon_ends_with_the_job():
    """80 s of work left at rate 2 on 4 GPUs: on 16, at rate 4, 20 s + 60 s pause, 1 unit/s."""
    round = snapshot(run(job("a", 80.0), 4, 2.0), costs=COSTS)
    table, v = value_of(round, "density", horizon_s=1e9)
    rate = dict(zip(table.gpus.tolist(), (v * 80).tolist(), strict=True))
    assert rate[4] == pytest.approx(2.0)
    assert rate[16] == pytest.approx(80 / (20 + 60))


def test_horizon_parameter():
    """With a horizon of 120 s a restart of 60 s costs half."""
    round = snapshot(run(job("a", 1e6), 4, 2.0), costs=COSTS)
    table, v = value_of(round, "density", horizon_s=120.0)
    np.testing.assert_allclose(v[~table.current] / (table.rate[~table.current] / 1e6), 0.5)


def test_starting_costs_a_waiting_job_nothing():
    """It must start some time; even a job shorter than its start delay keeps its full value."""
    free, costly = (
        value_of(snapshot(job("a", 5.0), costs=c))[1] for c in (Costs(), Costs(start_s=300.0))
    )
    np.testing.assert_allclose(costly, free)
    assert (free > 0).all()


def test_only_what_a_restart_costs_beyond_the_cheapest_counts():
    """A stopped job restarts in 10 s on one GPU and 70 s on more: wide options lose 60 s."""
    costs = Costs(restart_by_gpus=((1, 10.0), (64, 70.0)))
    stopped = msgspec.structs.replace(job("a", 1e6), started=True)
    table, v = value_of(snapshot(stopped, costs=costs), "density")
    lost = v / (table.rate / 1e6)
    np.testing.assert_allclose(lost, np.where(table.gpus == 1, 1.0, 0.9))


def test_a_pause_that_is_under_way_is_not_lost_again():
    """A job that is still starting (30 s left) loses 60 - 30 s by another restart."""
    starting = run(job("a", 1e6), 4, 2.0, since_s=30.0)
    table, v = value_of(snapshot(starting, costs=COSTS), "density")
    lost = v / (table.rate / 1e6)
    np.testing.assert_allclose(lost, np.where(table.current, 1.0, 0.95))


def test_outlook_counts_the_pause_until_completion():
    """left_s: pause and remaining work; nothing for the running option."""
    round = snapshot(run(job("a", 80.0), 4, 2.0), job("b", 80.0), costs=COSTS)
    table = build(round)
    left = outlook(round, table, 600.0).left_s
    expected = 80 / table.rate + np.where(table.job == 1, 20.0, np.where(table.current, 0.0, 60.0))
    np.testing.assert_allclose(left, expected)


# -- the other forms ---------------------------------------------------------------------------


def test_density_is_rate_over_remaining_work():
    """100 units of which 60 are done: rate / 40."""
    table, v = value_of(snapshot(job("a", done=60.0)), "density")
    np.testing.assert_allclose(v, table.rate / 40)


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
    with pytest.raises(InputError, match="one of: rank, density, snapshot"):
        value_of(snapshot(job("a")), "jct")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"speed": 1.0},
            r"objective rank: found parameter 'speed'; expected one of: patience, horizon_s",
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
