"""Memory from the most models that ran: which b and p let exactly these fit.

Papers print k_max rather than GiB. Each printed maximum bounds b and p from both sides,
``m(k) <= M < m(k + 1)``; the point farthest from all bounds is a linear programme.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import linprog

from ronda.instances.base import Floats
from ronda.instances.errors import InputError
from ronda.instances.models.fits import Fit, FitParameter, Residual
from ronda.instances.models.memory import SLICES, most_models
from ronda.instances.profile import Memory, Mode
from ronda.instances.traces.table import positive, read_columns, refuse, rows
from ronda.solvers.fitting.fit import errors_of
from ronda.systems.hfta.fit import MODES

COLUMNS = ("model", "precision", "gpu_type", "memory_gib", "mode", "models")


@dataclass(frozen=True, slots=True)
class Maximum:
    """The most models of an application that ran on a GPU in one mode."""

    application: str
    gpu_type: str
    gpu_gib: float
    mode: Mode
    models: int


def memory_of(
    maxima: Sequence[Maximum], bases: Mapping[str, float] | None = None
) -> dict[str, Memory]:
    """Return the memory of an application by GPU type that explains all its maxima.

    b belongs to a GPU type, unless `bases` has it in GiB; p is one for all GPUs. The seven slices
    of MIG are a limit of the device: they bound b + p from above only.

    Raises
    ------
    InputError
        If no b and p do.
    """
    gpus = list(dict.fromkeys(m.gpu_type for m in maxima))
    found = [_bounds(m, gpus) for m in maxima]
    matrix = np.concatenate([rows for rows, _ in found])
    limits = np.concatenate([limits for _, limits in found])
    cost = np.zeros(len(gpus) + 2)
    cost[-1] = -1.0
    known = bases or {}
    fixed = [(known.get(gpu, 0.0), known.get(gpu, np.inf)) for gpu in gpus]
    best = linprog(cost, A_ub=matrix, b_ub=limits, bounds=[*fixed, (0, np.inf), (0, np.inf)])
    x = [] if best.x is None else best.x.tolist()
    if not best.success or x[-1] <= 0.0:
        raise InputError("maxima", "no memory that explains them all", "maxima that agree")
    return {g: Memory(base_gib=b, model_gib=x[-2]) for g, b in zip(gpus, x, strict=False)}


def _bounds(one: Maximum, gpus: Sequence[str]) -> tuple[Floats, Floats]:
    """Return rows over (b of each GPU, p, distance), and their upper limits, of a maximum."""
    side_by_side, slices = one.mode in ("packed", "turns"), one.mode == "slices"
    room = one.gpu_gib * (SLICES[one.models] / 8 if slices else 1.0)
    rows = np.zeros((1 if slices else 2, len(gpus) + 2))
    for row, models, sign in zip(rows, (one.models, one.models + 1), (1.0, -1.0), strict=False):
        row[gpus.index(one.gpu_type)] = sign * (models if side_by_side else 1)
        row[-2] = sign * (1 if slices else models)
        row[-1] = 1.0
    return rows, room * np.array([1.0, -1.0])[: len(rows)]


def read_maxima(path: str | Path) -> list[Maximum]:
    """Read a CSV table with the columns `COLUMNS`."""
    frame = read_columns(path, {name: (name,) for name in COLUMNS}, kind="maximum")
    for column in ("memory_gib", "models"):
        frame[column] = positive(path, frame, column)
    known = ", ".join(MODES)
    refuse(path, frame, ~frame["mode"].isin(MODES).to_numpy(), "mode", f"one of {known}")
    slices = frame["mode"].map(MODES) == "slices"
    odd = (frame.models % 1 != 0) | (slices & ~frame.models.isin(SLICES))
    refuse(
        path, frame, odd.to_numpy(), "models", f"a whole number, at most {max(SLICES)} of slices"
    )
    return [
        Maximum(f"{r.model}-{r.precision}", r.gpu_type, r.memory_gib, MODES[r.mode], int(r.models))
        for r in rows(frame)
    ]


def fit_maxima(path: str | Path) -> Iterator[Fit]:
    """Yield the memory that explains a table of maxima, one fit an application and GPU.

    The first application has one p on all GPUs. Where others were printed for one mode only, they
    have the same b and a p of their own on each GPU. Errors are those of the maxima that follow.
    """
    maxima = list(enumerate(read_maxima(path)))
    first = maxima[0][1].application
    bases: dict[str, float] = {}
    for name in dict.fromkeys(m.application for _, m in maxima):
        own = [(row, m) for row, m in maxima if m.application == name]
        if name == first:
            memory = memory_of([m for _, m in own])
            bases = {gpu: found.base_gib for gpu, found in memory.items()}
        else:
            memory = {}
            for gpu in dict.fromkeys(m.gpu_type for _, m in own):
                memory |= memory_of([m for _, m in own if m.gpu_type == gpu], bases)
        for gpu, found in memory.items():
            yield _fit(name, gpu, found, [(row, m) for row, m in own if m.gpu_type == gpu])


def _fit(name: str, gpu: str, memory: Memory, maxima: Sequence[tuple[int, Maximum]]) -> Fit:
    """Return the record of one application's memory on one GPU."""
    residuals = tuple(
        Residual(
            row=row + 2,
            at={"models": float(m.models)},
            measured=float(m.models),
            fitted=float(most_models(memory, m.mode, m.gpu_gib)),
        )
        for row, m in maxima
    )
    most = [r.measured for r in residuals]
    return Fit(
        name=f"{name}-{gpu}-memory",
        kind="memory",
        application=name,
        gpu_type=gpu,
        memory=memory,
        measured={"models": (min(most), max(most))},
        errors=errors_of(residuals),
        parameters=(
            FitParameter(name="base_gib", value=memory.base_gib),
            FitParameter(name="model_gib", value=memory.model_gib),
        ),
        residuals=residuals,
    )
