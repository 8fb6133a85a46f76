"""Throughput: known parameters come back, odd rows do not bend them, nothing is fitted silently."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from ronda.instances.errors import InputError
from ronda.instances.profile import Parametric
from ronda.solvers.fitting.fit import fit_measured
from ronda.solvers.fitting.measurements import Measurements
from ronda.solvers.fitting.throughput import fit_throughput, identify, seconds

TRUE = Parametric(
    alpha_c_s=0.02,
    beta_c_s=0.003,
    alpha_r_s=0.03,
    beta_r_s=0.002,
    alpha_n_s=0.06,
    beta_n_s=0.0004,
    gamma=2.0,
    phi=0.7,
)
SIZES = (1, 2, 4, 8, 16, 32, 64)


def steps(sizes=SIZES, batches=(64, 128), clocks=(1.0,), passes=(1,), model=TRUE, noise=0.0):
    """Return what a model says for all combinations: nodes of 8, global batches."""
    grid = np.array([(n, b, s, m) for n in sizes for b in batches for s in clocks for m in passes])
    n, batch, clock, m = (column.astype(float) for column in grid.T)
    rows = pd.DataFrame(
        {
            "row": np.arange(len(grid)) + 2,
            "batch": 0.0,
            "gpus": n,
            "nodes": np.ceil(n / 8),
            "local_batch": batch / n / m,
            "passes": m,
            "clock": clock,
        }
    )
    draw = np.exp(np.random.default_rng(0).normal(0.0, noise, len(rows)))
    rows["step_s"] = seconds(model, rows) * draw
    return Measurements("steps.csv", "throughput", "app", "G", rows)


def changed(table, **columns):
    """Return a table with other columns."""
    return replace(table, rows=table.rows.assign(**columns))


def codes(fit):
    """Return the names of a fit's warnings."""
    return {remark.code for remark in fit.remarks}


def message(fit, code):
    """Return the words of a warning."""
    return next(remark.message for remark in fit.remarks if remark.code == code)


@pytest.mark.parametrize("seed", range(6))
def test_known_parameters_come_back(seed):
    """Any model within reason is found again from its own predictions, clock share and overlap."""
    rng = np.random.default_rng(seed)
    low = {"alpha_c_s": 0.01, "beta_c_s": 0.001, "alpha_r_s": 0.01, "beta_r_s": 0.001}
    low |= {"alpha_n_s": 0.03, "beta_n_s": 0.0003}
    values = {name: value * rng.uniform(1.0, 4.0) for name, value in low.items()}
    true = Parametric(**values, gamma=rng.uniform(1.3, 4.0), phi=rng.uniform(0.3, 0.9))
    table = steps(batches=(64, 256, 1024), clocks=(0.6, 0.8, 1.0), model=true)
    found = fit_throughput(table, {}).model
    for name in ("beta_c_s", "alpha_n_s", "gamma", "phi"):
        assert getattr(found, name) == pytest.approx(getattr(true, name), rel=0.02), name


def test_gradient_passes_are_part_of_the_model():
    """An iteration of m passes computes m times and synchronises once: (m - 1) C + T."""
    table = steps(batches=(512,), passes=(1, 2, 8))
    found = fit_throughput(table, {"phi": 0.7}).model
    assert found.alpha_c_s == pytest.approx(TRUE.alpha_c_s, rel=0.02)
    blind = changed(table, passes=1.0)  # the same times make no sense without the passes
    off = seconds(fit_throughput(blind, {}).model, blind.rows) / table.rows.step_s - 1.0
    assert off.abs().mean() > 0.1


def test_measured_synchronisation_tells_the_parts_apart():
    """Without rows on one GPU, computing is known far better if sync_s was measured."""
    plain = steps(sizes=SIZES[1:], batches=(64, 128, 256), noise=0.01)
    exact = steps(sizes=SIZES[1:], batches=(64, 128, 256)).rows
    compute = TRUE.alpha_c_s + TRUE.beta_c_s * exact.local_batch
    both = changed(plain, sync_s=exact.step_s - compute)
    off = [
        abs(fit_throughput(table, {"phi": 1.0}).model.alpha_c_s / TRUE.alpha_c_s - 1.0)
        for table in (both, plain)
    ]
    assert off[0] < 0.1
    assert off[0] < 0.5 * off[1]


def test_same_seed_same_fit():
    """A fit is a function of table and seed, which chooses the parts that are left out."""
    table = steps(batches=(32, 64, 128, 256), noise=0.02)
    known = {"gamma": 2.0}
    first, again, other = (fit_measured(table, known, seed=seed)[0] for seed in (3, 3, 4))
    assert first == again
    assert first.errors.held_out_mape != other.errors.held_out_mape
    assert first.throughput == other.throughput


def test_fixed_parameters_stay():
    """What the caller knows is not touched, and the report says so."""
    found = fit_throughput(steps(), {"phi": 0.4, "gamma": 1.5})
    assert (found.model.phi, found.model.gamma) == (0.4, 1.5)
    assert {p.name for p in found.parameters if p.state == "fixed"} == {"phi", "gamma"}
    assert codes(found) == set()


# --- odd rows, errors that are reported ----------------------------------------------------------


def test_a_wrong_row_does_not_bend_the_fit():
    """One step measured three times too long: named by its row, and the others fit as before."""
    table = steps(noise=0.01)
    step_s = table.rows.step_s.to_numpy().copy()
    step_s[7] *= 3.0
    (fit,) = fit_measured(changed(table, step_s=step_s), {"gamma": 2.0})
    assert message(fit, "outlier").startswith(f"row {table.rows.row[7]}:")
    clean = fit_throughput(table, {"gamma": 2.0}).model
    ratio = seconds(fit.throughput, table.rows) / seconds(clean, table.rows)
    assert np.abs(np.delete(ratio, 7) - 1.0).max() < 0.05


def test_errors_are_what_the_residuals_say():
    """MAPE, maximum and held-out error follow from the rows that the report lists."""
    (fit,) = fit_measured(steps(noise=0.03), {"gamma": 2.0, "phi": 0.7})
    off = [abs(r.fitted / r.measured - 1.0) for r in fit.residuals]
    assert fit.errors.mape == pytest.approx(np.mean(off))
    assert fit.errors.largest == pytest.approx(max(off))
    out = [abs(r.held_out / r.measured - 1.0) for r in fit.residuals if r.held_out is not None]
    assert fit.errors.held_out_mape == pytest.approx(np.mean(out))
    assert fit.errors.held_out_rows == len(out) == 14


def test_a_held_out_row_has_no_say():
    """The prediction of a left-out row does not change when its measurement does."""
    table = steps(noise=0.02)
    step_s = table.rows.step_s.to_numpy().copy()
    step_s[5] *= 1.5
    known = {"gamma": 2.0, "phi": 0.7}
    first, second = (
        fit_measured(t, known)[0].residuals[5] for t in (table, changed(table, step_s=step_s))
    )
    assert second.held_out == pytest.approx(first.held_out, rel=1e-12)
    assert second.fitted != pytest.approx(first.fitted, rel=1e-6)


def test_standard_errors_are_those_of_repeated_measurement():
    """Over 20 noisy tables the spread of beta_c is what each fit says of itself, within a half."""
    table, random = steps(batches=(64, 128, 256)), np.random.default_rng(1)
    fits = []
    for _ in range(20):
        draw = np.exp(random.normal(0.0, 0.01, len(table.rows)))
        noisy = changed(table, step_s=table.rows.step_s * draw)
        fits.append(fit_throughput(noisy, {"phi": 1.0, "gamma": 2.0}))
    values = [fit.model.beta_c_s for fit in fits]
    errors = [next(p.std_error for p in f.parameters if p.name == "beta_c_s") for f in fits]
    assert 0.5 < np.std(values) / np.mean(errors) < 1.5


# --- what a table cannot tell --------------------------------------------------------------------


def test_phi_needs_a_second_clock():
    """One clock: phi stays 1 with a warning; two clocks: it is fitted."""
    one = fit_throughput(steps(), {})
    assert one.model.phi == 1.0
    assert "the clock never varies" in message(one, "phi-fixed")
    two = fit_throughput(steps(clocks=(0.7, 1.0)), {})
    assert codes(two) == set()
    assert two.model.phi == pytest.approx(0.7, rel=0.01)


def test_synchronisation_that_nobody_measured():
    """Across nodes as in a node, in a node as across, not at all, or at one size: each named."""
    batches = (64, 128, 256)
    inner = fit_throughput(steps(sizes=(1, 2, 4, 8), batches=batches), {})
    assert "no row synchronises across nodes" in message(inner, "sync-unmeasured")
    assert inner.model.alpha_n_s == inner.model.alpha_r_s > 0
    outer = fit_throughput(steps(sizes=(1, 16, 32, 64), batches=batches), {})
    assert "no row synchronises in one node" in message(outer, "sync-unmeasured")
    assert outer.model.beta_r_s == outer.model.beta_n_s > 0
    single = fit_throughput(steps(sizes=(1,), batches=(8, 16, 32, 64)), {})
    assert "no row has several GPUs" in message(single, "sync-unmeasured")
    assert (single.model.alpha_r_s, single.model.alpha_n_s) == (0.0, 0.0)
    few = fit_throughput(steps(sizes=(1, 8, 16, 64), batches=batches), {})
    assert "beta_r_s stays 0" in message(few, "one-size")
    assert few.model.beta_r_s == 0.0


def test_overlap_needs_two_computing_times_at_one_size():
    """With one local batch per size gamma stays 1; with two it is fitted."""
    assert "gamma-fixed" in codes(fit_throughput(steps(batches=(64,)), {}))
    assert "gamma-fixed" not in codes(fit_throughput(steps(), {}))


def test_parameters_that_hardly_matter_are_weak():
    """Where synchronising hides behind computing, noisy rows say little of it: a warning."""
    slow = Parametric(alpha_c_s=1.0, beta_c_s=0.01, alpha_r_s=0.01, alpha_n_s=0.02, gamma=4.0)
    (fit,) = fit_measured(steps(model=slow, noise=0.01), {"gamma": 4.0})
    assert "weak" in codes(fit)
    states = {p.name: p for p in fit.parameters}
    assert states["alpha_c_s"].std_error < 0.1 * states["alpha_c_s"].value


def test_too_few_rows_for_noise_are_said_to_be_too_few():
    """9 noisy rows for 5 parameters fit well and predict badly: a warning with both numbers."""
    table = steps(sizes=(1, 2, 4, 8, 16), batches=(64, 256), noise=0.1)
    few = table.where(np.arange(10) < 9)
    (fit,) = fit_measured(few, {"alpha_n_s": 0.06, "beta_n_s": 4e-4})
    assert "held-out-error" in codes(fit)
    assert fit.errors.ratio > 2.0


@pytest.mark.parametrize(
    ("sizes", "batches", "known", "found", "expected"),
    [
        ((1, 2, 4), (64,), {}, "3 rows for 4 free parameters", "5 rows"),
        ((1,), (64,), {}, "one local batch (64 samples)", "alpha_c_s=0"),
        (SIZES, (64, 128), {"phy": 1.0}, "'phy'", "phi"),
        (SIZES, (64, 128), {"phi": 1.5}, "1.5", "0 to 1"),
        (SIZES, (64, 128), {"gamma": 0.5}, "0.5", "1 to 10"),
        (SIZES, (64, 128), {"alpha_c_s": -1.0}, "-1", "0 or more"),
    ],
)
def test_tables_that_cannot_be_fitted(sizes, batches, known, found, expected):
    """Too few rows, one local batch, impossible values: one line that says what is missing."""
    with pytest.raises(InputError) as error:
        fit_measured(steps(sizes, batches), known)
    assert found in error.value.found
    assert expected in error.value.expected
    assert "\n" not in str(error.value)


def test_one_local_batch_is_enough_if_a_part_is_known():
    """With alpha_c given, beta_c follows from one local batch."""
    table = steps(sizes=(1,), batches=(64,), clocks=(0.5, 0.7, 0.8, 1.0))
    found = fit_throughput(table, {"alpha_c_s": 0.02}).model
    assert found.beta_c_s == pytest.approx(TRUE.beta_c_s, rel=1e-3)
    assert identify(table, {"alpha_c_s": 0.02}).free == ("beta_c_s", "phi")
