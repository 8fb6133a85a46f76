"""Which arrays run where, as a MILP in Pyomo.

=================  ============================================================================
variable           meaning
=================  ============================================================================
``n[i]``           how many arrays i = (class c, GPU type g, k) run; least GPU time
``m[i,u]``         how many of them on GPU u of the type; least makespan
``end``            when the last array ends
``f[i,r]``         how many of them begin on a GPU with r models to end; least mean JCT
``begin[g,r]``     how many GPUs of a type serve r models in all
=================  ============================================================================

Mean JCT is a flow: a GPU goes from r models to r - k with every array, and each of the r waits for
its seconds, so that d r is its share of the sum of JCTs, exactly (an arc-flow over models left).
Each constraint family is one function, named as the constraint.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import pyomo.environ as pyo

from lab.fusion.arrays import Array, FusionCase, Objective


def build(case: FusionCase, choices: Sequence[Array], objective: Objective) -> Any:
    """Return the model of one objective; its attribute ``choices`` has the arrays."""
    model = pyo.ConcreteModel("fusion")
    model.case, model.choices = case, tuple(choices)
    makers = {"gpu-time": _gpu_time, "makespan": _makespan, "mean-jct": _mean_jct}
    makers[objective](model)
    return model


def _gpu_time(model: Any) -> None:
    """Min Σ d_i n_i: which GPU runs an array does not matter."""
    model.n = pyo.Var(range(len(model.choices)), domain=pyo.NonNegativeIntegers)
    serve(model, model.n.items())
    model.goal = pyo.Objective(expr=sum(a.time_s * model.n[i] for i, a in _each(model)))


def _makespan(model: Any) -> None:
    """Min end."""
    pairs = [(i, u) for i, a in _each(model) for u in range(model.case.gpus[a.gpu_type])]
    model.m = pyo.Var(pairs, domain=pyo.NonNegativeIntegers)
    model.end = pyo.Var(domain=pyo.NonNegativeReals)
    serve(model, ((i, m) for (i, _), m in model.m.items()))
    ends(model)
    alike(model)
    model.goal = pyo.Objective(expr=model.end)


def _mean_jct(model: Any) -> None:
    """Min Σ d_i r f_ir / jobs."""
    jobs = model.case.jobs
    arcs = [(i, r) for i, a in _each(model) for r in range(a.models, jobs + 1)]
    model.f = pyo.Var(arcs, domain=pyo.NonNegativeIntegers)
    starts = [(g, r) for g, n in model.case.gpus.items() if n for r in range(1, jobs + 1)]
    model.begin = pyo.Var(starts, domain=pyo.NonNegativeIntegers)
    serve(model, ((i, f) for (i, _), f in model.f.items()))
    flow(model)
    begin_gpus(model)
    waits = sum(model.choices[i].time_s * r * model.f[i, r] for i, r in arcs)
    model.goal = pyo.Objective(expr=waits / jobs)


# -- constraint families --------------------------------------------------------------------------


def serve(model: Any, numbers: Iterable[tuple[int, Any]]) -> None:
    """Σ_{i of c} k_i n_i = jobs of c, for every class; n is summed over GPUs or states."""
    terms = defaultdict(list)
    for i, number in numbers:
        array = model.choices[i]
        terms[array.batch].append(array.models * number)
    model.serve = pyo.Constraint(
        list(terms), rule=lambda m, c: sum(terms[c]) == m.case.batches[c].jobs
    )


def ends(model: Any) -> None:
    """Σ_i d_i m_iu ≤ end, for every GPU u."""
    loads = _loads(model)
    model.ends = pyo.Constraint(list(loads), rule=lambda m, g, u: loads[g, u] <= m.end)


def alike(model: Any) -> None:
    """Σ_i d_i m_iu ≥ Σ_i d_i m_i(u+1): GPUs of a type are interchangeable."""
    loads = _loads(model)
    pairs = [(g, u) for g, u in loads if (g, u + 1) in loads]
    model.alike = pyo.Constraint(pairs, rule=lambda m, g, u: loads[g, u] >= loads[g, u + 1])


def flow(model: Any) -> None:
    """begin_gr + Σ_i f_i(r + k_i) = Σ_i f_ir, for every type g and r ≥ 1 models left."""
    out, into = defaultdict(list), defaultdict(list)
    for i, r in model.f:
        array = model.choices[i]
        out[array.gpu_type, r].append(model.f[i, r])
        into[array.gpu_type, r - array.models].append(model.f[i, r])
    model.flow = pyo.Constraint(
        list(model.begin),
        rule=lambda m, g, r: m.begin[g, r] + sum(into[g, r]) == sum(out[g, r]),
    )


def begin_gpus(model: Any) -> None:
    """Σ_r begin_gr ≤ GPUs of type g."""
    types = sorted({g for g, _ in model.begin})
    jobs = model.case.jobs
    model.begin_gpus = pyo.Constraint(
        types,
        rule=lambda m, g: sum(m.begin[g, r] for r in range(1, jobs + 1)) <= m.case.gpus[g],
    )


def _loads(model: Any) -> dict[tuple[str, int], Any]:
    """Return the seconds of each GPU as expressions."""
    loads: dict[tuple[str, int], Any] = defaultdict(int)
    for i, u in model.m:
        array = model.choices[i]
        loads[array.gpu_type, u] += array.time_s * model.m[i, u]
    return loads


def _each(model: Any) -> list[tuple[int, Array]]:
    return list(enumerate(model.choices))
