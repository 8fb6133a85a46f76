"""``ronda profile fit``: models from a table of measurements."""

import math
from pathlib import Path
from typing import Any, Literal

import click

from ronda.cli.command import taught
from ronda.cli.options import FIGURE, Parsed, seed_option, write_options
from ronda.cli.output import show
from ronda.cli.progress import Bars
from ronda.instances.errors import InputError
from ronda.instances.files.fits import write_fits as keep
from ronda.instances.models.fits import Fits
from ronda.instances.tables.fits import errors_table
from ronda.instances.tables.table import Report, Table


def _known(text: str) -> tuple[str, float] | None:
    name, _, number = text.partition("=")
    value = float(number)
    return (name.strip(), value) if name and math.isfinite(value) else None


@taught(
    "fit",
    "ronda profile fit steps.csv --gpus-per-node 8 --out profile.json --figure residuals.png",
    "ronda profile fit steps.csv --model bert --fix phi=0.8 --out bert.json",
    "ronda profile fit power.csv --kind power --out power.json",
)
@click.argument("source", metavar="CSV", type=click.Path(path_type=Path))
@click.option(
    "--kind",
    type=click.Choice(["throughput", "power"]),
    help="What the table holds; without it, power if it has a column of watts.",
)
@click.option("--model", metavar="NAME", help="Only this application; otherwise all.")
@click.option(
    "--gpu-type",
    metavar="NAME",
    default="GPU",
    help="Where the table has no column of it.",
)
@click.option(
    "--gpus-per-node",
    type=click.IntRange(1),
    metavar="N",
    help="Count the nodes, where the table has no column of them.",
)
@click.option(
    "--max-local-batch",
    type=click.FloatRange(0, min_open=True),
    metavar="B",
    help="Count the gradient passes, where the table has global batches and no passes.",
)
@click.option(
    "--skip-zero", is_flag=True, help='Leave out rows with a time or rate of 0 ("not measured").'
)
@click.option(
    "--fix",
    "fixed",
    type=Parsed("name=value", "NAME=VALUE, as phi=0.8", _known),
    multiple=True,
    help="A parameter that is known, as phi=0.8; not fitted. Can be repeated.",
)
@click.option(
    "--own-shapes", is_flag=True, help="Power: fit every batch size alone, without a shared shape."
)
@seed_option
@click.option("--figure", type=FIGURE, metavar="PNG", help="Draw the residuals; CSV next to it.")
@write_options
def command(
    source: Path,
    kind: Literal["throughput", "power"] | None,
    fixed: tuple[tuple[str, float], ...],
    own_shapes: bool,
    seed: int,
    out: Path,
    figure: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Fit models to the measurements in CSV, a table with a header; also .csv.gz.

    \b
    Throughput, T = (T_grad^gamma + T_sync^gamma)^(1/gamma):
      gpus          GPUs                       num_gpus, num_replicas, workers
      nodes         nodes, or --gpus-per-node  num_nodes
      local_batch   samples per GPU and pass   local_bsz, batch_per_gpu
       or global_batch                         global_batch_size, batch_size, batch
      step_s        seconds per iteration      step_time, iteration_s, time_s
       or iters_per_s, or samples_per_s        iterations_per_s; throughput
      sync_s        of them synchronising      sync_time            (may be missing)
      passes        gradient passes                                 (1)
      clock         share of the highest       relative_clock       (1)

    \b
    Power, P = a + b min(s, s0) + c max(s^3 - s0^3, 0):
      power_w       watts of a busy GPU        average_power, watts, power
      speed         relative to no cap         relative_speed, clock
       or time_s    for the same work          time_per_epoch, step_s
      cap_w         power cap of that time     power_limit          (may be missing)
      batch         one curve for each         batch_size           (may be missing)

    \b
    Both:
      model         application                network, app; with dataset, optimizer
      gpu_type      type of GPU                gpu

    Errors are relative; each row was also left out once and predicted from the others. Parameters
    that the rows cannot determine are fixed, with a named warning.
    """  # noqa: D301  (click wants the character)
    most = options["max_local_batch"]
    if most is not None and not math.isfinite(most):
        raise InputError("--max-local-batch", f"{most:g}", "a number of samples")
    from ronda.solvers.fitting.fit import fit_table
    from ronda.solvers.fitting.measurements import Reading

    with Bars() as bars:
        fits = fit_table(
            source,
            Reading(**options),
            kind=kind,
            known=dict(fixed),
            shared=not own_shapes,
            seed=seed,
            progress=lambda name, share: bars.update("fitting", share, name),
        )
    keep(fits, out)
    if figure is not None:
        from ronda.bench.figures.draw import save_chart
        from ronda.bench.figures.fit import residuals

        save_chart(residuals(fits.fits), figure.with_suffix(""))
    tell_fits(fits, out, as_json=as_json)


def tell_fits(fits: Fits, out: Path, *tables: Table, as_json: bool) -> None:
    """Print the errors of fits and more tables, with warnings on stderr, or everything as JSON."""
    warned: dict[str, list[str]] = {}
    for fit in fits.fits:
        for remark in fit.remarks:
            warned.setdefault(f"{remark.code}: {remark.message}", []).append(fit.name)
    more = {
        text: f" and {len(names) - 1} more" * (len(names) > 1) for text, names in warned.items()
    }
    notes = [f"warning: {names[0]}{more[text]}: {text}" for text, names in warned.items()]
    many = f"{len(fits.fits)} {'fit' if len(fits.fits) == 1 else 'fits'}"
    fields = {"out": str(out), "fits": fits.fits}
    report = Report(fields, [errors_table(fits.fits), *tables, f"{out}: {many}"], notes)
    show(report._replace(notes=()) if as_json else report, as_json=as_json)
