"""``ronda profile list``: the packaged models and their errors."""

from collections.abc import Sequence
from statistics import median
from typing import Any

import click

from ronda.bench.figures.table import percent
from ronda.cli.command import taught
from ronda.cli.options import json_option
from ronda.cli.output import display, emit, table
from ronda.instances.errors import InputError
from ronda.instances.files.fits import fitted
from ronda.instances.models.fits import Fit


@taught("list", "ronda profile list", "ronda profile list zeus-resnet50-V100")
@click.argument("word", required=False, default="")
@json_option
def command(word: str, as_json: bool) -> None:
    """List the packaged models with their errors, or those whose name contains WORD.

    Without WORD the batch sizes of a power curve stand in one line: errors are the median over
    them.
    """
    found = fitted(word)
    if not found:
        raise InputError("WORD", repr(word), "a part of a name that `ronda profile list` shows")
    if as_json:
        emit({"fits": found})
    else:
        display(errors_table(found) if word else families_table(found))


def errors_table(fits: Sequence[Fit]) -> Any:
    """Return the errors of fits, one a line."""
    made = table("name", "rows", "error", "largest", "left out", "ratio", "warnings")
    made.columns[-1].justify = "left"
    for fit in fits:
        e = fit.errors
        made.add_row(
            fit.name,
            str(e.rows),
            in_percent(e.mape),
            in_percent(e.largest),
            in_percent(e.held_out_mape),
            "" if e.ratio is None else f"{e.ratio:.2f}",
            " ".join(remark.code for remark in fit.remarks),
        )
    return made


def families(fits: Sequence[Fit]) -> dict[str, list[Fit]]:
    """Return fits by name, the batch sizes of one application and GPU together."""
    found: dict[str, list[Fit]] = {}
    for fit in fits:
        found.setdefault(fit.family, []).append(fit)
    return found


def families_table(fits: Sequence[Fit]) -> Any:
    """Return the errors of fits, one line for all batch sizes of an application and GPU."""
    made = table("name", "kind", "fits", "rows", "error", "largest mean", "left out", left=2)
    for name, group in families(fits).items():
        out = [f.errors.held_out_mape for f in group if f.errors.held_out_mape is not None]
        made.add_row(
            name,
            group[0].kind,
            str(len(group)),
            str(sum(fit.errors.rows for fit in group)),
            in_percent(median(fit.errors.mape for fit in group)),
            in_percent(max(fit.errors.mape for fit in group)),
            in_percent(median(out) if out else None),
        )
    return made


def in_percent(share: float | None) -> str:
    """Write a share with two decimals, nothing for None."""
    return "" if share is None else f"{percent(share, '.2f')} %"
