"""Option tables: which rows a round has, what they promise, and what pruning drops."""

from operator import ge

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model_rate import work_rate
from ronda.formulations.options.application import pool_shapes
from ronda.formulations.options.build import build
from ronda.formulations.options.table import CLUSTER, NODE, RACK, option, rivals
from ronda.instances import generate
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.job import Allocation, Job, JobState, Option
from ronda.instances.models.configuration import Configuration
from ronda.instances.models.efficiency import efficiency, scale_at
from ronda.instances.models.power import job_power_w
from ronda.instances.profile import NoiseScale, Parametric, PowerCurve, Profile, Rigid, Tabular
from ronda.instances.round import Round

V100 = GpuType(name="V100", memory_gib=16, idle_w=30.0, clocks=(0.5, 0.75, 1.0))
T4 = GpuType(name="T4", memory_gib=16)
FAST = Parametric(alpha_c_s=0.01, beta_c_s=0.01, alpha_r_s=0.01, alpha_n_s=0.05, beta_n_s=0.001)
SLOW = Parametric(alpha_c_s=0.02, beta_c_s=0.04, alpha_r_s=0.01, alpha_n_s=0.05)
CURVE = PowerCurve(a_w=26, b_w=140, c_w=222, s0=0.88)
PROFILES = {
    "elastic": Profile(
        name="elastic",
        throughput={"V100": FAST, "T4": SLOW},
        power={"V100": CURVE},
        base_batch=32.0,
        batches=(32.0, 64.0, 128.0, 256.0),
    ),
    "rigid": Profile(name="rigid", throughput={"V100": Rigid()}, power={"V100": CURVE}),
}
NOISE = NoiseScale(batches=(32.0, 256.0), scale=(100.0, 300.0))


def cluster(*groups, types=(V100, T4), racks=()):
    """Return a cluster of (nodes, GPUs per node, type, partition) groups."""
    made = tuple(
        NodeGroup(name=f"g{i}", count=n, gpus_per_node=g, gpu_type=t, partition=p)
        for i, (n, g, t, p) in enumerate(groups)
    )
    return Cluster(gpu_types=types, node_groups=made, racks=racks)


V100S = cluster((4, 4, "V100", "default"))


def in_pieces(*nodes):
    """Return a profile that was measured with 8 GPUs on some numbers of nodes, a step a second."""
    many = len(nodes)
    model = Tabular(
        gpus=(8,) * many,
        nodes=nodes,
        local_batch=(4.0,) * many,
        step_s=(1.0,) * many,
        sync_s=(0.0,) * many,
    )
    return Profile(name="p", throughput={"V100": model}, base_batch=32.0)


@pytest.mark.parametrize(
    ("profile", "out", "rates"),
    [
        (in_pieces(2), (), []),  # 8 GPUs are on three nodes: 4 + 2 + 2
        (in_pieces(2, 3), (), [32.0]),  # the rate is promised on two
        (in_pieces(3), (), []),  # there is none to promise
        (in_pieces(2, 3), ((0, 1),), []),  # 7 GPUs are left
    ],
)
def test_options_that_unequal_nodes_do_not_hold_are_left_out(profile, out, rates):
    """A pool of nodes of 4, 2 and 2 GPUs; where nothing was measured on so many nodes: none."""
    pool = msgspec.structs.replace(
        cluster((1, 4, "V100", "default"), (2, 2, "V100", "default")), out=out
    )
    waits = JobState(job=Job(id="a", submit_s=0, profile="p", gpus=8), since_s=0)
    round_ = Round(cluster=pool, profiles={"p": profile}, waiting=(waits,))
    for elastic in (True, False):
        assert build(round_, elastic=elastic).rate.tolist() == rates


def test_an_option_of_one_node_needs_a_node():
    """Of two nodes of 4 GPUs one has lost one GPU, the other two: 4 GPUs are on no node."""
    pool = cluster((2, 4, "V100", "default"))
    waits = JobState(job=Job(id="a", submit_s=0, profile="rigid", gpus=4), since_s=0)
    for out, many in (((), 1), (((0, 1),), 1), (((0, 1), (1, 2)), 0)):
        cut = msgspec.structs.replace(pool, out=out)
        round_ = Round(cluster=cut, profiles=PROFILES, waiting=(waits,))
        assert len(build(round_)) == many


def waiting(noise=None, **fields):
    """Return a job that waits."""
    job = {"id": "j", "submit_s": 0.0, "profile": "elastic", "gpus": 1} | fields
    return JobState(job=Job(**job), since_s=0.0, noise=noise)


def running(state, option, placement):
    """Return the job running on an option."""
    held = Allocation(option=option, placement=placement)
    return msgspec.structs.replace(state, allocation=held, started=True)


def snapshot(*states, on=V100S, **fields):
    """Return a round of these jobs."""
    return Round(
        cluster=on,
        profiles=PROFILES,
        running=tuple(s for s in states if s.allocation is not None),
        waiting=tuple(s for s in states if s.allocation is None),
        **fields,
    )


def counts(table, **where):
    """Return the GPU counts of the rows that match."""
    keep = np.ones(len(table), dtype=bool)
    for name, value in where.items():
        keep &= getattr(table, name) == value
    return table.gpus[keep].tolist()


def test_elastic_counts_are_powers_of_two_then_whole_nodes():
    """In nodes of 4: 1, 2, 4, then 8 and 16 of 16 GPUs; 3 and 6 only if asked for."""
    state = waiting(gpus=6, min_gpus=1, max_gpus=64, noise=NOISE)
    table = build(snapshot(state), prune=False)
    assert counts(table, clock=1.0) == [1, 2, 4, 6, 8, 16]
    assert [option(table, k).span for k in range(0, len(table), 3)] == [
        "node",
        "node",
        "node",
        "cluster",
        "cluster",
        "cluster",
    ]


def test_limits_of_the_job_hold():
    """Only counts within [min_gpus, max_gpus], and what was asked for."""
    state = waiting(gpus=3, min_gpus=2, max_gpus=4)
    assert counts(build(snapshot(state), prune=False), clock=1.0) == [2, 3, 4]


def test_sizes_that_a_job_names_are_offered():
    """In nodes of 4 a job of 5 to 11 that asks for 7 may have just these, and 8."""
    state = waiting(gpus=7, min_gpus=5, max_gpus=11)
    assert counts(build(snapshot(state), prune=False), clock=1.0) == [5, 7, 8, 11]


@pytest.mark.parametrize(
    ("nodes", "size", "ladder"),
    [
        # Halves of 6: 3, then 1 and 2; of 10: 5, then 2 and 3; of 7: 3 and 4, then 1 and 2.
        (5, 6, [1, 2, 3, 4, 6, 12, 24, 30]),
        (1, 10, [1, 2, 3, 4, 5, 8, 10]),
        (1, 7, [1, 2, 3, 4, 7]),
        (3, 4, [1, 2, 4, 8, 12]),
    ],
)
def test_ladder_of_other_node_sizes(nodes, size, ladder):
    """Powers of two and halves of a node, doubled nodes, and the pool as it is below the limit."""
    on = cluster((nodes, size, "V100", "default"))
    table = build(snapshot(waiting(min_gpus=1, max_gpus=64), on=on), prune=False)
    assert counts(table, clock=1.0) == ladder


@pytest.mark.parametrize(
    ("measured", "sizes"),
    [
        (((3, 1),), [3]),  # the only one, and odd
        (((1, 1), (2, 1), (3, 1), (4, 1)), [1, 2, 4]),  # all of the ladder: 3 adds nothing
        (((1, 1), (3, 1), (6, 2), (7, 2), (12, 3)), [1, 3, 6, 7, 12]),  # for 2; for 4; for 8
        (((2, 2), (3, 1)), [3]),  # 2 were measured on two nodes alone, and fit on one
    ],
)
def test_measured_sizes_stand_in_for_those_that_were_not(measured, sizes):
    """Of four nodes of 4 GPUs: 1, 2, 4, 8, 16; what lies between two stands in for the first."""
    gpus, nodes = zip(*measured, strict=True)
    ones = (1.0,) * len(gpus)
    table = Tabular(
        gpus=gpus, nodes=nodes, local_batch=tuple(32.0 / n for n in gpus), step_s=ones, sync_s=ones
    )
    profile = Profile(name="elastic", throughput={"V100": table}, base_batch=32.0)
    state = waiting(gpus=gpus[0], min_gpus=1, max_gpus=16)
    round_ = msgspec.structs.replace(snapshot(state), profiles={"elastic": profile})
    assert counts(build(round_, prune=False), clock=1.0) == sizes


def test_pool_of_unequal_nodes_uses_its_largest_nodes_first():
    """One node of 8 and four of 4: 16 GPUs need 8 + 4 + 4, that is 3 nodes; 8 need one."""
    on = cluster((4, 4, "V100", "default"), (1, 8, "V100", "default"))
    model = Parametric(alpha_c_s=0.1, beta_c_s=0.0, alpha_r_s=0.1, alpha_n_s=0.9)
    profiles = {"elastic": Profile(name="elastic", throughput={"V100": model}, base_batch=32.0)}
    state = waiting(min_gpus=8, max_gpus=16, gpus=8)
    table = build(msgspec.structs.replace(snapshot(state, on=on), profiles=profiles), prune=False)
    full = table.clock == 1.0
    assert table.gpus[full].tolist() == [8, 16]
    # 32 samples in 0.1 + 0.1 s in the node of 8; in 0.1 + 0.9 s across nodes.
    np.testing.assert_allclose(table.rate[full], [160.0, 32.0])
    assert table.span[full].tolist() == [0, 2]


def test_rate_and_power_are_those_of_the_models():
    """Every row promises what throughput, efficiency and power say of its configuration."""
    state = waiting(min_gpus=1, max_gpus=16, noise=NOISE)
    table = build(snapshot(state), prune=False)
    for k in range(len(table)):
        o = option(table, k)
        nodes = -(-o.gpus // 4)
        rate = work_rate(PROFILES["elastic"], V100, o.gpus, nodes, o.batch, o.clock, NOISE)
        assert o.rate == pytest.approx(rate)
        power = job_power_w(
            PROFILES["elastic"], V100, Configuration(o.gpus, nodes, o.batch, o.clock)
        )
        assert o.power_w == pytest.approx(power)


def test_the_batch_is_the_best_of_the_profile():
    """No batch of the profile gives a higher rate than the one in the row."""
    state = waiting(min_gpus=1, max_gpus=16, noise=NOISE)
    table = build(snapshot(state), prune=False)
    profile = PROFILES["elastic"]
    for k in range(len(table)):
        o = option(table, k)
        trial = [
            work_rate(profile, V100, o.gpus, -(-o.gpus // 4), b, o.clock, NOISE)
            for b in profile.batches
        ]
        assert o.rate == pytest.approx(max(trial))
        assert o.batch == profile.batches[int(np.argmax(trial))]
    assert len(set(table.batch.tolist())) > 1


def test_without_noise_a_job_keeps_its_own_batch_at_full_efficiency():
    """96 samples on one GPU: 96 / (0.01 + 0.96) per second, no efficiency factor."""
    table = build(snapshot(waiting(batch=96.0)))
    assert table.batch.tolist() == [96.0]
    assert table.rate[0] == pytest.approx(96 / 0.97)


def test_rigid_jobs_have_one_row():
    """A rigid profile: the requested GPUs at full clock, one second of work per second."""
    table = build(snapshot(waiting(profile="rigid", gpus=3, min_gpus=1, max_gpus=8)))
    row = option(table, 0)
    assert len(table) == 1
    assert (row.gpus, row.clock, row.rate) == (3, 1.0, 1.0)
    # 3 x P(1)
    assert row.power_w == pytest.approx(3 * 219.913216)


def test_fixed_gpus_still_choose_clock_and_batch():
    """Without elastic limits the GPUs are fixed; with a power cap slower clocks remain."""
    table = build(snapshot(waiting(gpus=2, noise=NOISE), power_cap_w=1e4))
    assert set(table.gpus.tolist()) == {2}
    assert table.clock.tolist() == [0.5, 0.75, 1.0]


def test_not_elastic_means_as_requested():
    """Requested GPUs and batch at full clock; efficiency still counts."""
    state = waiting(gpus=6, min_gpus=1, max_gpus=16, batch=96.0, noise=NOISE)
    table = build(snapshot(state, power_cap_w=1e4), elastic=False)
    row = option(table, 0)
    assert (len(table), row.gpus, row.batch, row.clock) == (1, 6, 96.0, 1.0)
    worth = efficiency(scale_at(NOISE, 96.0), 96.0, 32.0)
    assert row.rate == pytest.approx(
        float(worth) * work_rate(PROFILES["elastic"], V100, 6, 2, 96.0)
    )


def test_jobs_keep_to_their_partition_and_types():
    """A pool counts only if partition, profile and the job's GPU types allow it."""
    on = cluster((2, 4, "V100", "a"), (2, 4, "T4", "a"), (2, 4, "V100", "b"), (2, 4, "T4", "c"))
    states = (
        waiting(id="x", partition="a"),
        waiting(id="y", partition="a", gpu_types=("T4",)),
        waiting(id="z", partition="b"),
        waiting(id="r", partition="a", profile="rigid"),
        waiting(id="none", partition="c", profile="rigid"),
    )
    table = build(snapshot(*states, on=on))
    found = [set(table.pool[table.job == j].tolist()) for j in range(5)]
    assert found == [{0, 1}, {1}, {2}, {0}, set()]
    assert table.start.tolist() == [0, 2, 3, 4, 5, 5]


def test_request_larger_than_the_pool_has_no_row():
    """17 GPUs of 16: nothing can be offered."""
    assert len(build(snapshot(waiting(profile="rigid", gpus=17)))) == 0


def test_current_row_is_flagged_and_is_the_running_option():
    """A row equal to the running option is flagged once, and gives back that very option."""
    state = waiting(id="run", min_gpus=1, max_gpus=4, noise=NOISE)
    table = build(snapshot(state))
    held = option(table, 1)
    table = build(snapshot(running(state, held, ((0, held.gpus),)), waiting(id="w")))
    rows = np.flatnonzero(table.current)
    assert len(rows) == 1
    assert option(table, int(rows[0])) is held
    assert table.rate[rows[0]] == pytest.approx(held.rate)
    assert len(np.unique(table.gpus[table.job == 0])) == (table.job == 0).sum()


def test_dominated_current_row_is_kept():
    """A bad batch at half clock is dominated by other rows, but stays as the job runs on it."""
    state = waiting(min_gpus=1, max_gpus=4, noise=NOISE)
    bad = Option(pool=0, gpus=3, span="node", clock=0.5, batch=48.0, rate=1.0, power_w=200.0)
    table = build(snapshot(running(state, bad, ((2, 3),))))
    rows = np.flatnonzero(table.current)
    assert len(rows) == 1
    assert option(table, int(rows[0])) is bad
    expected = work_rate(PROFILES["elastic"], V100, 3, 1, 48.0, 0.5, NOISE)
    assert table.rate[rows[0]] == pytest.approx(expected)


def test_current_rate_is_that_of_the_real_nodes():
    """8 GPUs spread over three nodes are slower than on two; other rows still assume two."""
    wide = Parametric(alpha_c_s=0.01, beta_c_s=0.01, alpha_n_s=0.05)
    table_model = {"elastic": Profile(name="elastic", throughput={"V100": wide}, base_batch=32.0)}
    state = waiting(gpus=2, min_gpus=2, max_gpus=2)
    on_one = option(build(msgspec.structs.replace(snapshot(state), profiles=table_model)), 0)
    spread = running(state, on_one, ((0, 1), (1, 1)))
    table = build(msgspec.structs.replace(snapshot(spread), profiles=table_model))
    # 32 samples: 0.01 + 0.16 s on one node; + 0.05 s on two.
    assert on_one.rate == pytest.approx(32 / 0.17)
    assert table.rate[table.current] == pytest.approx(32 / 0.22)


def test_must_run_has_its_current_row_only():
    """A running job that is not preemptible has no choice; a waiting one does."""
    state = waiting(id="run", min_gpus=1, max_gpus=4, preemptible=False)
    held = Option(pool=0, gpus=2, span="node", batch=32.0, rate=5.0)
    table = build(
        snapshot(running(state, held, ((0, 2),)), waiting(id="w", max_gpus=4, preemptible=False))
    )
    assert table.must_run.tolist() == [True, False]
    assert table.gpus[table.job == 0].tolist() == [2]
    assert table.current[table.job == 0].all()
    assert (table.job == 1).sum() > 1


def test_current_option_that_the_profile_does_not_cover_keeps_its_promise():
    """If the model has no rate for what runs, the running option's own rate stands."""
    state = waiting(profile="rigid", gpus=2)
    held = Option(pool=1, gpus=2, span="node", rate=7.0)
    on = cluster((2, 4, "V100", "default"), (2, 4, "T4", "default"))
    table = build(snapshot(running(state, held, ((2, 2),)), on=on))
    assert table.rate[table.current].tolist() == [7.0]


def test_power_matters_only_where_it_is_limited():
    """Slow clocks are dropped without a limit, and kept with a cap, a budget or a rack's cap."""
    state = waiting(min_gpus=1, max_gpus=4)
    capped = cluster((4, 4, "V100", "default"), racks=(Rack(name="r", power_cap_w=100.0),))
    assert set(build(snapshot(state)).clock.tolist()) == {1.0}
    for round in (
        snapshot(state, power_cap_w=1e4),
        snapshot(state, energy_j=1e6),
        snapshot(state, on=capped),
    ):
        assert 0.5 in build(round).clock
    assert 0.5 in build(snapshot(state), mind_power=True).clock
    assert 0.5 not in build(snapshot(state, power_cap_w=1e4), mind_power=False).clock


def test_more_gpus_without_more_speed_are_dropped():
    """Where synchronisation over nodes costs more than it gains, wide options go."""
    slow_net = Parametric(alpha_c_s=0.0, beta_c_s=0.01, alpha_r_s=0.0, alpha_n_s=1.0)
    profiles = {"elastic": Profile(name="elastic", throughput={"V100": slow_net}, base_batch=32.0)}
    state = waiting(min_gpus=1, max_gpus=16)
    round = msgspec.structs.replace(snapshot(state), profiles=profiles)
    assert counts(build(round)) == [1, 2, 4]
    assert counts(build(round, prune=False), clock=1.0) == [1, 2, 4, 8, 16]


def test_a_slower_pool_is_no_reason_to_drop_a_row():
    """Dominance is within a pool: T4 rows stay although V100 rows are faster."""
    on = cluster((2, 4, "V100", "default"), (2, 4, "T4", "default"))
    table = build(snapshot(waiting(min_gpus=1, max_gpus=4), on=on))
    assert set(table.pool.tolist()) == {0, 1}


def test_building_twice_gives_the_same_table():
    """What is remembered from the first time changes nothing."""
    states = [waiting(id=f"{i}", gpus=1 + i, max_gpus=16, noise=NOISE) for i in range(5)]
    first, second = (build(snapshot(*states)) for _ in range(2))
    for name in ("start", "gpus", "rate", "power_w", "batch", "clock"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def test_equal_pools_are_one_key():
    """Pools of equal clusters hash alike, so that an application serves both; others differ."""
    (one,), (same,) = pool_shapes(V100S), pool_shapes(cluster((4, 4, "V100", "default")))
    (other,) = pool_shapes(cluster((5, 4, "V100", "default")))
    assert one is not same
    assert {one: 1}.get(same) == 1
    assert {one: 1}.get(other) is None


def test_empty_round():
    """A round without jobs has an empty table."""
    table = build(snapshot())
    assert len(table) == 0
    assert table.start.tolist() == [0]


def test_rows_do_not_depend_on_how_many_are_computed_at_once(monkeypatch):
    """More jobs, all different, than a grid works on together: each has the rows it has alone."""
    states = [
        waiting(id=f"{n}/{low}", gpus=n % 3 + 1, min_gpus=1, max_gpus=16, noise=NOISE)
        for n in range(1, 17)
        for low in range(1, n + 1)
    ]
    monkeypatch.setattr("ronda.formulations.options.build.TOGETHER", 4)
    whole = build(snapshot(*states), mind_power=True)
    for j in (0, 77, len(states) - 1):
        own = build(snapshot(states[j]), mind_power=True)
        rows = slice(whole.start[j], whole.start[j + 1])
        for name in ("gpus", "clock", "batch", "rate", "power_w", "span"):
            np.testing.assert_array_equal(getattr(whole, name)[rows], getattr(own, name))


job = st.builds(
    lambda gpus, low, high, known, profile, batch: waiting(
        gpus=gpus,
        min_gpus=min(low, gpus),
        max_gpus=max(high, gpus),
        profile=profile,
        batch=batch,
        noise=NOISE if known else None,
    ),
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(1, 20),
    st.booleans(),
    st.sampled_from(["elastic", "rigid"]),
    st.sampled_from([32.0, 100.0]),
)


@settings(deadline=None)
@given(states=st.lists(job, min_size=1, max_size=6), capped=st.booleans(), order=st.randoms())
def test_rows_of_a_job_do_not_depend_on_the_others(states, capped, order):
    """A job's rows are the same alone, among others, and in any order."""
    cap = 1e4 if capped else None
    order.shuffle(states)
    whole = build(snapshot(*states, power_cap_w=cap))
    for j, state in enumerate(states):
        own = build(snapshot(state, power_cap_w=cap))
        rows = slice(whole.start[j], whole.start[j + 1])
        for name in ("gpus", "clock", "batch", "rate", "power_w", "span"):
            np.testing.assert_array_equal(getattr(whole, name)[rows], getattr(own, name))


@settings(deadline=None)
@given(state=job, mind_power=st.booleans())
def test_pruning_drops_just_what_is_dominated(state, mind_power):
    """Against brute force: each dropped row has a better one; no kept row has one.

    All rows are those of every batch: synchronising draws less than computing, so a slower batch
    may draw less.
    """
    round = with_sync(state)
    full = build(round, prune=False, mind_power=True)
    kept = build(round, mind_power=mind_power)
    names = ("gpus", "clock", "batch", "rate", "power_w")

    def rows(table):
        return [tuple(getattr(table, n)[k].item() for n in names) for k in range(len(table))]

    def beats(a, b):
        no_worse = a[3] >= b[3] and a[0] <= b[0] and (a[4] <= b[4] or not mind_power)
        same = a[3] == b[3] and a[0] == b[0] and (a[4] == b[4] or not mind_power)
        return no_worse and (not same or rows(full).index(a) < rows(full).index(b))

    expected = [b for b in rows(full) if not any(beats(a, b) for a in rows(full))]
    assert rows(kept) == expected


def with_sync(*states, **fields):
    """Return a round in which a GPU that synchronises draws 80 W."""
    power = {"V100": msgspec.structs.replace(CURVE, sync_w=80.0)}
    profile = msgspec.structs.replace(PROFILES["elastic"], power=power)
    return msgspec.structs.replace(
        snapshot(*states, **fields), profiles=PROFILES | {"elastic": profile}
    )


def test_batches_have_rows_of_their_own_where_watts_matter():
    """On 8 GPUs at full clock larger batches are faster, as they synchronise less, and draw more.

    Where watts do not matter the fastest stands for all.
    """
    state = waiting(NOISE, gpus=8, min_gpus=8, max_gpus=8)
    minded, free = (build(with_sync(state), mind_power=minds) for minds in (True, False))
    full = minded.clock == 1.0
    assert minded.batch[full].tolist() == [64.0, 128.0, 256.0]
    assert (np.diff(minded.rate[full]) > 0).all()
    assert (np.diff(minded.power_w[full]) > 0).all()
    assert free.batch.tolist() == [256.0]


SIZES = [(1, NODE), (2, NODE), (4, RACK), (4, CLUSTER), (8, RACK), (8, CLUSTER)]


@settings(deadline=None)
@given(data=st.data(), jobs=st.integers(1, 3), clocks=st.integers(1, 3))
def test_dominance_against_brute_force(data, jobs, clocks):
    """On small integers, where ties abound, the rule agrees with pairwise comparison."""

    def draw(count):
        return data.draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))

    def survivors(rows, keys, span):
        """Return the rows that none beats; those within a rack and others are not compared."""
        kept = []
        for b in rows:
            rivals = [a for a in rows if span[a] != (CLUSTER if span[b] == RACK else RACK)]
            no_worse = [a for a in rivals if all(map(ge, keys[a], keys[b]))]
            if not any(keys[a] != keys[b] or a < b for a in no_worse):
                kept.append(b)
        return kept

    each = [size for size in SIZES for _ in range(clocks)]
    gpus, span = (np.array(column, dtype=float) for column in zip(*each, strict=True))
    rate, power, offered = (np.array(draw(jobs * len(each))).reshape(jobs, -1) for _ in range(3))
    rate, power, offered = rate.astype(float), power.astype(float), offered > 0
    batch, worth = np.arange(len(each)) % clocks, np.array([1.0, 2.0, 0.5])[:clocks]
    level = np.arange(len(each)) // clocks
    below = np.array([[m <= n and b in (a, NODE) for m, b in SIZES] for n, a in SIZES])
    for mask, speed, p in zip(offered, rate, power, strict=True):
        found = rivals(np.where(mask, speed, 0.0), batch, clocks, level, below, p)
        r = worth[batch] * speed
        keys = list(zip(r, -gpus, -p, strict=True))
        expected = survivors((mask & (r > 0)).nonzero()[0].tolist(), keys, span)
        first, later = worth[:, None] * found
        kept = mask & (r > first.max(axis=0)) & (r >= later.max(axis=0))
        assert kept.nonzero()[0].tolist() == expected


def test_requests_one_by_one_have_the_rows_of_requests_together(monkeypatch):
    """Whether requests are answered together, one by one or from memory, rows are the same."""
    round_ = generate.round(60, severity="tight", seed=3)
    tables = []
    for few in (0, 60, 60):  # together, one by one, from memory
        monkeypatch.setattr("ronda.formulations.options.build.FEW", few)
        tables.append(build(round_))
    for name in ("start", "gpus", "clock", "batch", "rate", "power_w"):
        together, single, known = (getattr(table, name) for table in tables)
        assert np.array_equal(together, single)
        assert np.array_equal(single, known)


def test_only_gpus_in_service_are_offered():
    """Of four nodes of 4 GPUs all but 3 GPUs are out: 1 to 3 are left; without any, none."""
    counts = {}
    for in_service in (3, 0):
        out = ((0, 4), (1, 4), (2, 4), (3, 4 - in_service))
        table = build(
            snapshot(waiting(gpus=4, min_gpus=1), on=msgspec.structs.replace(V100S, out=out))
        )
        counts[in_service] = sorted(set(table.gpus.tolist()))
    assert counts == {3: [1, 2, 3], 0: []}
