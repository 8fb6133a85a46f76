"""The arrangement of least makespan, GPU time or mean JCT, with a bound."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from lab.fusion.arrays import (
    Arrangement,
    Array,
    FusionCase,
    Objective,
    arrays_of,
    in_order,
)
from lab.fusion.model import build
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError
from ronda.instances.plan import SolutionStatus, StopReason
from ronda.solvers.exact.from_pyomo import solve as solve_model
from ronda.solvers.exact.linear_form import Effort, Outcome


@dataclass(frozen=True, slots=True)
class FusionAnswer:
    """An arrangement (None: none was found in time), its value and a lower bound, in seconds."""

    arrangement: Arrangement | None
    value_s: float | None
    bound_s: float | None
    stop: StopReason
    status: SolutionStatus


def solve(
    case: FusionCase,
    objective: Objective,
    *,
    deadline: Deadline | float | None = None,
    gap: float = 1e-4,
    seed: int = 0,
) -> FusionAnswer:
    """Solve the MILP of `lab.fusion.model` for a batch of repetitive jobs.

    Raises
    ------
    InputError
        If no arrays serve every job exactly once.
    """
    model = build(case, arrays_of(case), objective)
    outcome = solve_model(model, Effort(deadline=Deadline.of(deadline), gap=gap, seed=seed))
    if outcome.stop is StopReason.INFEASIBLE:
        names = ", ".join(batch.name for batch in case.batches)
        raise InputError("batches", f"no arrays that serve all jobs of {names}", "such numbers")
    return _answer(model, outcome, objective)


def _answer(model: Any, outcome: Outcome, objective: Objective) -> FusionAnswer:
    """Read a solved model."""
    if outcome.x is None:
        return FusionAnswer(None, None, outcome.bound, outcome.stop, outcome.status)
    readers = {"gpu-time": _by_type, "makespan": _by_gpu, "mean-jct": _by_flow}
    gpus = readers[objective](model)
    found = Arrangement(model.case, tuple(in_order(gpu) for gpu in gpus))
    value_s = found.value(objective)
    return FusionAnswer(found, value_s, outcome.bound, outcome.stop, outcome.status)


def _by_type(model: Any) -> list[list[Array]]:
    gpus: dict[tuple[str, int], list[Array]] = _gpus(model)
    chosen = [a for i, a in enumerate(model.choices) for _ in range(_number(model.n[i]))]
    for array in sorted(chosen, key=lambda a: -a.time_s):
        own = [key for key in gpus if key[0] == array.gpu_type]
        gpus[min(own, key=lambda key: sum(a.time_s for a in gpus[key]))].append(array)
    return list(gpus.values())


def _by_gpu(model: Any) -> list[list[Array]]:
    gpus = _gpus(model)
    for (i, u), number in model.m.items():
        array = model.choices[i]
        gpus[array.gpu_type, u] += [array] * _number(number)
    return list(gpus.values())


def _by_flow(model: Any) -> list[list[Array]]:
    """Return the arrays along each unit of the flow, from where it begins to no model left."""
    gpus = _gpus(model)
    out: dict[tuple[str, int], list[Array]] = defaultdict(list)
    for (i, r), number in model.f.items():
        array = model.choices[i]
        out[array.gpu_type, r] += [array] * _number(number)
    free = {key: iter([k for k in gpus if k[0] == key]) for key in model.case.gpus}
    for (gpu_type, r), number in model.begin.items():
        for _ in range(_number(number)):
            own, left = gpus[next(free[gpu_type])], r
            while left:
                array = out[gpu_type, left].pop()
                own.append(array)
                left -= array.models
    return list(gpus.values())


def _gpus(model: Any) -> dict[tuple[str, int], list[Array]]:
    """Return the GPUs, as yet without arrays."""
    many = model.case.gpus.items()
    return {(gpu, number): [] for gpu, most in many for number in range(most)}


def _number(variable: Any) -> int:
    return round(variable.value or 0.0)
