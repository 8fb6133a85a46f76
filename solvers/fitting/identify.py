"""Which throughput parameters a table can tell, and what becomes of the others.

What no table row depends on must not be fitted: it would come out as the start of the search. It
is fixed, with a named warning, or refused where there is no sensible value.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ronda.instances.arrays import Floats, Mask
from ronda.instances.errors import InputError
from ronda.instances.fit import FitRemark
from ronda.solvers.fitting.data import Steps

NAMES = (
    "alpha_c_s",
    "beta_c_s",
    "alpha_r_s",
    "beta_r_s",
    "alpha_n_s",
    "beta_n_s",
    "gamma",
    "phi",
)
"""Parameters of `ronda.instances.profile.Parametric`."""

GAMMA = (1.0, 10.0)
"""Range of the overlap, as Pollux has it (goodput.py of its artifact)."""

_RANGES = {"gamma": GAMMA, "phi": (0.0, 1.0)}


@dataclass(frozen=True, slots=True)
class Plan:
    """What to fit.

    Attributes
    ----------
    free
        Parameters to fit.
    fixed
        Values of others.
    copied
        Parameters that take the fitted value of another one.
    remarks
        Why, for those that were not fixed by the caller.
    """

    free: tuple[str, ...]
    fixed: dict[str, float]
    copied: dict[str, str]
    remarks: tuple[FitRemark, ...]


def plan(steps: Steps, fixed: Mapping[str, float]) -> Plan:
    """Return what can be fitted to a table.

    Parameters
    ----------
    steps
        The table.
    fixed
        Values that the caller knows.

    Raises
    ------
    InputError
        If a value is impossible, all local batches are the same, or there are too few rows.
    """
    known = _checked(fixed)
    remarks: list[FitRemark] = []
    copied: dict[str, str] = {}
    _plan_compute(steps, known)
    _plan_sync(steps, known, copied, remarks)
    _plan_overlap(steps, known, copied, remarks)
    if "phi" not in known and len(np.unique(steps.clock)) < 2:
        known["phi"] = 1.0
        remarks.append(
            FitRemark(
                code="phi-fixed",
                message=f"the clock never varies ({steps.clock[0]:g} in all rows), so phi stays 1: "
                "all of the computation is taken to slow down with the clock; "
                "measure a second clock, or --fix phi=VALUE",
            )
        )
    free = tuple(name for name in NAMES if name not in known and name not in copied)
    if len(steps) <= len(free):
        raise InputError(
            f"{steps.place}, {steps.application} on {steps.gpu_type}",
            f"{len(steps)} rows for {len(free)} free parameters ({', '.join(free)})",
            f"at least {len(free) + 1} rows, or --fix NAME=VALUE for what is known",
        )
    return Plan(free, known, copied, tuple(remarks))


def _checked(fixed: Mapping[str, float]) -> dict[str, float]:
    """Return the caller's values, or refuse them."""
    for name, value in fixed.items():
        if name not in NAMES:
            raise InputError("--fix", repr(name), f"one of {', '.join(NAMES)}")
        low, high = _RANGES.get(name, (0.0, np.inf))
        if not low <= value <= high:
            limits = "0 or more" if high == np.inf else f"{low:g} to {high:g}"
            raise InputError(f"--fix {name}", f"{value:g}", limits)
    return dict(fixed)


def _plan_compute(steps: Steps, known: Mapping[str, float]) -> None:
    """Refuse a table that cannot tell computing per pass from computing per sample."""
    batches = np.unique(steps.local_batch)
    if len(batches) < 2 and not {"alpha_c_s", "beta_c_s"} & known.keys():
        raise InputError(
            f"{steps.place}, {steps.application} on {steps.gpu_type}",
            f"one local batch ({batches[0]:g} samples) in all rows",
            "two or more, which tell alpha_c_s from beta_c_s, or --fix alpha_c_s=0",
        )


def _plan_sync(
    steps: Steps, known: dict[str, float], copied: dict[str, str], remarks: list[FitRemark]
) -> None:
    """Fix what no row says about synchronisation within a node and across nodes."""
    kinds = (
        ("r", "in one node", "in-node", steps.in_node),
        ("n", "across nodes", "across", steps.across),
    )
    if not (steps.gpus > 1).any():
        zeros = {f"{x}_{k}_s": 0.0 for k in "rn" for x in ("alpha", "beta")}
        known.update({name: value for name, value in zeros.items() if name not in known})
        message = "no row has more than one GPU, so synchronisation takes no time: "
        message += "the model says nothing about more GPUs"
        remarks.append(FitRemark(code="sync-unmeasured", message=message))
        return
    for kind, where, code, rows in kinds:
        alpha, beta = f"alpha_{kind}_s", f"beta_{kind}_s"
        sizes = np.unique(steps.gpus[rows])
        if not len(sizes) and not {alpha, beta} <= known.keys():
            other, there = ("n", "across nodes") if kind == "r" else ("r", "in one node")
            pairs = {alpha: f"alpha_{other}_s", beta: f"beta_{other}_s"}
            copied |= {name: source for name, source in pairs.items() if name not in known}
            message = f"no row synchronises {where}; taken to be as {there}"
            remarks.append(FitRemark(code=f"{code}-unmeasured", message=message))
        elif len(sizes) == 1 and not {alpha, beta} & known.keys():
            known[beta] = 0.0
            message = f"all rows {where} have {sizes[0]:g} GPUs, so {beta} stays 0: "
            message += "synchronisation is taken not to grow with GPUs"
            remarks.append(FitRemark(code=f"one-size-{code}", message=message))


def _plan_overlap(
    steps: Steps, known: dict[str, float], copied: Mapping[str, str], remarks: list[FitRemark]
) -> None:
    """Fix the overlap unless some GPUs and nodes were measured with two computing times.

    One row more than synchronisation has parameters is needed as well: T_sync alone can explain
    as many different rows as it has parameters.
    """
    many = steps.gpus > 1
    if "gamma" in known:
        return
    where = np.stack([steps.gpus, steps.nodes], axis=1)[many]
    work = np.stack([steps.gpus, steps.nodes, steps.local_batch, steps.clock], axis=1)[many]
    different = len(np.unique(work, axis=0)) if many.any() else 0
    places = len(np.unique(where, axis=0)) if many.any() else 0
    sync = sum(
        name not in known and name not in copied for name in NAMES if "_r_" in name or "_n_" in name
    )
    if different > places and different > sync:
        return
    known["gamma"] = 1.0
    if many.any():
        message = "too few rows with several GPUs tell how far synchronisation overlaps with "
        message += "computing, so gamma stays 1: none"
        remarks.append(FitRemark(code="gamma-fixed", message=message))


def inside(steps: Steps) -> Mask:
    """Return (R,) which rows the others surround: without them the same ranges are covered.

    The ranges are those of GPUs, local batch and clock, and whether two local batches were
    measured without synchronisation, two sizes in one node and two across nodes.
    """
    edge = np.zeros(len(steps), dtype=bool)
    everywhere = np.ones(len(steps), dtype=bool)
    for values in (steps.gpus, steps.local_batch, steps.clock):
        end = (values == values.min()) | (values == values.max())
        edge |= end & _sole(values, everywhere)[0]
    for values, rows in (
        (steps.local_batch, steps.single),
        (steps.gpus, steps.in_node),
        (steps.gpus, steps.across),
    ):
        sole, different = _sole(values, rows)
        if different <= 2:
            edge |= sole
    return np.asarray(~edge)


def _sole(values: Floats, rows: Mask) -> tuple[Mask, int]:
    """Return (R,) which of some rows have a value of their own, and how many values there are."""
    found, at, counts = np.unique(values[rows], return_inverse=True, return_counts=True)
    sole = np.zeros(len(values), dtype=bool)
    sole[rows] = counts[at] == 1
    return sole, len(found)
