"""Fitted models as tables: their errors, their parameters, and their laws in words."""

from collections.abc import Sequence
from statistics import median

from ronda.instances.models.fits import Fit
from ronda.instances.profile import AffineTime
from ronda.instances.tables.numbers import percent
from ronda.instances.tables.table import Table


def errors_table(fits: Sequence[Fit]) -> Table:
    """Return a table of the errors of fits, one row per fit."""
    rows = (
        {
            "name": fit.name,
            "rows": fit.errors.rows,
            "error": _percent(fit.errors.mape),
            "largest": _percent(fit.errors.largest),
            "left out": _percent(fit.errors.held_out_mape),
            "ratio": "" if fit.errors.ratio is None else f"{fit.errors.ratio:.2f}",
            "warnings": " ".join(remark.code for remark in fit.remarks),
        }
        for fit in fits
    )
    return Table.of("", rows, left=(0, -1))


def families(fits: Sequence[Fit]) -> dict[str, list[Fit]]:
    """Return fits by family name, which groups the batch sizes of an application on a GPU."""
    found: dict[str, list[Fit]] = {}
    for fit in fits:
        found.setdefault(fit.family, []).append(fit)
    return found


def families_table(fits: Sequence[Fit]) -> Table:
    """Return a table of the errors of fits, one row for all batch sizes of a family."""
    rows = []
    for name, group in families(fits).items():
        out = [f.errors.held_out_mape for f in group if f.errors.held_out_mape is not None]
        errors = [fit.errors.mape for fit in group]
        rows.append(
            {
                "name": name,
                "kind": group[0].kind,
                "fits": len(group),
                "rows": sum(fit.errors.rows for fit in group),
                "error": _percent(median(errors)),
                "largest mean": _percent(max(errors)),
                "left out": _percent(median(out) if out else None),
            }
        )
    return Table.of("", rows, left=(0, 1))


def fit_tables(fit: Fit) -> tuple[Table, Table]:
    """Return a table of facts about a fit and a table of its parameters."""
    e = fit.errors
    spans = ", ".join(f"{axis} {low:g} to {high:g}" for axis, (low, high) in fit.measured.items())
    times = "" if e.ratio is None else f", {e.ratio:.2f} times the fitted error"
    held_out = f"{_percent(e.held_out_mape)} over {e.held_out_rows} rows{times}"
    facts = {
        "name": fit.name,
        "kind": fit.kind,
        "application": fit.application + (f", batch {fit.batch:g}" if fit.batch else ""),
        "GPU": fit.gpu_type,
        "measured": f"{e.rows} rows: {spans}",
        "law": law(fit) if fit.sharing or fit.memory else "",
        "error": f"{_percent(e.mape)} in the mean, {_percent(e.largest)} at most",
        "left out": "" if e.held_out_mape is None else held_out,
        **{f"warning: {remark.code}": remark.message for remark in fit.remarks},
        "source": fit.source,
        "licence": fit.licence,
        "citation": fit.citation,
    }
    parameters = (
        {
            "parameter": p.name,
            "value": f"{p.value:.6g}",
            "± std error": "" if p.std_error is None else f"{p.std_error:.2g}",
            "": p.state,
        }
        for p in fit.parameters
    )
    known = {name: text for name, text in facts.items() if text}
    return Table.facts(known), Table.of("", parameters, left=(0, -1))


def law(fit: Fit) -> str:
    """Return the formula of a sharing or memory fit with its numbers."""
    if fit.memory is not None:
        return f"m(k) = {fit.memory.base_gib:.4g} + {fit.memory.model_gib:.4g} k GiB"
    assert fit.sharing is not None
    time = fit.sharing.time
    if not isinstance(time, AffineTime):
        known = zip(time.models, time.step_s, strict=True)
        return f"T(k) = {', '.join(f'{t:.4g} ({k})' for k, t in known)}"
    line = f"{time.alpha_s:.4g} + {time.beta_s:.4g} k"
    return f"T(k) = max({time.floor_s:.4g}, {line})" if time.floor_s else f"T(k) = {line}"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{percent(share, '.2f')} %"
