"""A round as arrays is its Pyomo model: the same columns, rows and numbers, by their names."""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from odd_rounds import odd_round

from ronda.formulations.allocation.model_data import Fidelity, make_case
from ronda.formulations.allocation.pyomo_model import build_separable
from ronda.formulations.allocation.rows import separable
from ronda.formulations.allocation.separable import normalise
from ronda.formulations.options.build import build
from ronda.instances import generate
from ronda.solvers.exact.from_pyomo import linear_form
from ronda.solvers.exact.linear_form import form_of

LEFT_OUT = "nothing"
"""The variable of Pyomo's rows that have none."""


def by_name(form):
    """Return the columns that are in use, and the rows, by their names."""
    names = [str(each) for each in form.columns]
    numbers = zip(form.cost, form.lower, form.upper, form.integer, strict=True)
    used = np.isin(np.arange(len(names)), form.index) | (form.cost != 0)
    columns = {n: tuple(c) for n, c, u in zip(names, numbers, used, strict=True) if u}
    rows = {}
    for i, row in enumerate(form.rows):
        own = slice(form.start[i], form.start[i + 1])
        terms = zip(form.index[own], form.value[own], strict=True)
        body = {names[k]: v for k, v in terms if names[k] != LEFT_OUT}
        rows[str(row)] = body, form.row_lower[i], form.row_upper[i]
    columns.pop(LEFT_OUT, None)
    return form.maximize, form.offset, columns, rows


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.booleans(), st.booleans(), st.sampled_from(Fidelity))
def test_arrays_are_those_of_the_pyomo_model(seed, odd, own_units, fidelity):
    """Of random rounds with caps, racks and nodes that sleep, in both units and all fidelities."""
    round_ = odd_round(seed) if odd else generate.tiny_round(seed)
    assume(round_ is not None)
    table = build(round_)
    worth = np.random.default_rng(seed).random(len(table)) - 0.1
    problem = separable(make_case(round_, table, worth, fidelity), both_limits=True)
    if own_units:
        problem, _ = normalise(problem)
    jobs = [state.job.id for state in table.jobs]
    model = build_separable(problem, jobs=jobs)
    assert by_name(form_of(problem, jobs)) == by_name(linear_form(model))
