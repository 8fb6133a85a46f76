"""Fit the throughput model of Pollux, with a clock share, to measured iterations.

The model is that of `ronda.formulations.models.throughput`: ``T = m C + X``. Fitted are the
logarithms of T and, where synchronisation was measured, of C as well, which tells both parts apart
(Pollux fits the same two quantities; Qiao et al., OSDI 2021, and goodput.py of its artifact).
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from ronda.formulations.models.throughput import phases
from ronda.instances.arrays import Floats
from ronda.instances.profile import Parametric
from ronda.solvers.fitting.data import Measurements
from ronda.solvers.fitting.identify import BOUNDS, Scheme, identify
from ronda.solvers.fitting.search import Fitted, log_ratio, parameters_of, search

GAMMAS = (1.1, 2.0, 4.0)
"""Overlaps to start from; the linear parameters of each start are those of no overlap."""

Rows = Mapping[str, Floats] | pd.DataFrame
"""Columns of measured iterations."""

_LINEAR = tuple(BOUNDS)[:6]
_START_PHI = 0.7
# A start on a bound may stay there: each linear parameter starts with this share of a step.
_LEAST = 0.02


def fit_throughput(table: Measurements, known: Mapping[str, float]) -> Fitted[Parametric]:
    """Fit a `Parametric` to measured iterations; known parameters are not fitted.

    Too few rows, or too few different ones, are refused.
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
    """Return the seconds of whole iterations."""
    compute, exposed = _phases(model, rows)
    return np.asarray(rows["passes"] * compute + exposed)


def _phases(model: Parametric, rows: Rows) -> tuple[Floats, Floats]:
    """Return seconds of computing in a pass, and of synchronisation that does not overlap."""
    return phases(model, rows["gpus"], rows["nodes"], rows["local_batch"], rows["clock"])


def _model(x: Floats, scheme: Scheme) -> Parametric:
    """Return the model of (8,) parameters, copies in place."""
    values = dict(zip(BOUNDS, x.tolist(), strict=True))
    return Parametric(**values | {name: values[other] for name, other in scheme.copied.items()})


def _starts(rows: Rows, scheme: Scheme) -> list[Floats]:
    """Return (8,) starts: without overlap T is linear in six parameters, of which NNLS tells all.

    Relative errors are minimised, as in the search.
    """
    values = {**dict.fromkeys(BOUNDS, 0.0), "gamma": 1.0, "phi": _START_PHI, **scheme.held}
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
            values[name] = max(float(factor), _LEAST / max(float(share.max()), 1e-300))
    gammas = GAMMAS if "gamma" in scheme.free else (values["gamma"],)
    return [np.array(list((values | {"gamma": gamma}).values())) for gamma in gammas]


def _alike(name: str, scheme: Scheme) -> list[str]:
    """Return a parameter and its copies."""
    return [name, *(copy for copy, source in scheme.copied.items() if source == name)]
