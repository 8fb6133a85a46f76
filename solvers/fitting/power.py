"""Fit power curves ``a + b min(s, s0) + c max(s^3 - s0^3, 0)`` to measured watts.

The shaped curves of one application on one GPU are fitted together: each batch size has its own a
and its own size of the rise, while the knee s0 and the ratio c/b, which say how voltage goes with
frequency, are shared. A curve has 6 to 9 measurements as a rule, and four parameters of its own
would follow their noise: ``docs/fitting.md`` has the comparison. Curves that are not monotone have
no say in the shared shape if others do; they borrow it. A single curve has all four to itself.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ronda.formulations.models.power import gpu_power_w
from ronda.instances.arrays import Floats, Rows
from ronda.instances.errors import InputError
from ronda.instances.fit import Fit, FitParameter, FitRemark, batch_suffix
from ronda.instances.profile import PowerCurve
from ronda.solvers.fitting.curves import Curve, curves, place_of, surrounded
from ronda.solvers.fitting.data import Watts
from ronda.solvers.fitting.family import Family, curve_of, fit_family, spread_of
from ronda.solvers.fitting.report import errors, folds, outliers, poor, residuals, weak

STARTS = 48
"""Places of the knee from which a search starts."""

POLISHED = 12
"""Of them, how many are searched from without holding the knee."""

NAMES = ("a_w", "b_w", "c_w", "s0")
"""Parameters of `ronda.instances.profile.PowerCurve`."""

FIXABLE = ("a_w", "s0")
"""Those that can be known beforehand."""

Progress = Callable[[float], None]

_BORROWED = (
    FitRemark(
        code="borrowed-shape",
        message="not being monotone, it has no say in the knee s0 and in c/b: "
        "they are those of the other batch sizes",
    ),
)


@dataclass(frozen=True, slots=True, eq=False)
class Settings:
    """How to fit.

    Attributes
    ----------
    fixed
        Values of ``a_w`` (watts) and ``s0`` that are known; not fitted.
    shared
        Whether the batch sizes share one shape; otherwise each is fitted alone.
    starts
        Places of the knee from which a search starts.
    seed
        Of the rows that are left out together: same seed, same fits.
    """

    fixed: Mapping[str, float]
    shared: bool
    starts: int
    seed: int


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """One fitted curve.

    Attributes
    ----------
    model
        The curve.
    spread
        Standard error of each parameter; None: at a bound. No entry: not fitted.
    borrowed
        Whether knee and c/b are those of other batch sizes.
    """

    model: PowerCurve
    spread: Mapping[str, float | None]
    borrowed: bool = False


def fit_power(
    table: Watts,
    *,
    fixed: Mapping[str, float] | None = None,
    shared: bool = True,
    starts: int = STARTS,
    seed: int = 0,
    held_out: bool = True,
    progress: Progress | None = None,
) -> tuple[Fit, ...]:
    """Fit a `PowerCurve` to each batch size of measured watts.

    Parameters
    ----------
    table
        The measurements.
    fixed, shared, starts, seed
        As `Settings`.
    held_out
        Also predict every row from a fit without it. One row of every curve is left out at a
        time, so that the shared shape does not know them either.
    progress
        Called with the share of the work that is done.

    Returns
    -------
    tuple of Fit
        By batch size, with every row's residual and a named warning for all that is odd.

    Raises
    ------
    InputError
        If there are too few rows, or power falls as speed rises.
    """
    how = Settings(_checked(fixed or {}), shared, starts, seed)
    tell = progress or (lambda _: None)
    found = curves(table)
    _enough(table, found, how)
    made = _models(table, found, how)
    tell(0.1 if held_out else 1.0)
    out = np.full(len(table), np.nan)
    parts = _parts(found, seed) if held_out else []
    for k, part in enumerate(parts):
        _predict(table, found, part, how, out)
        tell(0.1 + 0.9 * (k + 1) / len(parts))
    return tuple(
        _fit(table, curve, own, out[curve.rows]) for curve, own in zip(found, made, strict=True)
    )


def _checked(fixed: Mapping[str, float]) -> Mapping[str, float]:
    """Return the caller's values, or refuse them."""
    for name, value in fixed.items():
        if name not in FIXABLE:
            raise InputError("--fix", repr(name), f"one of {', '.join(FIXABLE)}")
        if name == "s0" and not 0 < value <= 1:
            raise InputError("--fix s0", f"{value:g}", "above 0, 1 at most")
        if value < 0:
            raise InputError(f"--fix {name}", f"{value:g}", "0 or more")
    return fixed


def _groups(found: Sequence[Curve], how: Settings) -> tuple[list[list[Curve]], list[Curve]]:
    """Return curves that share a shape, and those that borrow that of the only group."""
    shaped = [curve for curve in found if curve.shaped]
    if not how.shared:
        return [[curve] for curve in shaped], []
    steady = [curve for curve in shaped if curve.monotone]
    if not steady:
        return ([shaped] if shaped else []), []
    return [steady], [curve for curve in shaped if not curve.monotone]


def _enough(table: Watts, found: Sequence[Curve], how: Settings) -> None:
    """Refuse shaped curves with too few different speeds for their parameters."""
    groups, borrowers = _groups(found, how)
    own = [name for name in ("a_w", "b_w") if name not in how.fixed]
    for group in [*groups, borrowers]:
        alone = len(group) == 1 and group is not borrowers
        names = [name for name in NAMES if name not in how.fixed] if alone else own
        for curve in group:
            speeds = len(np.unique(table.speed[curve.rows]))
            if speeds <= len(names):
                raise InputError(
                    place_of(table, curve.batch),
                    f"{len(curve.rows)} rows with {speeds} different speeds for the parameters "
                    f"{', '.join(names)}",
                    f"at least {len(names) + 1} speeds, or --fix s0=VALUE or --fix a_w=VALUE",
                )


def _models(table: Watts, found: Sequence[Curve], how: Settings) -> list[Made]:
    """Return model and standard errors of every curve."""
    groups, borrowers = _groups(found, how)
    made: dict[float, Made] = {}
    shape: dict[str, float] = {}
    for group in groups:
        shape = _fit_group(table, group, how.fixed, how, made)
    if borrowers:
        _fit_group(table, borrowers, {**how.fixed, **shape}, how, made)
    for curve in found:
        if not curve.shaped:
            made[curve.batch] = Made(
                PowerCurve(a_w=float(np.median(table.power_w[curve.rows]))), {}
            )
    return [made[curve.batch] for curve in found]


def _fit_group(
    table: Watts,
    group: Sequence[Curve],
    fixed: Mapping[str, float],
    how: Settings,
    made: dict[float, Made],
) -> dict[str, float]:
    """Fit curves that share a shape, put them into `made`, and return the shape."""
    rows = np.concatenate([curve.rows for curve in group])
    which = np.repeat(np.arange(len(group)), [len(curve.rows) for curve in group])
    family = Family(table.speed[rows], table.power_w[rows], which, len(group), fixed)
    best = fit_family(family, how.starts, POLISHED)
    for j, curve in enumerate(group):
        spread = {k: v for k, v in spread_of(best, family, j).items() if k not in fixed}
        made[curve.batch] = Made(curve_of(best.x, family, j), spread, "angle" in fixed)
    return {"s0": float(best.x[0]), "angle": float(best.x[1])}


def _parts(found: Sequence[Curve], seed: int) -> list[Rows]:
    """Return which rows to leave out together: of every curve one, or a tenth of a long one."""
    own = [
        [curve.rows[part] for part in folds(len(curve.rows), seed + j)]
        for j, curve in enumerate(found)
    ]
    longest = max(len(parts) for parts in own)
    return [np.concatenate([parts[k] for parts in own if k < len(parts)]) for k in range(longest)]


def _predict(table: Watts, found: Sequence[Curve], part: Rows, how: Settings, out: Floats) -> None:
    """Put predictions of some rows by a fit without them into `out`; none if too few are left."""
    rest = [replace(c, rows=c.rows[~np.isin(c.rows, part)]) for c in found]
    try:
        _enough(table, rest, how)
    except InputError:  # the rows are needed: nothing can be said about them
        return
    for curve, made in zip(found, _models(table, rest, how), strict=True):
        own = curve.rows[np.isin(curve.rows, part)]
        out[own] = gpu_power_w(made.model, table.speed[own])


def _fit(table: Watts, curve: Curve, made: Made, out: Floats) -> Fit:
    """Return the record of one curve."""
    speed, power, row = table.speed[curve.rows], table.power_w[curve.rows], table.row[curve.rows]
    fitted, inner = gpu_power_w(made.model, speed), surrounded(table, curve)
    found = errors(power, fitted, out, inner)
    parameters = tuple(_parameter(made, name, curve) for name in NAMES)
    lent = _BORROWED if made.borrowed else ()
    odd = (*curve.remarks, *lent, *weak(parameters))
    remarks = (*odd, *outliers(row, power, fitted), *poor(found))
    return Fit(
        name=f"{table.application}-{table.gpu_type}{batch_suffix(curve.batch)}",
        kind="power",
        application=table.application,
        gpu_type=table.gpu_type,
        batch=curve.batch or None,
        power=made.model,
        measured={"speed": (float(speed.min()), float(speed.max()))},
        errors=found,
        parameters=parameters,
        remarks=remarks,
        residuals=residuals(row, {"speed": speed}, power, fitted, out, inner),
    )


def _parameter(made: Made, name: str, curve: Curve) -> FitParameter:
    """Return one parameter with its state."""
    value = float(getattr(made.model, name))
    if not curve.shaped and name == "a_w":
        return FitParameter(name=name, value=value)  # the median
    if name not in made.spread:
        return FitParameter(name=name, value=value, state="fixed")
    error = made.spread[name]
    state: Literal["fitted", "at-bound"] = "at-bound" if error is None else "fitted"
    return FitParameter(name=name, value=value, state=state, std_error=error)
