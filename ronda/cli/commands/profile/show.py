"""``ronda profile show``: a model, its parameters, and how far to trust it."""

from typing import Any

import click

from ronda.cli.command import taught
from ronda.cli.commands.profile.list import in_percent
from ronda.cli.options import Source, json_option
from ronda.cli.output import display, emit, facts, table
from ronda.instances.files.fits import find, fitted
from ronda.instances.models.fits import Fit
from ronda.instances.profile import AffineTime


@taught("show", "ronda profile show zeus-resnet50-V100-b256", "ronda profile show profile.json")
@click.argument("source", metavar="NAME", type=Source(lambda: (fit.name for fit in fitted())))
@json_option
def command(source: str, as_json: bool) -> None:
    """Show NAME, a packaged model or a file that `ronda profile fit` wrote."""
    fits = find(source)
    if as_json:
        emit({"fits": fits})
        return
    for fit in fits:
        display(*_tables(fit))


def _tables(fit: Fit) -> tuple[Any, Any]:
    """Return the tables of facts and of parameters."""
    e = fit.errors
    spans = ", ".join(f"{axis} {low:g} to {high:g}" for axis, (low, high) in fit.measured.items())
    pairs = {
        "name": fit.name,
        "kind": fit.kind,
        "application": fit.application + (f", batch {fit.batch:g}" if fit.batch else ""),
        "GPU": fit.gpu_type,
        "measured": f"{e.rows} rows: {spans}",
        **({"law": law(fit)} if fit.sharing or fit.memory else {}),
        "error": f"{in_percent(e.mape)} in the mean, {in_percent(e.largest)} at most",
        "left out": _held_out(fit),
        **{f"warning: {remark.code}": remark.message for remark in fit.remarks},
        "source": fit.source,
        "licence": fit.licence,
        "citation": fit.citation,
    }
    parameters = table("parameter", "value", "± std error", "", left=1)
    parameters.columns[-1].justify = "left"
    for p in fit.parameters:
        error = "" if p.std_error is None else f"{p.std_error:.2g}"
        parameters.add_row(p.name, f"{p.value:.6g}", error, p.state)
    return facts((name, text) for name, text in pairs.items() if text), parameters


def _held_out(fit: Fit) -> str:
    e = fit.errors
    times = "" if e.ratio is None else f", {e.ratio:.2f} times the fitted error"
    known = e.held_out_mape is not None
    return f"{in_percent(e.held_out_mape)} over {e.held_out_rows} rows{times}" if known else ""


def law(fit: Fit) -> str:
    """Write the law of a fit of sharing or memory with its numbers."""
    if fit.memory is not None:
        return f"m(k) = {fit.memory.base_gib:.4g} + {fit.memory.model_gib:.4g} k GiB"
    assert fit.sharing is not None
    time = fit.sharing.time
    if not isinstance(time, AffineTime):
        known = zip(time.models, time.step_s, strict=True)
        return f"T(k) = {', '.join(f'{t:.4g} ({k})' for k, t in known)}"
    line = f"{time.alpha_s:.4g} + {time.beta_s:.4g} k"
    return f"T(k) = max({time.floor_s:.4g}, {line})" if time.floor_s else f"T(k) = {line}"
