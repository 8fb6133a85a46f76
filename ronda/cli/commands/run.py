"""``ronda run``: drive a policy over a whole instance."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from ronda.bench.figures.columns import COLUMNS, METRICS, SEARCHES
from ronda.bench.runs.single import RunFigures, drive, drive_in_folder, eaten
from ronda.bench.runs.specs import BoundEffort, RunCase, cases
from ronda.cli.command import taught
from ronda.cli.load import instance as load_instance
from ronda.cli.options import (
    SECONDS,
    bound_option,
    figures_option,
    instance_argument,
    json_option,
    knowledge_option,
    policy_option,
    predictor_option,
    seed_option,
    time_limit_option,
)
from ronda.cli.output import can_draw, show
from ronda.cli.progress import Bars, bar
from ronda.instances.errors import InterruptedRunError
from ronda.instances.files.json import fingerprint
from ronda.instances.instance import Instance, Knowledge
from ronda.instances.schedule import Schedule
from ronda.instances.tables.table import Report, Table


@taught(
    "run",
    "ronda run venus-vcvly --policy fifo",
    "ronda run pollux-1 --policy 'milp(objective=rank)' --out pollux-milp",
)
@instance_argument
@policy_option
@seed_option
@time_limit_option(10.0, "For each decision.")
@click.option(
    "--period",
    type=SECONDS,
    help="Decide this often; without it, as the instance says.",
)
@knowledge_option
@predictor_option
@bound_option
@click.option(
    "--isolated",
    is_flag=True,
    help="Decide in a process of its own: a solver that crashes costs a decision, not the run.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Keep schedule, metrics and figures; a killed run goes on from there.",
)
@figures_option
@json_option
def command(
    source: str,
    policy: str,
    seed: int,
    time_limit: float,
    period: float | None,
    knowledge: Knowledge,
    predictor: Path | None,
    bound: BoundEffort,
    isolated: bool,
    out: Path | None,
    figures: bool,
    as_json: bool,
) -> int:
    """Drive a policy over the whole horizon of INSTANCE, a packaged name or a file.

    With --out, the folder gets schedule.json.zst, metrics.json, and figures with their numbers.
    Decisions are recorded as they are made, so the same command resumes after a kill.

    Queue policies take seconds, and policies that solve or search in every round take minutes;
    progress goes to stderr, in a log once a minute.
    """
    instance = load_instance(source)
    loaded = {source: (instance, fingerprint(instance))}
    (case,) = cases(
        loaded,
        (policy,),
        (seed,),
        time_limit_s=time_limit,
        period_s=period,
        levels=(knowledge,),
        predictor=predictor,
        bound=bound,
    )
    measured = _measured(instance, case, out, isolated, figures=figures)
    notes = [f"violation: {each}" for each in measured.wrong]
    notes += [f"warning: {each}" for each in measured.gave]
    kept = [] if out is None else [f"schedule, metrics and figures: {out}"]
    code = 1 if measured.metrics["violations"] else 0
    parts = [*_parts(measured.metrics), *kept]
    return show(Report(measured.metrics, parts, notes, code), as_json=as_json)


def _measured(
    instance: Instance, case: RunCase, out: Path | None, isolated: bool, *, figures: bool
) -> RunFigures:
    def draw(schedule: Schedule, folder: Path) -> None:
        if figures and can_draw():
            from ronda.bench.figures.run import draw_run

            draw_run(instance, {case.label: schedule}, folder)

    with Bars() as bars, bar(f"{case.instance} {case.policy}") as progress:
        watch = partial(bars.update, f"bound of {case.instance}")
        if out is None:
            return drive(instance, case, progress=progress, isolated=isolated, bounding=watch)[1]
        try:
            return drive_in_folder(
                instance,
                case,
                out,
                progress=progress,
                isolated=isolated,
                bounding=watch,
                draw=draw,
            )
        except KeyboardInterrupt:
            raise InterruptedRunError(f"interrupted; the same command goes on from {out}") from None


def _parts(metrics: dict[str, Any]) -> list[str | Table]:
    names = ("instance", "policy", "seed", "jobs")
    facts = {name: v if isinstance(v := metrics[name], str) else f"{v:,}" for name in names}
    bound = ["bound_mean_jct_s"] * bool(metrics["bound_mean_jct_s"])
    last = ("size_error", "size_coverage", "rate_error", *bound, "violations", "wall_s")
    shown = (*COLUMNS, *SEARCHES, *(METRICS[key] for key in last))
    facts |= {c.title: c.write(metrics[c.key]) for c in shown if c.key in metrics}
    shares = {metrics["policy"]: [metrics.get("restart_share") or 0.0]}
    return [Table.facts(facts, numbers=True), *metrics.get("notes", ()), *eaten(shares)]
