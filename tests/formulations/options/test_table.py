"""Rows of what runs now, and of an earlier plan."""

import msgspec
import numpy as np

from ronda.formulations.options.build import build
from ronda.formulations.options.table import rows_of, running_rows
from ronda.instances import generate
from ronda.solvers.contract import Deadline
from ronda.solvers.policies.optimising.genetic import Genetic


def test_running_rows_are_the_current_ones():
    """Running jobs have the row that they run on, waiting ones none."""
    round_ = generate.round(jobs=24, seed=1)
    table = build(round_)
    rows = running_rows(table)
    runs = np.array([state.allocation is not None for state in table.jobs])
    assert ((rows >= 0) == runs).all()
    assert table.current[rows[runs]].all()
    assert (table.job[rows[runs]] == np.flatnonzero(runs)).all()


def test_rows_of_a_plan_are_its_options():
    """Each job of the plan gets the row of its option; options that are gone get none."""
    round_ = generate.round(jobs=24, severity="tight", seed=1)
    table = build(round_)
    plan = Genetic(generations=2).plan(round_, deadline=Deadline(), seed=0)
    rows = rows_of(table, plan)
    for j, state in enumerate(table.jobs):
        held = plan.allocations.get(state.job.id)
        assert (rows[j] >= 0) == (held is not None)
        if held is not None:
            k = rows[j]
            assert (table.gpus[k], table.clock[k]) == (held.option.gpus, held.option.clock)
            assert table.batch[k] == held.option.batch
    gone = {
        job: msgspec.structs.replace(
            a, option=msgspec.structs.replace(a.option, clock=0.123, rate=9.0)
        )
        for job, a in plan.allocations.items()
    }
    assert (rows_of(table, msgspec.structs.replace(plan, allocations=gone)) == -1).all()


def test_jobs_that_must_run_keep_their_row():
    """Even a plan that stops them leads to the row that they run on."""
    for seed in range(60):
        round_ = generate.tiny_round(seed)
        table = build(round_)
        empty = Genetic().plan(round_, deadline=Deadline(), seed=0)
        empty = msgspec.structs.replace(empty, allocations={})
        rows = rows_of(table, empty)
        assert ((rows >= 0) == table.must_run).all()
