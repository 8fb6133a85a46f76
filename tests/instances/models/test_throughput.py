"""Throughput models: hand arithmetic, accumulation against brute force, published fits."""

import csv
import gzip
import math
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_rate import work_rate
from ronda.instances.cluster import GpuType
from ronda.instances.errors import InputError
from ronda.instances.models.configuration import Configuration
from ronda.instances.models.throughput import (
    fastest_step,
    measured_steps,
    phases,
    samples_per_s,
    speed_and_share,
)
from ronda.instances.profile import (
    Memory,
    NoiseScale,
    Parametric,
    Profile,
    Tabular,
    rigid_profile,
)


def iteration_s(model, gpus, nodes, local_batch, *, passes=1, clock=1.0):
    """Return the seconds of an iteration with a given local batch and number of passes."""
    compute, exposed = phases(model, gpus, nodes, local_batch, clock)
    return passes * compute + exposed


DATA = Path(__file__).resolve().parents[2] / "data"
V100 = GpuType(name="V100", memory_gib=16)

PARAMETRIC = Parametric(
    alpha_c_s=0.1,
    beta_c_s=0.01,
    alpha_r_s=0.1,
    beta_r_s=0.02,
    alpha_n_s=0.3,
    beta_n_s=0.05,
)
# One GPU: 2 or 4 samples; four GPUs in one node: 2 samples.
TABULAR = Tabular(
    gpus=(1, 1, 4),
    nodes=(1, 1, 1),
    local_batch=(4.0, 2.0, 2.0),
    step_s=(1.0, 0.6, 0.8),
    sync_s=(0.2, 0.1, 0.3),
    phi=0.5,
)


def profile(model, **fields):
    """Return a profile with one model for V100."""
    return Profile(name="app", throughput={"V100": model}, **fields)


@pytest.mark.parametrize(
    ("gpus", "nodes", "seconds"),
    [
        (1, 1, 0.2),  # T_grad = 0.1 + 0.01 * 10; nothing to synchronise
        (2, 1, 0.3),  # + alpha_r
        (4, 1, 0.34),  # + alpha_r + beta_r * 2
        (4, 2, 0.6),  # + alpha_n + beta_n * 2
    ],
)
def test_parametric_iteration(gpus, nodes, seconds):
    """With gamma = 1 computing and synchronising add up."""
    assert iteration_s(PARAMETRIC, gpus, nodes, 10.0) == pytest.approx(seconds)


def test_parametric_overlap():
    """With gamma = 2 the two overlap: sqrt(0.2^2 + 0.15^2) = 0.25."""
    model = Parametric(alpha_c_s=0.1, beta_c_s=0.01, alpha_r_s=0.15, gamma=2.0)
    assert iteration_s(model, 2, 1, 10.0) == pytest.approx(0.25)


def test_large_gamma_does_not_overflow():
    """Very short and very long times survive a high gamma: the longer part wins."""
    model = Parametric(alpha_c_s=0.0, beta_c_s=1e-40, alpha_r_s=1e40, gamma=10.0)
    assert iteration_s(model, 2, 1, 1.0) == pytest.approx(1e40)
    idle = Parametric(alpha_c_s=0.0, beta_c_s=0.0, gamma=10.0)
    assert iteration_s(idle, 2, 1, 1.0) == 0.0


def test_clock_slows_its_share_of_computing():
    """At half clock with phi = 0.5 computing takes 0.5/0.5 + 0.5 = 1.5 times as long."""
    model = Parametric(alpha_c_s=0.1, beta_c_s=0.01, alpha_r_s=0.1, phi=0.5)
    # 0.2 s * 1.5 + 0.1 s
    assert iteration_s(model, 2, 1, 10.0, clock=0.5) == pytest.approx(0.4)


def test_accumulation_adds_passes():
    """Batch 40 on 2 GPUs with at most 10 samples each needs 2 passes: 2 * 0.2 + 0.1 s."""
    step = fastest_step(profile(PARAMETRIC, max_local_batch=10.0), V100, Configuration(2, 1, 40.0))
    assert step.passes == 2
    assert step.seconds == pytest.approx(0.5)
    assert step.sync_share == pytest.approx(0.1 / 0.5)
    speed = samples_per_s(
        profile(PARAMETRIC, max_local_batch=10.0), V100, Configuration(2, 1, 40.0)
    )
    assert speed == pytest.approx(80.0)


def test_memory_limits_the_local_batch():
    """16 GiB hold 4 + 2 + 0.5 b: at most 20 samples; the GPU's name alone sets no limit."""
    own = profile(PARAMETRIC, memory=Memory(base_gib=4, model_gib=2, sample_gib=0.5))
    assert fastest_step(own, V100, Configuration(1, 1, 40.0)).passes == 2
    assert fastest_step(own, "V100", Configuration(1, 1, 40.0)).passes == 1


def test_model_that_does_not_fit_is_infeasible():
    """A model larger than the GPU has no rate."""
    own = profile(PARAMETRIC, memory=Memory(base_gib=4, model_gib=20))
    assert work_rate(own, V100, 1, 1, 40.0) == 0.0
    step = fastest_step(own, V100, Configuration(1, 1, 40.0))
    assert step.passes == 0
    assert np.isnan(step.seconds)


def test_too_small_local_batch_is_infeasible():
    """8 samples on 4 GPUs are 2 each, below a minimum of 3; on 2 GPUs they are 4."""
    own = profile(PARAMETRIC, min_local_batch=3.0)
    np.testing.assert_array_equal(
        samples_per_s(own, V100, Configuration([4, 2], 1, 8.0)) > 0, [False, True]
    )


def test_tabular_interpolates_linearly():
    """Half way between 2 and 4 samples: step 0.8 s, sync 0.15 s."""
    assert iteration_s(TABULAR, 1, 1, 3.0) == pytest.approx(0.8)
    step = fastest_step(profile(TABULAR), V100, Configuration(1, 1, 3.0))
    assert step.sync_share == pytest.approx(0.15 / 0.8)


@pytest.mark.parametrize(
    ("gpus", "nodes", "batch"), [(1, 1, 1.9), (1, 1, 4.1), (4, 2, 2.0), (2, 1, 2.0)]
)
def test_tabular_extrapolates_nothing(gpus, nodes, batch):
    """Outside the local batches, GPUs and nodes that were measured there is no time."""
    assert np.isnan(iteration_s(TABULAR, gpus, nodes, batch))


def test_tabular_accumulation():
    """12 samples on one GPU: 3 passes of 4, or 4 of 3, 5 of 2.4, 6 of 2; the first is fastest.

    step + k (step - sync): 1 + 2 * 0.8 = 2.6; 0.8 + 3 * 0.65 = 2.75; and so on.
    """
    step = fastest_step(profile(TABULAR), V100, Configuration(1, 1, 12.0))
    assert step.passes == 3
    assert step.seconds == pytest.approx(2.6)


def test_tabular_passes_between_the_ends():
    """Computing 0.1 s per pass, sync 0.1 s per sample of a pass: 0.1 m + 0.1 * 64/m, best at 8."""
    model = Tabular(
        gpus=(1, 1), nodes=(1, 1), local_batch=(1.0, 64.0), step_s=(0.2, 6.5), sync_s=(0.1, 6.4)
    )
    step = fastest_step(profile(model), V100, Configuration(1, 1, 64.0))
    assert step.passes == 8
    assert step.seconds == pytest.approx(1.6)


def test_tabular_clock_slows_computing_only():
    """At half clock with phi = 0.5: (1.0 - 0.2) * 1.5 + 0.2 = 1.4 s."""
    assert fastest_step(
        profile(TABULAR), V100, Configuration(1, 1, 4.0, 0.5)
    ).seconds == pytest.approx(1.4)


def test_single_measured_batch_serves_its_multiples():
    """Four GPUs were measured with 2 samples: batches 8 and 16 work, 12 does not."""
    speed = samples_per_s(profile(TABULAR), V100, Configuration(4, 1, [8.0, 16.0, 12.0]))
    # 8 / 0.8; 16 / (0.8 + 0.5)
    np.testing.assert_allclose(speed, [10.0, 16 / 1.3, 0.0])


def test_rigid_does_one_second_per_second():
    """A rigid profile has rate 1 and synchronises nothing."""
    own = rigid_profile("V100")
    assert work_rate(own, "V100", 3, 1, 1.0, 0.5, NoiseScale(batches=(1.0,), scale=(1.0,))) == 1.0
    assert speed_and_share(own, "V100", Configuration(3, 1, 1.0))[1] == 0.0


def test_work_rate_counts_efficiency():
    """Batch 30 with scale 50 and base batch 10: 60/80 of the samples count."""
    own = profile(PARAMETRIC, base_batch=10.0)
    noise = NoiseScale(batches=(10.0, 50.0), scale=(40.0, 60.0))
    # b = 30: T = 0.1 + 0.3 = 0.4 s, 75 samples/s
    assert work_rate(own, "V100", 1, 1, 30.0, 1.0, noise) == pytest.approx(75 * 60 / 80)


def test_unknown_gpu_type_is_an_input_error():
    """The error names the profile and what it knows."""
    with pytest.raises(InputError, match=r"profile 'app': .*'T4'.*one of: V100"):
        work_rate(profile(PARAMETRIC), "T4", 1, 1, 1.0)


def test_rigid_has_no_step():
    """Asking for the iteration time of a rigid profile is refused."""
    with pytest.raises(InputError, match="rigid"):
        fastest_step(rigid_profile("V100"), V100, Configuration(1, 1, 1.0))


positive = st.floats(1e-3, 10.0)


@given(
    alpha=positive,
    beta=positive,
    sync=positive,
    gamma=st.floats(1.0, 10.0),
    phi=st.floats(0.0, 1.0),
    clock=st.floats(0.2, 1.0),
    batch=st.floats(1.0, 100.0),
    most=st.floats(0.5, 50.0),
)
def test_fewest_passes_are_fastest(alpha, beta, sync, gamma, phi, clock, batch, most):
    """For gamma >= 1 no larger number of passes beats the smallest feasible one."""
    model = Parametric(alpha_c_s=alpha, beta_c_s=beta, alpha_r_s=sync, gamma=gamma, phi=phi)
    step = fastest_step(
        profile(model, max_local_batch=most), V100, Configuration(2, 1, batch, clock)
    )
    fewest = max(1, math.ceil(batch / 2 / most * (1 - 1e-9)))
    assert step.passes == fewest
    passes = np.arange(fewest, fewest + 50)
    trial = iteration_s(model, 2, 1, batch / (2 * passes), passes=passes, clock=clock)
    assert (step.seconds <= trial * (1 + 1e-12)).all()


@given(
    known=st.lists(st.integers(1, 40), min_size=1, max_size=5, unique=True),
    data=st.data(),
    gpus=st.integers(1, 4),
    batch=st.integers(1, 400),
    clock=st.sampled_from([0.5, 0.8, 1.0]),
)
def test_tabular_passes_against_brute_force(known, data, gpus, batch, clock):
    """The closed form finds the best number of passes over all integers."""
    times = data.draw(st.lists(st.tuples(positive, positive), min_size=5, max_size=5))
    n = len(known)
    compute, sync = np.array(times[:n]).T
    model = Tabular(
        gpus=(gpus,) * n,
        nodes=(1,) * n,
        local_batch=tuple(map(float, known)),
        step_s=tuple(compute + sync),
        sync_s=tuple(sync),
        phi=0.7,
    )
    step = fastest_step(profile(model), V100, Configuration(gpus, 1, float(batch), clock))
    passes = np.arange(1, batch + 2)
    trial = iteration_s(model, gpus, 1, batch / (gpus * passes), passes=passes, clock=clock)
    if np.isnan(trial).all():
        assert step.passes == 0
        assert np.isnan(step.seconds)
    else:
        assert step.seconds == pytest.approx(np.nanmin(trial), rel=1e-9)


def test_tables_that_are_stacked_give_what_each_gives_alone():
    """Cells, limits and the share that the clock slows are those of each row's own profile."""
    other = Tabular(
        gpus=(1, 1, 4, 4, 8),
        nodes=(1, 1, 1, 2, 1),
        local_batch=(1.0, 8.0, 2.0, 2.0, 1.0),
        step_s=(0.3, 1.9, 0.9, 1.2, 0.4),
        sync_s=(0.1, 0.4, 0.5, 0.8, 0.2),
    )
    profiles = [
        profile(TABULAR),
        profile(other, max_local_batch=4.0),
        profile(other, min_local_batch=1.5),
        profile(TABULAR, memory=Memory(base_gib=0.0, model_gib=0.0, sample_gib=5.0)),
    ]
    columns = [[1, 1, 4, 4, 8, 2], [1, 1, 1, 2, 1, 1], [4.0, 12.0, 16.0, 8.0, 16.0, 4.0]]
    ways = [np.tile(np.array(column, dtype=float), 2) for column in columns]
    clock = np.repeat([1.0, 0.5], 6)
    which = np.repeat(np.arange(len(profiles)), len(clock))
    many = [np.tile(column, len(profiles)) for column in (*ways, clock)]
    together = measured_steps(profiles, V100, which, Configuration(*many))
    alone = [fastest_step(own, V100, Configuration(*ways, clock)) for own in profiles]
    for name in ("seconds", "sync_share", "passes"):
        expected = np.concatenate([getattr(step, name) for step in alone])
        np.testing.assert_array_equal(getattr(together, name), expected)
    assert len({step.seconds.tobytes() for step in alone}) == len(profiles)


def test_a_long_row_of_batches_makes_no_other_longer():
    """A table of many ways, of which one has many batches, takes memory for its rows alone."""
    many, batches = 2000, 2000
    gpus = (*range(2, many + 2), *(1 for _ in range(batches)))
    local = (*(1.0 for _ in range(many)), *(1.0 + k for k in range(batches)))
    ones = (1.0,) * len(gpus)
    model = Tabular(
        gpus=gpus, nodes=(1,) * len(gpus), local_batch=local, step_s=ones, sync_s=(0.5,) * len(gpus)
    )
    tracemalloc.start()
    step = fastest_step(profile(model), V100, Configuration([1, 3, 2003], 1, [1500.0, 3.0, 2003.0]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert step.passes.tolist() == [1, 1, 0]
    assert peak < 8 * 2**20


def test_arrays_broadcast():
    """All arguments broadcast together, and agree with the scalar calls."""
    own = profile(PARAMETRIC, max_local_batch=16.0)
    n, b = np.array([[1], [2], [4]]), np.array([8.0, 64.0])
    speed = samples_per_s(own, V100, Configuration(n, 1, b))
    assert speed.shape == (3, 2)
    for i, j in np.ndindex(speed.shape):
        assert speed[i, j] == samples_per_s(own, V100, Configuration(int(n[i, 0]), 1, float(b[j])))


# alpha_c, beta_c, alpha_r, beta_r, alpha_n, beta_n (ms), gamma; mean and largest error (%).
FITS = {
    "bert": ((48.61, 1.832, 65.24, 1.639, 72.02, 0.456), 2.61, 1.1, 2.7),
    "gpt2": ((23.72, 0.880, 21.51, 1.879, 31.31, 0.349), 1.71, 1.5, 3.4),
    "inception3": ((21.36, 2.898, 40.38, 2.604, 58.88, 0.222), 1.76, 1.0, 2.4),
    "vgg16": ((0.00, 3.061, 13.04, 2.266, 26.93, 0.094), 1.00, 3.1, 11.2),
}


@pytest.mark.parametrize("app", FITS)
def test_fits_to_measured_a100_tables(app):
    """The fitted constants give the measured iterations per second within the stated errors."""
    path = DATA / "elasticflow" / "throughputs_A100.csv"
    constants, gamma, mean_error, largest = FITS[app]
    names = ("alpha_c_s", "beta_c_s", "alpha_r_s", "beta_r_s", "alpha_n_s", "beta_n_s")
    seconds = dict(zip(names, (c / 1e3 for c in constants), strict=True))
    model = Parametric(gamma=gamma, **seconds)
    with path.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["model"] == app]
    assert rows, f"{app} is not in the table"
    n = np.array([int(row["num_gpus"]) for row in rows])
    batch = np.array([float(row["global_batch_size"]) for row in rows])
    measured = np.array([float(row["iters_per_s"]) for row in rows])
    # 8 GPUs in a node
    error = np.abs(iteration_s(model, n, -(-n // 8), batch / n) * measured - 1) * 100
    assert error.mean() == pytest.approx(mean_error, abs=0.1)
    assert error.max() == pytest.approx(largest, abs=0.1)


def test_pollux_table_is_reproduced_where_it_was_measured():
    """At measured placements and local batches the table gives the measured step time."""
    path = DATA / "pollux" / "placements_aws_t4.csv.gz"
    with gzip.open(path, "rt", newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["app"] == "bert" and r["placement"] == "24"]
    columns = {name: tuple(float(r[name]) for r in rows) for name in ("local_bsz", "step_time")}
    model = Tabular(
        gpus=(6,) * len(rows),
        nodes=(2,) * len(rows),
        local_batch=columns["local_bsz"],
        step_s=columns["step_time"],
        sync_s=tuple(float(r["sync_time"]) for r in rows),
    )
    times = iteration_s(model, 6, 2, columns["local_bsz"])
    np.testing.assert_allclose(times, columns["step_time"])
