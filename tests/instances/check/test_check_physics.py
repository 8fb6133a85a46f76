"""The checker's own arithmetic: by hand, and against the models that the solvers use."""

import math

import hypothesis.strategies as st
import pytest
from hypothesis import event, given, settings
from msgspec.structs import replace

from model_rate import work_rate
from ronda.instances.check.physics import Pace, Physics
from ronda.instances.cluster import GpuType
from ronda.instances.models.configuration import Configuration
from ronda.instances.models.power import job_power_w
from ronda.instances.profile import (
    Memory,
    NoiseScale,
    Parametric,
    PowerCurve,
    Profile,
    Rigid,
    Tabular,
)
from ronda.instances.violation import Fault

GPU = GpuType(name="A", memory_gib=16, idle_w=50, clocks=(0.5, 1.0))
FITTED = Parametric(alpha_c_s=0.1, beta_c_s=0.01, alpha_r_s=0.4, alpha_n_s=0.7, gamma=2.0)
TABLE = Tabular(
    gpus=(2, 2), nodes=(1, 1), local_batch=(10, 20), step_s=(1.0, 1.6), sync_s=(0.2, 0.2)
)


def physics(model, **fields):
    """Return the physics of a profile with this throughput on GPU type A."""
    return Physics(Profile(name="p", throughput={"A": model}, **fields), GPU)


def test_parametric_by_hand():
    """Two GPUs in one node: a step is the 2-norm of computing and synchronising."""
    # b = 40/2 = 20, T_grad = 0.1 + 0.01 * 20 = 0.3, T_sync = 0.4, T = (0.09 + 0.16)^0.5 = 0.5;
    # 40/0.5 = 80 samples/s, exposed sync (0.5 - 0.3)/0.5 = 0.4.
    pace = physics(FITTED).pace(2, 1, 40, 1.0)
    assert pace[:2] == pytest.approx((80, 0.4))


def test_parametric_over_nodes_and_at_half_clock():
    """Spreading takes the slower synchronisation; half the clock doubles computing only."""
    # T_grad = 0.3 / 0.5 = 0.6, T_sync = 0.7, T = (0.36 + 0.49)^0.5.
    total = math.sqrt(0.85)
    pace = physics(FITTED).pace(2, 2, 40, 0.5)
    assert pace[:2] == pytest.approx((40 / total, (total - 0.6) / total))


def test_parametric_over_racks():
    """What is given for racks takes the place of what holds for nodes, each term by itself."""
    # b = 40/4 = 10, T_grad = 0.2; T_sync = 0.7 over nodes; over racks 1.5 + 0 * 2, with beta_x
    # 0.7 + 0.3 * 2 = 1.3, with both 1.5 + 0.6 = 2.1 s; T is the 2-norm.
    for given_, sync in (
        ({}, 0.7),
        ({"alpha_x_s": 1.5}, 1.5),
        ({"beta_x_s": 0.3}, 1.3),
        ({"alpha_x_s": 1.5, "beta_x_s": 0.3}, 2.1),
    ):
        own = physics(replace(FITTED, **given_))
        assert own.pace(4, 2, 40, 1.0) == physics(FITTED).pace(4, 2, 40, 1.0)
        assert own.pace(4, 2, 40, 1.0, 2).samples_per_s == pytest.approx(40 / math.hypot(0.2, sync))


def test_parametric_accumulates_when_the_local_batch_is_limited():
    """A local batch of at most 10 makes two passes; only the last one synchronises."""
    # b = 40/(2*2) = 10, T_grad = 0.2, T_iter = (0.04 + 0.16)^0.5, T = T_iter + 0.2.
    once = math.sqrt(0.2)
    pace = physics(FITTED, max_local_batch=10).pace(2, 1, 40, 1.0)
    assert pace[:2] == pytest.approx((40 / (once + 0.2), (once - 0.2) / (once + 0.2)))


def test_one_gpu_does_not_synchronise():
    """With one GPU a step is the computing alone."""
    # b = 40, T = 0.1 + 0.4 = 0.5.
    assert physics(FITTED).pace(1, 1, 40, 1.0)[:2] == pytest.approx((80, 0.0))


def test_tabular_takes_the_fastest_number_of_passes():
    """All numbers of passes within the measured range are compared."""
    # B = 60 on 2 GPUs: p = 2, b = 15: step (1.0 + 1.6)/2 = 1.3, T = 2 * 1.1 + 0.2 = 2.4;
    # p = 3, b = 10: T = 3 * 0.8 + 0.2 = 2.6. p = 1 would need b = 30, which is not measured.
    assert physics(TABLE).pace(2, 1, 60, 1.0)[:2] == pytest.approx((25, 0.2 / 2.4))


def test_tabular_may_gain_by_more_passes_than_needed():
    """A large batch that runs disproportionately slowly is cut further."""
    table = Tabular(
        gpus=(1, 1), nodes=(1, 1), local_batch=(10, 20), step_s=(1.0, 9.0), sync_s=(0.0, 0.0)
    )
    # B = 20: one pass takes 9 s, two passes of 10 take 2 s.
    assert physics(table).pace(1, 1, 20, 1.0)[:2] == pytest.approx((10, 0.0))


def test_tabular_slows_only_computing_with_the_clock():
    """At half the clock a half clock-bound step grows by 1.5 in its computing part."""
    table = Tabular(gpus=(1,), nodes=(1,), local_batch=(10,), step_s=(1.0,), sync_s=(0.4,), phi=0.5)
    # f = 0.5/0.5 + 0.5 = 1.5, T = 0.6 * 1.5 + 0.4 = 1.3.
    assert physics(table).pace(1, 1, 10, 0.5)[:2] == pytest.approx((10 / 1.3, 0.4 / 1.3))


def test_nothing_is_extrapolated():
    """Unmeasured sizes and local batches are faults, with different words."""
    assert physics(TABLE).pace(4, 1, 60, 1.0).code == "options"
    assert physics(TABLE).pace(2, 2, 60, 1.0).code == "options"
    assert physics(TABLE).pace(2, 1, 10, 1.0).code == "local-batch"  # b = 5 < 10


def test_memory_bounds_the_local_batch():
    """What does not fit is cut into more passes, and a model that never fits is a fault."""
    # (16 - 1 - 5)/1 = 10 samples fit: two passes as with max_local_batch=10.
    small = Memory(base_gib=1, model_gib=5, sample_gib=1)
    limited = physics(FITTED, max_local_batch=10).pace(2, 1, 40, 1.0)
    assert physics(FITTED, memory=small).pace(2, 1, 40, 1.0) == pytest.approx(limited)
    # Two fused models need 1 + 2 (5 + b): b <= 2.5, eight passes of 2.5.
    assert isinstance(physics(FITTED, memory=small).pace(2, 1, 40, 1.0, 2), Pace)
    huge = Memory(base_gib=1, model_gib=16)
    fault = physics(FITTED, memory=huge).pace(2, 1, 40, 1.0)
    assert isinstance(fault, Fault)
    assert fault.code == "memory"


def test_power_by_hand():
    """Computing and synchronising GPUs draw their own power, in proportion of time."""
    curve = PowerCurve(a_w=20, b_w=100, c_w=200, s0=0.5)
    # P(0.5) = 20 + 50 = 70; P(1) = 20 + 50 + 200 (1 - 0.125) = 245.
    plain = physics(FITTED, power={"A": curve})
    assert plain.busy_w(2, 0.5, 0.4) == pytest.approx(140)
    assert plain.busy_w(2, 1.0, 0.4) == pytest.approx(490)
    mixed = physics(FITTED, power={"A": PowerCurve(a_w=100, sync_w=60)})
    assert mixed.busy_w(2, 1.0, 0.4) == pytest.approx(2 * (100 * 0.6 + 60 * 0.4))
    assert physics(FITTED).busy_w(2, 1.0, 0.4) == pytest.approx(100)  # idle power


def test_efficiency_by_hand():
    """The noise scale is linear between batches and constant outside."""
    model = physics(FITTED, base_batch=10)
    noise = ((10.0, 30.0), (50.0, 150.0))
    assert model.efficiency(20, *noise) == pytest.approx((100 + 10) / (100 + 20))
    assert model.efficiency(5, *noise) == pytest.approx((50 + 10) / (50 + 5))
    assert model.efficiency(60, *noise) == pytest.approx((150 + 10) / (150 + 60))
    assert model.efficiency(60, None, None) == 1.0
    assert physics(Rigid()).efficiency(60, *noise) == 1.0


@st.composite
def tables(draw):
    """Return a measured table for 1 to 4 GPUs over 1 or 2 nodes."""
    rows = []
    for gpus in range(1, 5):
        for nodes in range(1, min(gpus, 2) + 1):
            batches = draw(st.lists(st.integers(1, 64), min_size=1, max_size=4, unique=True))
            for batch in batches:
                step = draw(st.floats(0.1, 2))
                rows.append((gpus, nodes, batch, step, step * draw(st.floats(0, 1))))
    gpus, nodes, batch, step, sync = zip(*rows, strict=True)
    phi = draw(st.floats(0, 1))
    return Tabular(gpus=gpus, nodes=nodes, local_batch=batch, step_s=step, sync_s=sync, phi=phi)


fits = st.builds(
    Parametric,
    alpha_c_s=st.floats(0.01, 1),
    beta_c_s=st.floats(0, 0.1),
    alpha_r_s=st.floats(0, 1),
    beta_r_s=st.floats(0, 0.1),
    alpha_n_s=st.floats(0, 1),
    beta_n_s=st.floats(0, 0.1),
    alpha_x_s=st.none() | st.floats(0, 2),
    beta_x_s=st.none() | st.floats(0, 0.2),
    gamma=st.floats(1, 10),
    phi=st.floats(0, 1),
)
powers = st.builds(
    PowerCurve,
    a_w=st.floats(0, 100),
    b_w=st.floats(0, 200),
    c_w=st.floats(0, 300),
    s0=st.floats(0.3, 1),
    sync_w=st.none() | st.floats(0, 200),
)
profiles = st.builds(
    Profile,
    name=st.just("p"),
    throughput=st.fixed_dictionaries({"A": fits | tables() | st.just(Rigid())}),
    power=st.just({}) | st.fixed_dictionaries({"A": powers}),
    base_batch=st.floats(1, 100),
    min_local_batch=st.just(0.0) | st.integers(1, 8).map(float),
    max_local_batch=st.none() | st.integers(8, 64).map(float),
    memory=st.none()
    | st.builds(
        Memory,
        base_gib=st.floats(0, 4),
        model_gib=st.floats(0, 14),
        sample_gib=st.just(0.0) | st.floats(0.1, 1),
    ),
)


@settings(max_examples=100, deadline=None)
@given(
    profile=profiles,
    gpus=st.integers(1, 4),
    nodes=st.integers(1, 3),
    racks=st.integers(1, 2),
    batch=st.integers(1, 300),
    clock=st.sampled_from([0.5, 0.8, 1.0]),
    scales=st.tuples(st.floats(0, 1000), st.floats(0, 1000)),
)
def test_agrees_with_the_models_of_the_solvers(profile, gpus, nodes, racks, batch, clock, scales):
    """Two independent implementations of the same physics give the same rate and power."""
    noise = NoiseScale(batches=(10, 100), scale=scales)
    own = Physics(profile, GPU)
    nodes = min(gpus, nodes)
    racks = min(nodes, racks)
    pace = own.pace(gpus, nodes, batch, clock, racks)
    rate = work_rate(profile, GPU, gpus, nodes, batch, clock, noise, racks)
    event(type(pace).__name__ if isinstance(pace, Pace) else pace.code)
    if isinstance(pace, Fault):
        assert rate == 0
        return
    expected = pace.samples_per_s * own.efficiency(batch, noise.batches, noise.scale)
    assert rate == pytest.approx(expected, rel=1e-9)
    watts = own.busy_w(gpus, clock, pace.sync_share)
    assert job_power_w(
        profile, GPU, Configuration(gpus, nodes, batch, clock, racks)
    ) == pytest.approx(watts, rel=1e-7)
