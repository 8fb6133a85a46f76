"""``ronda instances detect-sweeps``: repetitive jobs in a trace."""

from pathlib import Path

import click

from ronda.cli.command import taught
from ronda.cli.options import SECONDS, TARGET, output_options


@taught(
    "detect-sweeps",
    "ronda instances detect-sweeps cluster_log.csv",
    "ronda instances detect-sweeps jobs.csv.gz --gap 300 --least 5 --out groups.csv",
)
@click.argument("source", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--gap",
    "gap_s",
    type=SECONDS,
    default="60",
    help="Most seconds between submissions of two neighbours of a group.",
)
@click.option(
    "--least",
    type=click.IntRange(2),
    default=3,
    metavar="N",
    help="Fewest jobs of a group.",
)
@click.option(
    "--similar",
    type=click.FloatRange(0.0, 1.0),
    default=0.8,
    help="Least similarity of names, where the trace has names.",
)
@click.option("--out", type=TARGET, metavar="CSV", help="Every job of a group, with its number.")
@output_options
def command(
    source: Path,
    gap_s: float,
    least: int,
    similar: float,
    out: Path | None,
    as_json: bool,
) -> None:
    """Find repetitive jobs, such as those of hyper-parameter tuning, in FILE, a trace as CSV.

    The jobs of a group have the same user, virtual cluster and number of GPUs, similar names, and
    submissions in a burst. The Vector Institute's shares of GPU-hours are listed for comparison
    (HFTA, MLSys 2021).

    \b
    Columns, as `ronda instances convert helios` reads them:
      job_id
      submit_s      seconds, or dates          submit_time
      num_gpus                                 gpu_num, num_chips
      duration_s    seconds                    duration
      user                                                     (may be missing)
      vc            virtual cluster            tenant          (may be missing)
      name          name of the job            job_name        (may be missing)

    If users or names are missing, bursts of different users or programs look alike, and the command
    finds too many.
    """  # noqa: D301  (click wants the character)
    from ronda.cli.output import show
    from ronda.instances.files.storage import write_bytes
    from ronda.systems.hfta.repetitive import Burst, read_repetitive, sweeps_report

    jobs = read_repetitive(source, Burst(gap_s=gap_s, least=least, similar=similar))
    if out is not None:
        columns = ["group", "job_id", "submit_s", "num_gpus", "duration_s", "vc", "user"]
        grouped = jobs[jobs.group >= 0].sort_values(["group", "submit_s"])
        write_bytes(out, grouped[columns].to_csv(index=False).encode())
    report = sweeps_report(str(source), jobs)
    fields = {"file": str(source), **report.fields, "out": out and str(out)}
    show(report._replace(fields=fields, notes=() if as_json else report.notes), as_json=as_json)
