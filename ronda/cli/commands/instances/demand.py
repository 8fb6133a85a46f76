"""``ronda instances demand``: how many nodes a schedule used, as a demand series."""

from pathlib import Path

import click

from ronda.cli.command import taught
from ronda.cli.options import Source, write_options


@taught(
    "demand",
    "ronda instances demand venus-vcvgl results/schedule.json.zst --out before.json",
    "ronda run venus-vcvgl --policy 'ces-queue(history=before.json)' --period 600",
)
@click.argument("source", metavar="INSTANCE", type=Source())
@click.argument("schedule", metavar="SCHEDULE", type=click.Path(path_type=Path))
@write_options
def command(source: str, schedule: Path, out: Path, as_json: bool) -> None:
    """Tell how many nodes SCHEDULE used on INSTANCE, every ten minutes.

    Such a series is the HISTORY of policies that let nodes sleep, and what `ronda sleep` decides
    on.
    """
    from ronda.cli.load import instance, kind_of
    from ronda.cli.output import emit, tell
    from ronda.instances.errors import InputError
    from ronda.instances.files.json import fingerprint, read, write
    from ronda.instances.schedule import Schedule
    from ronda.systems.helios.trace import demand_of

    found, answer = instance(source), read(schedule)
    if not isinstance(answer, Schedule):
        raise InputError(str(schedule), kind_of(answer), f"a schedule of {source}")
    if answer.fingerprint != fingerprint(found):
        raise InputError(str(schedule), "a schedule of another instance", f"one of {source}")
    made = demand_of(found, answer)
    write(made, out)
    most, mean = max(made.needed), made.needed_nodes.mean()
    if as_json:
        emit({"out": str(out), "steps": len(made.needed), "most": most, "mean": float(mean)})
        return
    tell(f"{out}: {made.days:.1f} days, {mean:.1f} of {made.total[0]} nodes needed, at most {most}")
