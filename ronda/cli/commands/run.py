"""``ronda run``: drive a policy over a whole instance."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ronda.cli.command import Taught
from ronda.cli.errors import InterruptedRunError
from ronda.cli.options import (
    Seconds,
    instance_argument,
    json_option,
    policy_option,
    seed_option,
    time_limit_option,
)

if TYPE_CHECKING:
    from ronda.bench.runs.specs import Case
    from ronda.instances.instance import Instance
    from ronda.instances.schedule import Schedule


@click.command(
    name="run",
    cls=Taught,
    examples=(
        "ronda run venus-vcvly --policy fifo",
        "ronda run pollux-1 --policy 'milp(objective=rank)' --out pollux-milp",
    ),
)
@instance_argument
@policy_option
@seed_option
@time_limit_option(10.0, "For each decision.")
@click.option(
    "--period",
    type=Seconds(),
    metavar="SECONDS",
    help="Decide this often; without it, as the instance says.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Keep schedule, metrics and figures; a killed run goes on from there.",
)
@json_option
def command(
    source: str,
    policy: str,
    seed: int,
    time_limit: float,
    period: float | None,
    out: Path | None,
    as_json: bool,
) -> int:
    """Drive a policy over the whole horizon of INSTANCE, a packaged name or a file.

    With --out, the folder gets schedule.json.zst, metrics.json, and figures with their numbers.
    Decisions are recorded as they are made: after a kill, the same command goes on.
    """
    from ronda.bench.runs.specs import cases
    from ronda.cli.load import instance as load_instance
    from ronda.cli.output import emit
    from ronda.instances.files.json import fingerprint

    instance = load_instance(source)
    loaded = {source: (instance, fingerprint(instance))}
    (case,) = cases(loaded, (policy,), (seed,), time_limit_s=time_limit, period_s=period)
    run = Run(instance, case)
    metrics = run.in_memory() if out is None else run.in_folder(out)
    if as_json:
        emit(metrics)
    else:
        show(metrics, out)
    return 1 if metrics["violations"] else 0


@dataclass(frozen=True)
class Run:
    """One policy, one instance, one seed."""

    instance: "Instance"
    case: "Case"

    def in_memory(self) -> dict[str, Any]:
        """Drive the policy and keep nothing but the metrics."""
        return self._metrics(*self._drive(None))

    def in_folder(self, out: Path) -> dict[str, Any]:
        """Drive the policy, or go on where an earlier command stopped, and write all results."""
        import msgspec

        from ronda.bench.runs.folder import claim
        from ronda.instances.files.json import write
        from ronda.instances.files.storage import store

        case = self.case
        about = {
            name: msgspec.to_builtins(getattr(case, name))
            for name in case.__struct_fields__
            if name not in {"source", "label"}  # how it was written does not matter
        }
        done, journal = out / "metrics.json", out / "journal.jsonl"
        with claim(out, "run", about):
            if done.exists():
                return msgspec.json.decode(done.read_bytes(), type=dict[str, Any])
            try:
                schedule, wall_s = self._drive(journal)
            except KeyboardInterrupt:
                raise InterruptedRunError(f"the same command goes on from {out}") from None
            write(schedule, out / "schedule.json.zst")
            self._draw(schedule, out / "figures")
            metrics = self._metrics(schedule, wall_s)
            store(done, msgspec.json.format(msgspec.json.encode(metrics)) + b"\n")
            journal.unlink()  # all of it is in the schedule now
        return metrics

    def _drive(self, journal: Path | None) -> "tuple[Schedule, float]":
        """Run to the end; returns the schedule and the seconds that all decisions took together.

        What an earlier process had decided counts with the time that it took then.
        """
        from ronda.cli.progress import bar
        from ronda.solvers.horizon.driver import run
        from ronda.solvers.registry import policy

        case = self.case
        resumed = journal is not None and journal.exists()
        began = time.perf_counter()
        with bar(f"{case.instance} {case.policy}") as progress:
            schedule = run(
                self.instance,
                policy(case.policy, **case.config),
                seed=case.seed,
                time_limit_s=case.time_limit_s,
                cadence=case.cadence(self.instance),
                journal=journal,
                progress=progress,
            )
        wall_s = time.perf_counter() - began
        if resumed:
            wall_s = sum(record.solve_s + record.overhead_s for record in schedule.rounds)
        return schedule, wall_s

    def _metrics(self, schedule: "Schedule", wall_s: float) -> dict[str, Any]:
        """Measure and check the schedule; violations are told on stderr."""
        from ronda.bench.runs.measure import measure
        from ronda.cli.output import note

        measured = measure(self.instance, schedule, wall_s=wall_s)
        for violation in measured.violations:
            note(f"violation: {violation}")
        return measured.metrics

    def _draw(self, schedule: "Schedule", folder: Path) -> None:
        """Draw the figures."""
        from ronda.bench.figures.run import draw_run

        draw_run(self.instance, {self.case.label: schedule}, folder)


def show(metrics: dict[str, Any], out: Path | None) -> None:
    """Print the metrics for people."""
    from ronda.bench.figures.table import COLUMNS
    from ronda.cli.output import display, table

    made = table("", "", left=1)
    made.show_header = False
    for name in ("instance", "policy", "seed", "jobs"):
        value = metrics[name]
        made.add_row(name, value if isinstance(value, str) else f"{value:,}")
    for column in COLUMNS:
        if column.key in metrics:
            made.add_row(column.title, column.write(metrics[column.key]))
    made.add_row("bound on mean JCT (s)", f"{metrics['bound_mean_jct_s']:,.1f}")
    made.add_row("violations", str(metrics["violations"]))
    made.add_row("wall time (s)", f"{metrics['wall_s']:.2f}")
    display(made)
    if out is not None:
        click.echo(f"schedule, metrics and figures: {out}")
