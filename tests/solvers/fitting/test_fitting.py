"""Fitting: known parameters come back, odd rows do not bend them, nothing is fitted silently."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.instances.errors import InputError
from ronda.instances.profile import Parametric
from ronda.solvers.fitting.data import Steps, row_list, take
from ronda.solvers.fitting.identify import inside, plan
from ronda.solvers.fitting.report import folds
from ronda.solvers.fitting.throughput import fit_throughput, predict

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


def steps(sizes=SIZES, batches=(64, 128), clocks=(1.0,), passes=(1,), model=TRUE):
    """Return what a model says for all combinations: nodes of 8, global batches."""
    grid = np.array([(n, b, s, m) for n in sizes for b in batches for s in clocks for m in passes])
    n, batch, clock, m = (column.astype(float) for column in grid.T)
    table = Steps(
        place="steps.csv",
        application="app",
        gpu_type="G",
        row=np.arange(len(grid)) + 2,
        gpus=n,
        nodes=np.ceil(n / 8),
        local_batch=batch / n / m,
        passes=m,
        clock=clock,
        step_s=np.ones(len(grid)),
    )
    return replace(table, step_s=predict(model, table))


def noisy(table, field, size, seed=0):
    """Return a table with relative noise."""
    draw = np.random.default_rng(seed).normal(0.0, size, len(table))
    return replace(table, **{field: getattr(table, field) * np.exp(draw)})


def codes(fit):
    """Return the names of a fit's warnings."""
    return {remark.code for remark in fit.remarks}


def message(fit, code):
    """Return the words of a warning."""
    return next(remark.message for remark in fit.remarks if remark.code == code)


# --- throughput: parameters come back ------------------------------------------------------------


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6))
def test_known_parameters_come_back(seed):
    """Any model within reason is found again from its own predictions, clock share and overlap."""
    rng = np.random.default_rng(seed)
    low = {"alpha_c_s": 0.01, "beta_c_s": 0.001, "alpha_r_s": 0.01, "beta_r_s": 0.001}
    low |= {"alpha_n_s": 0.03, "beta_n_s": 0.0003}
    values = {name: value * rng.uniform(1.0, 4.0) for name, value in low.items()}
    true = Parametric(**values, gamma=rng.uniform(1.3, 4.0), phi=rng.uniform(0.3, 0.9))
    table = steps(batches=(64, 256, 1024), clocks=(0.6, 0.8, 1.0), model=true)
    fit = fit_throughput(table, held_out=False)
    assert fit.errors.largest < 1e-3
    for name in ("beta_c_s", "alpha_n_s", "gamma", "phi"):
        assert getattr(fit.throughput, name) == pytest.approx(getattr(true, name), rel=0.02), name


def test_gradient_passes_are_part_of_the_model():
    """An iteration of m passes computes m times and synchronises once: (m - 1) C + T."""
    table = steps(batches=(512,), passes=(1, 2, 8))
    fit = fit_throughput(table, fixed={"phi": 0.7}, held_out=False)
    assert fit.errors.largest < 1e-3
    assert fit.throughput.alpha_c_s == pytest.approx(TRUE.alpha_c_s, rel=0.02)
    blind = fit_throughput(replace(table, passes=np.ones(len(table))), held_out=False)
    assert blind.errors.mape > 0.1  # the same times make no sense without the passes


def test_measured_synchronisation_tells_the_parts_apart():
    """Without rows on one GPU, computing is known far better if sync_s was measured."""
    table = take(
        steps(batches=(64, 128, 256)), np.flatnonzero(steps(batches=(64, 128, 256)).gpus > 1)
    )
    compute = TRUE.alpha_c_s + TRUE.beta_c_s * table.local_batch
    table = noisy(replace(table, sync_s=table.step_s - compute), "step_s", 0.01)
    spread = {}
    for name, rows in (("with", table), ("without", replace(table, sync_s=None))):
        fit = fit_throughput(rows, fixed={"phi": 1.0}, held_out=False)
        spread[name] = abs(fit.throughput.alpha_c_s / TRUE.alpha_c_s - 1.0)
    assert spread["with"] < 0.1
    assert spread["with"] < 0.5 * spread["without"]


def test_same_seed_same_fit():
    """A fit is a function of table and seed."""
    table = noisy(steps(sizes=(1, 2, 4, 8), batches=(64, 128, 256)), "step_s", 0.02)
    first, again, other = (fit_throughput(table, seed=seed, starts=8) for seed in (3, 3, 4))
    assert first == again
    assert first != other  # another order of what is left out, other last digits


def test_fixed_parameters_stay():
    """What the caller knows is not touched, and the report says so."""
    fit = fit_throughput(steps(), fixed={"phi": 0.4, "gamma": 1.5}, held_out=False)
    assert (fit.throughput.phi, fit.throughput.gamma) == (0.4, 1.5)
    assert {p.name for p in fit.parameters if p.state == "fixed"} == {"phi", "gamma"}
    assert "phi-fixed" not in codes(fit)


# --- throughput: odd rows, errors that are reported ----------------------------------------------


def test_a_wrong_row_does_not_bend_the_fit():
    """One step measured three times too long: named by its row, and the others fit as before."""
    table = noisy(steps(batches=(64, 128, 256)), "step_s", 0.01)
    clean = fit_throughput(table, held_out=False)
    step_s = table.step_s.copy()
    step_s[7] *= 3.0
    fit = fit_throughput(replace(table, step_s=step_s), held_out=False)
    assert "outlier" in codes(fit)
    assert message(fit, "outlier").startswith(f"row {table.row[7]}:")
    others = np.arange(len(table)) != 7
    ratio = predict(fit.throughput, table) / predict(clean.throughput, table)
    assert np.abs(ratio[others] - 1.0).max() < 0.03
    assert "outlier" not in codes(clean)


def test_errors_are_what_the_residuals_say():
    """MAPE, maximum and held-out errors follow from the rows that the report lists."""
    fit = fit_throughput(noisy(steps(), "step_s", 0.03))
    off = [abs(r.fitted / r.measured - 1.0) for r in fit.residuals]
    assert fit.errors.mape == pytest.approx(np.mean(off))
    assert fit.errors.largest == pytest.approx(max(off))
    for inner, mape, rows in (
        (True, fit.errors.held_out_mape, fit.errors.inside_rows),
        (False, fit.errors.edge_mape, fit.errors.edge_rows),
    ):
        out = [abs(r.held_out / r.measured - 1.0) for r in fit.residuals if r.inside is inner]
        assert mape == pytest.approx(np.mean(out))
        assert rows == len(out)


def test_a_held_out_row_has_no_say():
    """The prediction of a left-out row does not change when its measurement does."""
    table = noisy(steps(batches=(64, 128)), "step_s", 0.02)
    step_s = table.step_s.copy()
    step_s[5] *= 1.5
    first = fit_throughput(table).residuals[5]
    second = fit_throughput(replace(table, step_s=step_s)).residuals[5]
    assert second.held_out == pytest.approx(first.held_out, rel=1e-12)
    assert second.fitted != pytest.approx(first.fitted, rel=1e-6)


def test_inside_and_edge():
    """14 rows, 7 sizes by 2 batches: the only two without synchronisation and the least local
    batch (64 / 64 = 1) are edges; 128 / 64 = 2 was measured at 32 GPUs as well.
    """
    table = steps()
    edge = ~inside(table)
    assert sorted(zip(table.gpus[edge], table.local_batch[edge], strict=True)) == [
        (1, 64), (1, 128), (64, 1),
    ]  # fmt: skip


def test_standard_errors_are_those_of_repeated_measurement():
    """Over 30 noisy tables the spread of beta_c is what each fit says of itself, within a half."""
    table = steps(batches=(64, 128, 256), clocks=(1.0,))
    fits = [
        fit_throughput(
            noisy(table, "step_s", 0.01, seed),
            fixed={"phi": 1.0, "gamma": 2.0},
            starts=4,
            held_out=False,
        )
        for seed in range(30)
    ]
    values = [fit.throughput.beta_c_s for fit in fits]
    errors = [next(p.std_error for p in f.parameters if p.name == "beta_c_s") for f in fits]
    assert 0.5 < np.std(values) / np.mean(errors) < 1.5


# --- throughput: what a table cannot tell --------------------------------------------------------


def test_phi_needs_a_second_clock():
    """One clock: phi stays 1 with a warning; two clocks: it is fitted."""
    fit = fit_throughput(steps(), held_out=False)
    assert fit.throughput.phi == 1.0
    assert "the clock never varies" in message(fit, "phi-fixed")
    two = fit_throughput(steps(clocks=(0.7, 1.0)), held_out=False)
    assert "phi-fixed" not in codes(two)
    assert two.throughput.phi == pytest.approx(0.7, rel=0.01)


def test_synchronisation_that_nobody_measured():
    """Across nodes as in a node, in a node as across, not at all, or at one size: each named."""
    inner = fit_throughput(steps(sizes=(1, 2, 4, 8), batches=(64, 128, 256)), held_out=False)
    assert "across-unmeasured" in codes(inner)
    assert inner.throughput.alpha_n_s == inner.throughput.alpha_r_s > 0
    outer = fit_throughput(steps(sizes=(1, 16, 32, 64), batches=(64, 128, 256)), held_out=False)
    assert "in-node-unmeasured" in codes(outer)
    assert outer.throughput.beta_r_s == outer.throughput.beta_n_s > 0
    single = fit_throughput(steps(sizes=(1,), batches=(8, 16, 32, 64)), held_out=False)
    assert "sync-unmeasured" in codes(single)
    assert (single.throughput.alpha_r_s, single.throughput.alpha_n_s) == (0.0, 0.0)
    few = fit_throughput(steps(sizes=(1, 8, 16, 64), batches=(64, 128, 256)), held_out=False)
    assert "one-size-in-node" in codes(few)
    assert few.throughput.beta_r_s == 0.0


def test_overlap_needs_two_computing_times_at_one_size():
    """With one local batch per size gamma stays 1; with two it is fitted."""
    table = steps(batches=(64,))
    assert "gamma-fixed" in codes(fit_throughput(table, held_out=False))
    assert "gamma-fixed" not in codes(fit_throughput(steps(), held_out=False))


def test_parameters_that_hardly_matter_are_weak():
    """Where synchronising hides behind computing, the noisy rows say little about it, and the
    report says that.
    """
    slow = Parametric(alpha_c_s=1.0, beta_c_s=0.01, alpha_r_s=0.01, alpha_n_s=0.02, gamma=4.0)
    fit = fit_throughput(noisy(steps(model=slow), "step_s", 0.01), held_out=False)
    assert "weak" in codes(fit)
    states = {p.name: p for p in fit.parameters}
    assert states["alpha_c_s"].std_error < 0.1 * states["alpha_c_s"].value


def test_too_few_rows_for_noise_are_said_to_be_too_few():
    """8 noisy rows for 7 parameters fit well and predict badly: a warning with both numbers."""
    table = noisy(steps(sizes=(1, 2, 4, 8, 16, 64), batches=(64, 256)), "step_s", 0.1, seed=1)
    fit = fit_throughput(take(table, np.arange(9)), fixed={"alpha_n_s": 0.06, "beta_n_s": 4e-4})
    assert "held-out-error" in codes(fit)
    assert fit.errors.ratio > 2.0


@pytest.mark.parametrize(
    ("table", "fixed", "found", "expected"),
    [
        (steps(sizes=(1, 2, 4), batches=(64,)), {}, "3 rows for 4 free parameters", "5 rows"),
        (steps(sizes=(1,), batches=(64,)), {}, "one local batch (64 samples)", "alpha_c_s=0"),
        (steps(), {"phy": 1.0}, "'phy'", "phi"),
        (steps(), {"phi": 1.5}, "1.5", "0 to 1"),
        (steps(), {"gamma": 0.5}, "0.5", "1 to 10"),
        (steps(), {"alpha_c_s": -1.0}, "-1", "0 or more"),
    ],
)
def test_tables_that_cannot_be_fitted(table, fixed, found, expected):
    """Too few rows, one local batch, impossible values: one line that says what is missing."""
    with pytest.raises(InputError) as error:
        fit_throughput(table, fixed=fixed)
    assert found in error.value.found
    assert expected in error.value.expected
    assert "\n" not in str(error.value)


def test_one_local_batch_is_enough_if_a_part_is_known():
    """With alpha_c given, beta_c follows from one local batch."""
    table = steps(sizes=(1,), batches=(64,), clocks=(0.5, 0.7, 0.8, 1.0))
    fit = fit_throughput(table, fixed={"alpha_c_s": 0.02}, held_out=False)
    assert fit.throughput.beta_c_s == pytest.approx(TRUE.beta_c_s, rel=1e-3)
    assert plan(table, {"alpha_c_s": 0.02}).free == ("beta_c_s", "phi")


# --- helpers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 7, 40, 41, 1000])
def test_folds_leave_out_every_row_once(rows):
    """One by one up to 40 rows, then in ten parts."""
    parts = folds(rows, seed=1)
    assert sorted(np.concatenate(parts).tolist()) == list(range(rows))
    assert len(parts) == (rows if rows <= 40 else 10)


def test_rows_in_words():
    """One, two, and more than fit a line."""
    said = [row_list(np.arange(2, 2 + n)) for n in (1, 2, 8)]
    assert said == ["row 2", "rows 2 and 3", "rows 2, 3, 4, 5, 6 and 3 more"]
