"""``ronda slurm``: say what a policy would do with a real Slurm, or do it."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from ronda.cli.command import taught
from ronda.cli.options import (
    FOLDER,
    SECONDS,
    Command,
    decided_by,
    json_option,
    seed_option,
    time_limit_option,
)
from ronda.cli.output import note, show
from ronda.cli.records import options_of, taken
from ronda.hosts.slurm.scope import Scope
from ronda.instances.errors import InputError


def _names(flag: str, field: str, words: str) -> Callable[[Command], Command]:
    words = f"{words}; again for more."
    return click.option(f"--{flag}", field, multiple=True, metavar="NAME", help=words)


@taught(
    "slurm",
    "ronda slurm --once --partition gpu",
    "ronda slurm squeue.json sinfo.json --partition gpu --policy qssf",
    "ronda slurm --once --partition gpu --out dry && ronda report dry",
    "ronda slurm --act --state /var/lib/ronda --partition gpu --interval 60",
    "ronda slurm --act --state drive --partition gpu --power --policy 'wake-or-wait(keep=3)'",
)
@click.argument("files", metavar="[FILES...]", nargs=-1)
@_names("partition", "partitions", "A partition whose jobs may be touched")
@_names("qos", "qos", "A QOS whose jobs may be touched")
@_names("account", "accounts", "An account whose jobs may be touched")
@_names("opt-in-qos", "opt_in_qos", "A QOS whose jobs agree, as by the comment ronda:requeue")
@click.option("--act", is_flag=True, help="Give the commands; without it, they are only shown.")
@click.option("--once", is_flag=True, help="Decide once; by default, again and again.")
@click.option(
    "--interval",
    "interval_s",
    type=SECONDS,
    default=30.0,
    help="Time between two decisions.",
)
@click.option(
    "--state",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="What it remembers, and its audit log; a dry run only reads it.",
)
@click.option(
    "--sizes",
    type=click.Choice(("ended", "limits")),
    default="ended",
    help="What jobs are believed to last: as ended jobs of the same user and name, or their limit.",
)
@click.option(
    "--history",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A log of ended jobs, such as sacct's, to learn from at the start; again for more.",
)
@options_of(Scope, skip=("partitions", "qos", "accounts", "opt_in_qos", "power"))
@click.option(
    "--power",
    is_flag=True,
    help="Power idle nodes of the partitions down, and up again, if the policy lets nodes sleep.",
)
@decided_by(
    "prices", "Who decides: qssf, srtf, wake-or-wait …; all are named by ronda solve --help."
)
@time_limit_option(10.0, "For each decision.")
@seed_option
@click.option(
    "--out",
    type=FOLDER,
    metavar="FOLDER",
    help="Keep the last decision for the page of ronda report FOLDER.",
)
@json_option
def command(
    files: tuple[str, ...],
    act: bool,
    once: bool,
    interval_s: float,
    folder: Path | None,
    sizes: str,
    history: tuple[Path, ...],
    policy: str,
    time_limit: float,
    seed: int,
    out: Path | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Say what a policy would do with the jobs of a real Slurm; with --act, do it.

    Without --act nothing is changed: the steps are shown with their reasons, and as lines of
    scontrol. FILES are what squeue --json, sinfo --json and others write (ronda snapshot --help);
    without them, the programs of Slurm are asked.

    Only jobs of the named partitions, QOS and accounts are touched, and only by their priorities,
    unless their owners let ronda do more by the comment of a job: ronda, ronda:requeue, or
    ronda:gpus=1:1/2:1.9/4:3.5. No job is ever cancelled, or held for good: if ronda dies, Slurm
    goes on by itself. docs/slurm.md has all rules.
    """
    scope = taken(Scope, given)
    if not once and 3 * interval_s > scope.lease_s:
        expected = f"at most a third of --lease-s ({scope.lease_s} s): a job waits that long"
        raise InputError("--interval", f"{interval_s:g} s", expected)
    if act and folder is None:
        raise InputError("--act", "no --state", "a folder for what outlives the controller")
    if history and sizes == "limits":
        raise InputError("--history", "--sizes limits", "--sizes ended, which learns of it")
    if act and files:
        raise InputError("--act", "FILES", "no files: commands are for the cluster as it is")
    about = {"policy": policy}
    if out is not None:
        from ronda.bench.report.section import section_mark

        section_mark(out, "drive", about)  # before any work

    from ronda.hosts.clusters.read import read_snapshot
    from ronda.hosts.slurm.controller import Pass, SlurmController
    from ronda.hosts.slurm.report import pass_report
    from ronda.hosts.slurm.sizes import ended_in_log
    from ronda.hosts.slurm.state import Diary, SlurmState, remembered
    from ronda.hosts.slurm.tools import SlurmTools
    from ronda.solvers.registry import policy as make_policy

    made = make_policy(policy)
    diary = Diary(folder) if act and folder is not None else None
    if diary is not None:
        before = diary.state
    else:
        before = SlurmState() if folder is None else remembered(folder)
    if history:
        before = replace(before, sizes=before.sizes.told(ended_in_log(history)))
    if diary is not None:
        diary.keep(before)
    drive = SlurmController(
        SlurmTools(),
        made,
        scope,
        diary,
        interval_s=interval_s,
        limit_s=time_limit,
        seed=seed,
        learns=sizes == "ended",
        before=before,
    )
    noted = list[str]()

    def tell(made: Pass) -> None:
        report = pass_report(made, act=act)
        new = [line for line in report.notes if line not in noted]
        noted[:] = report.notes
        parts = [*report.parts]
        if out is not None:
            from ronda.bench.report.driven import driven_section
            from ronda.bench.report.section import keep_section

            kept = keep_section(out, "drive", about, driven_section(made, report))
            parts.append(f"kept: {kept} (ronda report {out})")
        show(report._replace(parts=parts, notes=new), as_json=as_json)

    if files or once:
        tell(drive.decided(read_snapshot("slurm", files)) if files else drive.once(act=act))
        return 0
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: drive.stopping.set())
    drive.run(tell, note, act=act)
    return 0
