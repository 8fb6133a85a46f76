"""``ronda instances detect-sweeps``: repetitive jobs in a trace."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ronda.cli.command import taught
from ronda.cli.options import SECONDS, TARGET, force_option, json_option


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
    show_default=True,
    help="Most seconds between submissions of two neighbours of a group.",
)
@click.option(
    "--least",
    type=click.IntRange(2),
    default=3,
    show_default=True,
    metavar="N",
    help="Fewest jobs of a group.",
)
@click.option(
    "--similar",
    type=click.FloatRange(0.0, 1.0),
    default=0.8,
    show_default=True,
    help="Least similarity of names, where the trace has names.",
)
@click.option("--out", type=TARGET, metavar="CSV", help="Every job of a group, with its number.")
@force_option
@json_option
def command(
    source: Path,
    gap_s: float,
    least: int,
    similar: float,
    out: Path | None,
    as_json: bool,
) -> None:
    """Find repetitive jobs in FILE, a trace as CSV, as hyper-parameter tuning submits them.

    A group has one user and virtual cluster, one number of GPUs, submissions in a burst and similar
    names. Beside the shares of GPU-hours stand those of the Vector Institute (HFTA, MLSys 2021).

    \b
    Columns, as `ronda instances convert helios` reads them:
      job_id
      submit_s      seconds, or dates          submit_time
      num_gpus                                 gpu_num, num_chips
      duration_s    seconds                    duration
      user                                                     (may be missing)
      vc            virtual cluster            tenant          (may be missing)
      name          what the job is called     job_name        (may be missing)

    Where users or names are missing, bursts of different users or programs cannot be told apart,
    and too much is found.
    """  # noqa: D301  (click wants the character)
    from ronda.cli.output import display, emit, note, tell
    from ronda.instances.files.storage import store
    from ronda.systems.hfta.repetitive import Burst, read_repetitive, shares

    jobs = read_repetitive(source, Burst(gap_s=gap_s, least=least, similar=similar))
    grouped = jobs[jobs.group >= 0]
    found = shares(jobs)
    if out is not None:
        columns = ["group", "job_id", "submit_s", "num_gpus", "duration_s", "vc", "user"]
        text = grouped.sort_values(["group", "submit_s"])[columns].to_csv(index=False)
        store(out, text.encode())
    counts = {"jobs": len(jobs), "repetitive": len(grouped), "groups": grouped.group.nunique()}
    if as_json:
        named = {f"{kind}_{size}": share for (kind, size), share in found.items()}
        emit({"file": str(source), **counts, "shares": named, "out": out and str(out)})
        return
    for column, what in (("user", "users"), ("name_", "names")):
        if (jobs[column] == "").all():
            note(f"warning: no {what} in {source}: groups may join what does not belong together")
    display(_table(found))
    told = "{repetitive:,} of {jobs:,} jobs are repetitive, in {groups:,} groups"
    tell(f"{source}: {told.format(**counts)}")


def _table(found: Mapping[tuple[str, str], float]) -> Any:
    """Return the shares of GPU-hours with those of HFTA's study."""
    from ronda.bench.figures.table import percent
    from ronda.cli.output import table
    from ronda.systems.hfta.repetitive import VECTOR

    made = table("GPU-hours of", "GPUs", "share", "Vector Institute", left=2)
    for (kind, size), share in found.items():
        known = VECTOR.get((kind, size))
        cell = "" if known is None else f"{percent(known)} %"
        made.add_row(f"{kind} jobs", size, f"{percent(share)} %", cell)
    return made
