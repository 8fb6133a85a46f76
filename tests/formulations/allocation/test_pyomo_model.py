"""A separable problem as a Pyomo model: names of its rows, blocks."""

import numpy as np
import pytest
from msgspec.structs import replace

from ronda.formulations.allocation.model_data import make_case
from ronda.formulations.allocation.pyomo_model import answer, build, build_separable
from ronda.formulations.allocation.resource_use import Uses
from ronda.formulations.allocation.separable import Separable
from ronda.formulations.options.build import build as build_options
from ronda.instances import generate
from ronda.solvers.exact.from_pyomo import solve
from ronda.solvers.exact.linear_form import Effort


def problem_of(jobs, capacity, *, must=None, blocks=(), names=None):
    """Return a problem; jobs are lists of (value, uses), blocks are (value, uses, n, whole)."""
    options = [option for job in jobs for option in job]
    resources = len(capacity)
    return Separable(
        start=np.cumsum([0] + [len(job) for job in jobs]),
        value=np.array([value for value, _ in options], dtype=float),
        use=Uses.of(np.array([use for _, use in options], dtype=float).reshape(-1, resources).T),
        capacity=np.array(capacity, dtype=float),
        names=names or tuple(f"r{i}" for i in range(resources)),
        must=np.array(must or [False] * len(jobs)),
        block_value=np.array([b[0] for b in blocks], dtype=float),
        block_use=np.array([b[1] for b in blocks], dtype=float).reshape(-1, resources).T.copy(),
        block_count=np.array([b[2] for b in blocks], dtype=float),
        block_integer=np.array([b[3] for b in blocks], dtype=bool),
    )


def test_every_row_has_its_name():
    """Resources are constraints of their own names; a job with one option needs no row."""
    names = ("gpus[a/V100]", "gpus[a/V100,r0]", "power_cap")
    jobs = [[(1, (2, 0, 30))], [], [(3, (4, 4, 50)), (2, (1, 1, 20))]]
    model = build_separable(problem_of(jobs, (5, 6, 60), names=names))
    assert [row.name for row in model.rows] == list(names)
    assert list(model.one_option) == [2]
    assert model.one_option[2].lower is None
    assert model.gpus["a/V100", "r0"].upper == 6
    assert model.power_cap.upper == 60


def test_blocks_provide_and_jobs_wait():
    """Two jobs of 3 GPUs, one there; blocks of 2 GPUs cost 0.4, at most 2 of them.

    One job lacks 2 GPUs, exactly one block, whether in part or whole: 1 - 0.4 = 0.6. Both jobs
    lack 5, more than two blocks.
    """
    jobs = [[(1, (3,))], [(1, (3,))]]
    for whole in (True, False):
        problem = problem_of(jobs, (1,), blocks=[(-0.4, (-2,), 2, whole)])
        model = build_separable(problem)
        assert solve(model, Effort(gap=1e-9)).objective == pytest.approx(0.6)
        chosen, blocks = answer(model)
        assert (chosen >= 0).sum() == 1
        assert blocks.tolist() == pytest.approx([1.0])


def test_block_in_part_costs_its_part():
    """One job of 2 GPUs, one there, blocks of 2 for 0.4: half a block for 0.2, a whole for 0.4."""
    for whole, worth in ((True, 0.6), (False, 0.8)):
        problem = problem_of([[(1, (2,))]], (1,), blocks=[(-0.4, (-2,), 2, whole)])
        assert solve(build_separable(problem), Effort(gap=1e-9)).objective == pytest.approx(worth)


@pytest.mark.parametrize(("capacity", "stop"), [(1, "complete"), (-1, "infeasible")])
def test_without_any_option_the_rows_still_stand(capacity, stop):
    """Nothing to decide: worth 0, or infeasible if something must be used."""
    assert solve(build_separable(problem_of([[]], (capacity,)))).stop == stop


def test_names_of_different_length_stand_side_by_side():
    """What runs may span a cluster where its like is on a node: longer names."""
    round_ = generate.tiny_round(1)
    state = next(s for s in round_.running if s.job.preemptible)
    held = state.allocation
    held = replace(held, option=replace(held.option, span="cluster", rate=1.0))
    states = (s if s is not state else replace(s, allocation=held) for s in round_.running)
    round_ = replace(round_, running=tuple(states))
    table = build_options(round_)
    model = build(round_, table, np.maximum(table.rate, 1e-3))
    assert {len(name) for name in model.x} == {5, 6}
    assert len(model.x) == len(make_case(round_, table, np.maximum(table.rate, 1e-3)).rows)
