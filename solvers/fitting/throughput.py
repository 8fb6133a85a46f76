"""Fit the throughput model of Pollux, with a clock share, to measured iterations.

The model is that of `ronda.formulations.models.throughput`: ``T = m C + X``. Fitted are the
logarithms of T and, where synchronisation was measured, of C as well, which tells both parts apart
(Pollux fits the same two quantities; Qiao et al., OSDI 2021, and goodput.py of its artifact).
"""

from collections.abc import Callable, Mapping

import numpy as np

from ronda.formulations.models.throughput import phases
from ronda.instances.arrays import Floats, Rows
from ronda.instances.errors import InputError
from ronda.instances.fit import Fit, FitParameter, FitRemark
from ronda.instances.profile import Parametric
from ronda.solvers.fitting.data import Steps, take
from ronda.solvers.fitting.identify import GAMMA, NAMES, Plan, inside, plan
from ronda.solvers.fitting.report import errors, folds, outliers, poor, residuals, weak
from ronda.solvers.fitting.search import LEAST, Box, Found, search

STARTS = 32
"""Random starts of a search."""

POLISHED = 8
"""Of them, how many are searched from when rows are left out."""

Progress = Callable[[float], None]


def fit_throughput(
    steps: Steps,
    *,
    fixed: Mapping[str, float] | None = None,
    starts: int = STARTS,
    seed: int = 0,
    held_out: bool = True,
    progress: Progress | None = None,
) -> Fit:
    """Fit a `Parametric` to measured iterations.

    Parameters
    ----------
    steps
        The measurements.
    fixed
        Parameters that are known, by name, in the units of `Parametric`; not fitted.
    starts
        Random starts.
    seed
        Of the starts and of the parts that are left out: same seed, same fit.
    held_out
        Also predict every row from a fit without it.
    progress
        Called with the share of the work that is done.

    Returns
    -------
    Fit
        With every row's residual, and a named warning for all that the rows do not tell.

    Raises
    ------
    InputError
        If there are too few rows or too few different ones, naming what is missing.
    """
    known = fixed or {}
    tell = progress or (lambda _: None)
    scheme = plan(steps, known)
    found = _search(steps, scheme, starts, seed, None)
    model = _model(found.x, steps, scheme)
    fitted = predict(model, steps)
    tell(0.1 if held_out else 1.0)
    out = np.full(len(steps), np.nan)
    surrounded = inside(steps)
    if held_out:
        parts = folds(len(steps), seed)
        for k, part in enumerate(parts):
            out[part] = _without(steps, part, known, starts, seed)
            tell(0.1 + 0.9 * (k + 1) / len(parts))
    found_errors = errors(steps.step_s, fitted, out, surrounded)
    parameters = _parameters(model, found, steps, scheme)
    remarks = (
        *_skipped(steps),
        *scheme.remarks,
        *weak(parameters),
        *outliers(steps.row, steps.step_s, fitted),
        *poor(found_errors),
    )
    axes = {name: getattr(steps, name) for name in ("gpus", "nodes", "local_batch", "clock")}
    return Fit(
        name=f"{steps.application}-{steps.gpu_type}",
        kind="throughput",
        application=steps.application,
        gpu_type=steps.gpu_type,
        throughput=model,
        measured={name: (float(v.min()), float(v.max())) for name, v in axes.items()},
        errors=found_errors,
        parameters=parameters,
        remarks=remarks,
        residuals=residuals(steps.row, axes, steps.step_s, fitted, out, surrounded),
    )


def _skipped(steps: Steps) -> tuple[FitRemark, ...]:
    """Say how many rows of the file were not measured."""
    if not steps.skipped:
        return ()
    message = f"rows of 0, taken for not measured and left out: {steps.skipped}"
    return (FitRemark(code="skipped-rows", message=message),)


def predict(model: Parametric, steps: Steps) -> Floats:
    """Return the seconds that a model gives for the iterations of a table."""
    compute, exposed = phases(model, steps.gpus, steps.nodes, steps.local_batch, steps.clock)
    return np.asarray(steps.passes * compute + exposed)


def _without(
    steps: Steps, part: Rows, known: Mapping[str, float], starts: int, seed: int
) -> Floats:
    """Return predictions of some rows by a fit without them; NaN where the rest is too little."""
    left = np.ones(len(steps), dtype=bool)
    left[part] = False
    rest = take(steps, left)
    try:
        scheme = plan(rest, known)
    except InputError:  # the rows are needed: nothing can be said about them
        return np.full(len(part), np.nan)
    found = _search(rest, scheme, starts, seed, POLISHED)
    return predict(_model(found.x, rest, scheme), take(steps, ~left))


def _search(steps: Steps, scheme: Plan, starts: int, seed: int, polish: int | None) -> Found:
    """Return the best free parameters, in units of `_scales`."""
    box = _box(scheme, starts, seed)
    least = LEAST * float(np.median(steps.step_s))
    compute_s = steps.compute_s

    def residual(x: Floats) -> Floats:
        model = _model(x, steps, scheme)
        compute, exposed = phases(model, steps.gpus, steps.nodes, steps.local_batch, steps.clock)
        whole = np.maximum(steps.passes * compute + exposed, least)
        off = np.log(whole / steps.step_s)
        if compute_s is None:
            return np.asarray(off)
        return np.concatenate([off, np.log(np.maximum(compute, least) / compute_s)])

    return search(residual, box, polish=polish)


def _scales(steps: Steps) -> dict[str, float]:
    """Return the unit of every parameter: one in which it is about 1."""
    step = float(np.median(steps.step_s / steps.passes))
    batch = float(np.median(steps.local_batch))
    return {**dict.fromkeys(NAMES, step), "beta_c_s": step / batch, "gamma": 1.0, "phi": 1.0}


def _model(x: Floats, steps: Steps, scheme: Plan) -> Parametric:
    """Return the model of some free parameters."""
    scales = _scales(steps)
    values = dict(scheme.fixed)
    values |= {name: float(v) * scales[name] for name, v in zip(scheme.free, x, strict=True)}
    values |= {name: values[source] for name, source in scheme.copied.items()}
    return Parametric(**values)


def _box(scheme: Plan, starts: int, seed: int) -> Box:
    """Return bounds, scales and starts of the free parameters, in units of `_scales`."""
    rng = np.random.default_rng(seed)
    drawn = 10.0 ** rng.uniform(-2.5, 0.0, (starts, len(NAMES)))
    drawn[:, NAMES.index("gamma")] = rng.uniform(1.0, 4.0, starts)
    drawn[:, NAMES.index("phi")] = rng.uniform(0.0, 1.0, starts)
    scale, upper = np.ones(len(NAMES)), np.full(len(NAMES), np.inf)
    lower = np.zeros(len(NAMES))
    for name in ("beta_r_s", "beta_n_s"):  # seconds for each of many GPUs
        drawn[:, NAMES.index(name)] *= 0.1
        scale[NAMES.index(name)] = 0.1
    lower[NAMES.index("gamma")], upper[NAMES.index("gamma")] = GAMMA
    upper[NAMES.index("phi")] = 1.0
    free = [NAMES.index(name) for name in scheme.free]
    return Box(lower[free], upper[free], scale[free], drawn[:, free])


def _parameters(
    model: Parametric, found: Found, steps: Steps, scheme: Plan
) -> tuple[FitParameter, ...]:
    """Return every parameter with its state and standard error."""
    scales, made = _scales(steps), []
    for name in NAMES:
        value = float(getattr(model, name))
        source = scheme.copied.get(name, name)
        if name in scheme.fixed or source != name:
            made.append(FitParameter(name=name, value=value, state="fixed"))
            continue
        at = scheme.free.index(name)
        if found.at_bound[at]:
            made.append(FitParameter(name=name, value=value, state="at-bound"))
        else:
            error = float(found.std_error[at]) * scales[name]
            made.append(FitParameter(name=name, value=value, std_error=error))
    return tuple(made)
