"""Which throughput parameters a table can tell, and what becomes of the others.

A parameter on which no row depends must not be fitted: it would come out as the start of the
search. It is held at a value, with a named warning, or refused where there is no sensible one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ronda.instances.errors import InputError
from ronda.instances.learnt import FitRemark
from ronda.solvers.fitting.data import Measurements

BOUNDS = {
    "alpha_c_s": (0.0, np.inf),
    "beta_c_s": (0.0, np.inf),
    "alpha_r_s": (0.0, np.inf),
    "beta_r_s": (0.0, np.inf),
    "alpha_n_s": (0.0, np.inf),
    "beta_n_s": (0.0, np.inf),
    "gamma": (1.0, 10.0),
    "phi": (0.0, 1.0),
}
"""Parameters of `ronda.instances.profile.Parametric`; gamma as in Pollux (its goodput.py)."""

PLACES = {"r": "in one node", "n": "across nodes"}
"""Where GPUs synchronise, by the letter that their parameters have."""


@dataclass(slots=True)
class Scheme:
    """What to fit: all parameters but those `held` at a value or `copied` from another one."""

    held: dict[str, float]
    copied: dict[str, str] = field(default_factory=dict)
    remarks: list[FitRemark] = field(default_factory=list)

    @property
    def free(self) -> tuple[str, ...]:
        """Parameters to fit."""
        return tuple(n for n in BOUNDS if n not in self.held and n not in self.copied)

    def warn(self, code: str, message: str) -> None:
        """Add a named warning."""
        self.remarks.append(FitRemark(code=code, message=message))


def identify(table: Measurements, known: Mapping[str, float]) -> Scheme:
    """Return what can be fitted to measured iterations beside the known values.

    Refused are impossible values, one local batch in all rows, and too few rows.
    """
    check_known(known, BOUNDS)
    scheme = Scheme(dict(known))
    rows = table.rows
    if rows.local_batch.nunique() < 2 and not {"alpha_c_s", "beta_c_s"} & known.keys():
        raise table.refused(
            f"one local batch ({rows.local_batch.iloc[0]:g} samples) in all rows",
            "two or more, which tell alpha_c_s from beta_c_s, or --fix alpha_c_s=0",
        )
    _synchronisation(table, scheme)
    _overlap(table, scheme)
    if "phi" not in known and rows.clock.nunique() < 2:
        scheme.held["phi"] = 1.0
        scheme.warn(
            "phi-fixed",
            f"the clock never varies ({rows.clock.iloc[0]:g} in all rows), so phi stays 1: all "
            "computing is taken to slow down with it; measure a second clock, or --fix phi=VALUE",
        )
    free = scheme.free
    if len(rows) <= len(free):
        raise table.refused(
            f"{len(rows)} rows for {len(free)} free parameters ({', '.join(free)})",
            f"at least {len(free) + 1} rows, or --fix NAME=VALUE for what is known",
        )
    return scheme


def check_known(known: Mapping[str, float], bounds: Mapping[str, tuple[float, float]]) -> None:
    """Refuse a value that the caller gives for a parameter if it is impossible."""
    for name, value in known.items():
        if name not in bounds:
            raise InputError("--fix", repr(name), f"one of {', '.join(bounds)}")
        low, high = bounds[name]
        if not low <= value <= high:
            limits = f"{low:g} or more" if high == np.inf else f"{low:g} to {high:g}"
            raise InputError(f"--fix {name}", f"{value:g}", limits)


def _synchronisation(table: Measurements, scheme: Scheme) -> None:
    """Hold or copy what no row says about synchronisation within a node and across nodes."""
    many = table.rows[table.rows.gpus > 1]
    sizes = {
        "r": many.gpus[many.nodes == 1].unique(),
        "n": many.gpus[many.nodes > 1].unique(),
    }
    if many.empty:
        silent = {f"{x}_{k}_s": 0.0 for x in ("alpha", "beta") for k in PLACES}
        scheme.held = silent | scheme.held
        message = "no row has several GPUs: the model says nothing about synchronisation"
        scheme.warn("sync-unmeasured", message)
        return
    for kind, other in (("r", "n"), ("n", "r")):
        alpha, beta = f"alpha_{kind}_s", f"beta_{kind}_s"
        unknown = [name for name in (alpha, beta) if name not in scheme.held]
        if not len(sizes[kind]) and unknown:
            scheme.copied |= {name: name.replace(f"_{kind}_", f"_{other}_") for name in unknown}
            message = f"no row synchronises {PLACES[kind]}; taken to be as {PLACES[other]}"
            scheme.warn("sync-unmeasured", message)
        elif len(sizes[kind]) == 1 and len(unknown) == 2:
            scheme.held[beta] = 0.0
            message = f"all rows {PLACES[kind]} have {sizes[kind][0]:g} GPUs, so {beta} stays 0"
            scheme.warn("one-size", message)


def _overlap(table: Measurements, scheme: Scheme) -> None:
    """Hold gamma unless some GPUs and nodes were measured with two computing times.

    There must also be more different rows than synchronisation has parameters: T_sync alone can
    explain as many.
    """
    if "gamma" in scheme.held:
        return
    many = table.rows[table.rows.gpus > 1]
    places = len(many[["gpus", "nodes"]].drop_duplicates())
    different = len(many[["gpus", "nodes", "local_batch", "clock"]].drop_duplicates())
    sync = sum("_r_" in name or "_n_" in name for name in scheme.free)
    if different > max(places, sync):
        return
    scheme.held["gamma"] = 1.0
    if places:
        scheme.warn(
            "gamma-fixed",
            "too few rows with several GPUs tell how far synchronisation overlaps with computing, "
            "so gamma stays 1: none",
        )
