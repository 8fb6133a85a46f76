"""The fit of the throughput model of Pollux, with a clock share, to measured iterations.

The model is that of `ronda.instances.models.throughput`, ``T = m C + X``. The logarithms of T are
fitted. Where synchronisation was measured, those of C are fitted as well, which separates both
parts. Pollux fits the same two quantities (Qiao et al., OSDI 2021, and goodput.py in its artifact).

A parameter on which no row depends must not be fitted, as it would stay at the start of the search.
It is held at a value, with a named warning, or refused if there is no sensible value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from ronda.instances.base import Floats
from ronda.instances.models.fits import FitRemark
from ronda.instances.models.throughput import phases
from ronda.instances.profile import Parametric
from ronda.solvers.fitting.least_squares import (
    Fitted,
    check_known,
    log_ratio,
    parameters_of,
    search,
)
from ronda.solvers.fitting.measurements import Measurements

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
"""The bounds of the parameters of `ronda.instances.profile.Parametric`; gamma's are from Pollux."""

PLACES = {"r": "in one node", "n": "across nodes"}
"""The places where GPUs synchronise, keyed by the letter in their parameters."""


@dataclass(slots=True)
class Scheme:
    """The parameters to fit: all except those `held` at a value or `copied` from another."""

    held: dict[str, float]
    copied: dict[str, str] = field(default_factory=dict)
    remarks: list[FitRemark] = field(default_factory=list)

    @property
    def free(self) -> tuple[str, ...]:
        """The parameters to fit."""
        return tuple(n for n in BOUNDS if n not in self.held and n not in self.copied)

    def warn(self, code: str, message: str) -> None:
        """Add a named warning."""
        self.remarks.append(FitRemark(code=code, message=message))


def identify(table: Measurements, known: Mapping[str, float]) -> Scheme:
    """Return the parameters that measured iterations and known values determine.

    Raises InputError for impossible values, for a single local batch in all rows, and for too few
    rows.
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


def _synchronisation(table: Measurements, scheme: Scheme) -> None:
    """Hold or copy the parameters of synchronisation that no row determines."""
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

    Otherwise T_sync alone could explain the rows. There must also be more different rows than
    parameters of synchronisation.
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


Rows = Mapping[str, Floats] | pd.DataFrame
"""The columns of measured iterations."""

_LINEAR = tuple(BOUNDS)[:6]


def fit_throughput(table: Measurements, known: Mapping[str, float]) -> Fitted[Parametric]:
    """Fit a `Parametric` to measured iterations; known parameters are not fitted.

    Raises InputError for too few rows or too few different rows.
    """
    scheme = identify(table, known)
    rows = {str(name): own.to_numpy(float) for name, own in table.rows.items()}

    def residuals(x: Floats) -> Floats:
        model = _model(x, scheme)
        compute, exposed = _phases(model, rows)
        whole = log_ratio(rows["passes"] * compute + exposed, rows["step_s"])
        if "sync_s" not in rows:
            return whole
        alone = (rows["step_s"] - rows["sync_s"]) / rows["passes"]
        return np.concatenate([whole, log_ratio(compute, alone)])

    lower, upper = np.array(list(BOUNDS.values())).T
    free = np.isin(list(BOUNDS), scheme.free)
    found = search(residuals, _starts(rows, scheme), lower, upper, free)
    model = _model(found.x, scheme)
    errors = dict(zip(BOUNDS, np.sqrt(np.diag(found.covariance)).tolist(), strict=True))
    held = {*scheme.held, *scheme.copied}
    return Fitted(model, parameters_of(model, errors, held), tuple(scheme.remarks))


def seconds(model: Parametric, rows: Rows) -> Floats:
    """Return the seconds per whole iteration."""
    compute, exposed = _phases(model, rows)
    return np.asarray(rows["passes"] * compute + exposed)


def _phases(model: Parametric, rows: Rows) -> tuple[Floats, Floats]:
    """Return the seconds of computing per pass, and of synchronisation that does not overlap."""
    return phases(model, rows["gpus"], rows["nodes"], rows["local_batch"], rows["clock"])


def _model(x: Floats, scheme: Scheme) -> Parametric:
    values = dict(zip(BOUNDS, x.tolist(), strict=True))
    return Parametric(**values | {name: values[other] for name, other in scheme.copied.items()})


def _starts(rows: Rows, scheme: Scheme) -> list[Floats]:
    """Return start points (8,); without overlap T is linear in six parameters, which NNLS finds.

    Relative errors are minimised, as in the search.
    """
    values = {**dict.fromkeys(BOUNDS, 0.0), "gamma": 1.0, "phi": 0.7, **scheme.held}
    linear = [name for name in _LINEAR if name in scheme.free]
    if linear:
        zero = {**dict.fromkeys(_LINEAR, 0.0), "gamma": 1.0, "phi": values["phi"]}
        shares = [
            seconds(Parametric(**zero | dict.fromkeys(_alike(name, scheme), 1.0)), rows)
            / rows["step_s"]
            for name in linear
        ]
        rest = 1.0 - seconds(Parametric(**values | {"gamma": 1.0}), rows) / rows["step_s"]
        factors, _ = nnls(np.column_stack(shares), rest)
        for name, share, factor in zip(linear, shares, factors, strict=True):
            # A start on a bound may stay there, so each begins at a fiftieth of a step or more.
            values[name] = max(float(factor), 0.02 / max(float(share.max()), 1e-300))
    gammas = (1.1, 2.0, 4.0) if "gamma" in scheme.free else (values["gamma"],)
    return [np.array(list((values | {"gamma": gamma}).values())) for gamma in gammas]


def _alike(name: str, scheme: Scheme) -> list[str]:
    return [name, *(copy for copy, source in scheme.copied.items() if source == name)]
