"""The optimum of the allocation model: found by other methods too, symmetric, monotone, bounded."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from every_choice import best_choice, rows_by_job
from ronda.formulations.allocation.model_data import make_case
from ronda.formulations.allocation.pyomo_model import build, chosen_rows
from ronda.formulations.allocation.rows import separable, within
from ronda.formulations.options.build import build as build_options
from ronda.instances.generate import round as generated
from ronda.instances.generate import tiny_round
from ronda.solvers.decision.by_milp import point_of
from ronda.solvers.exact.from_pyomo import solve
from ronda.solvers.exact.linear_form import Effort, form_of
from ronda.solvers.prices.dual import Jobs
from ronda.solvers.prices.engine import first_answer


def random_values(table, seed):
    """Return values of every sign; equal ones occur."""
    rng = np.random.default_rng([seed, 99])
    drawn = np.round(rng.lognormal(0, 1, len(table)), 3)
    return np.where(rng.random(len(table)) < 0.1, -drawn, drawn)


def dynamic_programme(table, worth):
    """Return the best value where only GPUs are limited: job by job, by GPUs used in each pool."""
    states = {(0,) * len(table.pools): 0.0}
    for choices in rows_by_job(table):
        after = {}
        for used, value in states.items():
            for k in choices:
                new, gain = list(used), 0.0
                if k >= 0:
                    new[table.pool[k]] += int(table.gpus[k])
                    gain = worth[k]
                    if new[table.pool[k]] > table.pools[table.pool[k]].gpus:
                        continue
                after[tuple(new)] = max(after.get(tuple(new), -np.inf), value + gain)
        states = after
    return max(states.values())


@pytest.mark.parametrize("block", range(10))
def test_milp_equals_brute_force_and_dynamic_programming(block):
    """On 200 random tiny rounds the MILP's optimum is that of two independent methods, to 1e-9."""
    separable = 0
    for seed in range(20 * block, 20 * block + 20):
        round_ = tiny_round(seed)
        table = build_options(round_)
        worth = random_values(table, seed)
        model = build(round_, table, worth)
        outcome = solve(model, Effort(gap=0))
        rows = chosen_rows(model)
        found = float(worth[rows[rows >= 0]].sum())
        expected = best_choice(round_, table, worth)
        assert outcome.x is not None
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9), seed
        if round_.watts is None:
            separable += 1
            assert found == pytest.approx(dynamic_programme(table, worth), rel=1e-9, abs=1e-9)
    assert separable > 0


def test_options_that_cannot_matter_get_no_variable():
    """Worthless options, and those that another one of the job beats, are left out."""
    round_ = tiny_round(3)
    table = build_options(round_)
    worth = np.where(np.arange(len(table)) % 2 == 0, -1.0, 1.0)
    worth[table.must_run[table.job]] = -5.0
    rows = make_case(round_, table, worth).rows
    must = table.must_run[table.job]
    assert (worth[rows[~must[rows]]] > 0).all()
    assert set(np.flatnonzero(must)) <= set(rows)


def test_slow_options_are_compared_where_values_mind_watts():
    """Without limits one option is left of each number of GPUs; plain tables have no slow ones."""
    free = {"power_cap_w": None, "energy_j": None, "running": ()}
    round_ = msgspec.structs.replace(generated(40, seed=1), **free)
    for mind in (None, True):
        table = build_options(round_, mind_power=mind)
        kept = make_case(round_, table, table.rate / table.power_w).rows
        sizes = {(table.job[k], table.pool[k], table.gpus[k]) for k in kept}
        assert len(kept) == len(sizes)
        assert (len(table) > len(kept)) == bool(mind)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.randoms(use_true_random=False))
def test_the_order_of_jobs_changes_nothing(seed, random):
    """Permuting the waiting jobs leaves the optimum where it is."""
    round_ = tiny_round(seed)
    table = build_options(round_)
    worth = dict(zip(_keys(table), random_values(table, seed), strict=True))
    waiting = list(round_.waiting)
    random.shuffle(waiting)
    other = msgspec.structs.replace(round_, waiting=tuple(waiting))
    mixed = build_options(other)
    values = [np.array([worth[k] for k in _keys(t)]) for t in (table, mixed)]
    found = [
        solve(build(r, t, v), Effort(gap=0)).objective
        for r, t, v in zip((round_, other), (table, mixed), values, strict=True)
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-9, abs=1e-9)


def _keys(table):
    """Return what identifies each row, whatever the order of jobs."""
    columns = (table.pool, table.gpus, table.span, table.clock, table.batch)
    ids = [table.jobs[j].job.id for j in table.job]
    return list(zip(ids, *(c.tolist() for c in columns), strict=True))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.floats(1.0, 2.0))
def test_more_of_a_resource_never_hurts(seed, factor):
    """Raising the limits never lowers the optimum."""
    round_ = tiny_round(seed)
    table = build_options(round_)
    worth = random_values(table, seed)
    more = msgspec.structs.replace(
        round_,
        power_cap_w=None if round_.power_cap_w is None else factor * round_.power_cap_w,
        energy_j=None if round_.energy_j is None else factor * round_.energy_j,
    )
    objectives = []
    for r in (round_, more):
        model = build(r, table, worth)
        solve(model, Effort(gap=0))
        rows = chosen_rows(model)
        objectives.append(worth[rows[rows >= 0]].sum())
    assert objectives[1] >= objectives[0] - 1e-9


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_losses_bound_every_plan(seed):
    """No combination of options is worth more than the bound less the losses of its options."""
    round_ = tiny_round(seed)
    table = build_options(round_)
    worth = random_values(table, seed)
    case = make_case(round_, table, worth)
    problem = separable(case)
    answer = first_answer(problem)
    losses = np.full(len(table), np.inf)
    losses[case.rows] = Jobs(problem).option_losses(answer.dual.prices)
    model = build(round_, table, worth)
    assert solve(model, Effort(gap=0)).x is not None
    rows = chosen_rows(model)
    rows = rows[rows >= 0]
    bound = answer.dual.bound
    assert worth[rows].sum() <= bound - losses[rows].sum() + 1e-9 * abs(bound)


def test_a_point_is_read_back_and_feasible():
    """A choice as a point of the problem comes out again, and meets every constraint."""
    for seed in range(30):
        round_ = tiny_round(seed)
        table = build_options(round_)
        worth = np.ones(len(table))
        current = np.full(len(table.jobs), -1)
        current[table.job[table.current]] = np.flatnonzero(table.current)
        case = make_case(round_, table, worth)
        known = np.isin(current, case.rows)
        if not within(case, current) or not known[current >= 0].all():
            continue
        problem, x = separable(case, both_limits=True), point_of(case, current)
        chosen, _ = problem.answer(x)
        assert np.where(chosen >= 0, case.rows[chosen], -1).tolist() == current.tolist()
        form = form_of(problem)
        lhs = np.add.reduceat(np.append(form.value * x[form.index], 0.0), form.start[:-1])
        assert (lhs <= form.row_upper + 1e-9).all()
        assert (lhs >= form.row_lower - 1e-9).all()
