"""``ronda profile fit-fusion``: time and memory of models that share a GPU."""

from pathlib import Path

import click

from ronda.cli.command import taught
from ronda.cli.commands.profile.fit import tell_fits
from ronda.cli.options import FIGURE, write_options
from ronda.instances.files.fits import write_fits as keep


@taught(
    "fit-fusion",
    "ronda profile fit-fusion resnet.csv --model resnet18 --gpu-type RTX3090 --out fusion.json",
    "ronda profile fit-fusion pointnet.csv --from 4 --out fusion.json --figure fusion.png",
)
@click.argument("source", metavar="CSV", type=click.Path(path_type=Path))
@click.option(
    "--model",
    metavar="NAME",
    default="application",
    help="The application, where the table has no column of it.",
)
@click.option(
    "--gpu-type",
    metavar="NAME",
    default="GPU",
    help="Where the table has no column of it.",
)
@click.option(
    "--from",
    "least",
    type=click.IntRange(1),
    metavar="K",
    default=1,
    help="Fit lines to times of K models and more: fewer may not follow one.",
)
@click.option("--figure", type=FIGURE, metavar="PNG", help="Draw curves; CSV next to it.")
@write_options
def command(
    source: Path,
    model: str,
    gpu_type: str,
    least: int,
    out: Path,
    figure: Path | None,
    as_json: bool,
) -> None:
    """Fit time and memory of k models on one GPU to CSV, a table with a header; also .csv.gz.

    \b
    Time, T(k) = max(floor, alpha + beta k), all k models, one step each:
      models        k                          k, k_models, fusion
      mode          fused       one process    hfta
                    packed      MPS            mps, mps_or_timeslice
                    slices      MIG            mig
                    turns       time-sharing   concurrent
                    exclusive   one model      serial
      step_s        seconds of all k           time_s, epoch_s, epoch_time_s
       or throughput, of all k                 throughput_norm_to_fp32_serial
      alone_throughput                         serial, serial_same_precision  (may be missing)

    \b
    Memory, m(k) = b + k p fused, k (b + p) packed or by turns:
      memory_mib    MiB of the GPU             gpu_mem_MB, memory_mb          (may be missing)

    \b
    Both:
      model         application                network, app, application
      precision     or another variant of it   variant, width_shrink_S
      gpu_type      type of GPU                gpu, device

    A step may be an iteration or an epoch, in any unit of time; the curve has the same unit. Errors
    are relative; each row was also left out once and predicted from the others.
    """  # noqa: D301  (click wants the character)
    from ronda.systems.hfta.fit import fit_sharing, laws_table

    fits = fit_sharing(source, model, gpu_type, least=least)
    keep(fits, out)
    if figure is not None:
        from ronda.bench.figures.draw import save_chart
        from ronda.bench.figures.sharing import sharing

        save_chart(sharing(fits), figure.with_suffix(""))
    tell_fits(fits, out, laws_table(fits), as_json=as_json)
