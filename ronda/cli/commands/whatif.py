"""``ronda whatif``: the effect of changes to a cluster or its jobs on a round's plan."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import click

from ronda.bench.tables import write_tables
from ronda.cli.command import taught
from ronda.cli.load import subject
from ronda.cli.options import (
    FOLDER,
    Parsed,
    Source,
    at_option,
    decided_by,
    output_options,
    seed_option,
    time_limit_option,
    with_option,
)
from ronda.cli.output import can_draw, refuse_existing, show
from ronda.cli.progress import Bars, bar
from ronda.instances.errors import InputError
from ronda.instances.files.json import write
from ronda.instances.instance import Instance

TABLES = ("table.md", "table.tex", "table.csv")
FILES = (*TABLES, "whatif.png", "whatif.csv", "round.json", "plan.json")


def _more(text: str) -> tuple[str, int] | None:
    match = re.fullmatch(r"\s*(\S+?)\s*:\s*([+-]\d{1,7})\s*", text, re.ASCII)
    return (match[1], int(match[2])) if match else None


def _cap(text: str) -> tuple[float | None, float | None] | None:
    """Return watts, or a share of the current cap."""
    match = re.fullmatch(r"\s*(\d*\.?\d+(?:e\d+)?)\s*(k?W)?\s*", text, re.ASCII | re.IGNORECASE)
    number = float(match[1]) if match else 0.0
    if match is None or not 0 < number < 1e15:
        return None
    if match[2] is None:
        return (None, number) if number <= 10 else None
    return number * (1000.0 if match[2].lower() == "kw" else 1.0), None


def _share(text: str) -> float | None:
    found = _cap(text)
    return None if found is None else found[1]


MORE = Parsed("type:+n", "TYPE:+N or TYPE:-N, as in A100:+8", _more)
CAP = Parsed("share|watts", "a share of the cap such as 0.9, or watts such as 30kW", _cap)
SHARE = Parsed("share", "a share from above 0 to 10, such as 0.9", _share)


@taught(
    "whatif",
    "ronda whatif round.json --gpus a100:+8 --power-cap 0.9 --remove-rack r2",
    "ronda whatif round.json --job new.json --out whatif-out",
    "ronda whatif pods-mixed --at 3000 --gpus v100:+8 --gpus v100:-8",
)
@click.argument("source", metavar="ROUND|INSTANCE", type=Source())
@click.option(
    "--gpus",
    type=MORE,
    multiple=True,
    help="GPUs more of a type, on nodes like those of its largest group that draw nothing while "
    "they are not used; or fewer (TYPE:-N). VC/TYPE where several partitions have the type.",
)
@click.option(
    "--power-cap",
    type=CAP,
    multiple=True,
    help="Another power cap: a share of the one that there is (0.9), or watts (30000W, 30kW).",
)
@click.option("--energy", type=SHARE, multiple=True, help="A share of the energy budget.")
@click.option("--remove-rack", multiple=True, metavar="NAME", help="Do without a rack's nodes.")
@click.option(
    "--remove-node", type=int, multiple=True, metavar="NUMBER", help="Do without a node, from 0."
)
@click.option(
    "--job",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A job more: JSON with the fields of a Job (docs/formats.md); of submit_s, now is the "
    "default. All its sizes are tried.",
)
@click.option("--remove-job", multiple=True, metavar="ID", help="Do without a job.")
@decided_by(
    "prices",
    "Who decides: prices, milp or genetic, with parameters as of 'ronda solve'; one objective for "
    "all plans.",
)
@with_option
@at_option
@seed_option
@time_limit_option(10.0, "For each plan.")
@click.option(
    "--out",
    type=FOLDER,
    metavar="FOLDER",
    help="Keep table, picture, and the round with all changes and its plan.",
)
@output_options
def command(
    source: str,
    policy: str,
    extra: str,
    at: float | None,
    seed: int,
    time_limit: float,
    out: Path | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Say what changes would do to a ROUND's plan: each alone, and all of them together.

    Values are those of the unchanged round, so that objectives are comparable: more GPUs, a higher
    cap or another job never show a loss. The effects that the prices predicted are shown next to
    the actual ones. Every option for a change can be repeated.

    With an INSTANCE, the round is taken from its run by the policy. To see how a whole run changes,
    compare instances with 'ronda run' or 'ronda compare'.
    """
    if out is not None and out.exists():
        for name in FILES:
            refuse_existing(out / name)
    if not any(given.values()):
        raise InputError("ronda whatif", "no change", "at least one, such as --gpus A100:+8")
    from ronda.questions.whatif.answer import whatif
    from ronda.questions.whatif.report import whatif_report
    from ronda.solvers.registry import policy as make_policy
    from ronda.solvers.rules import with_rules

    made, before, round_ = with_rules(make_policy(policy), extra, "--with"), None, subject(source)
    how: dict[str, Any] = {"seed": seed, "time_limit_s": time_limit}
    if isinstance(round_, Instance):
        from ronda.questions.whatif.moment import moment

        with bar(f"{source}: run by {made.name}") as progress:
            round_, before = moment(round_, made, at_s=at, progress=progress, **how)
    elif at is not None:
        raise InputError("--at", "a round", "an instance: a round has one time")
    from ronda.questions.whatif import changes as known

    changes: list[known.Change] = [
        *(known.Gpus(*each) for each in given["gpus"]),
        *(known.PowerCap(*each) for each in given["power_cap"]),
        *(known.EnergyShare(each) for each in given["energy"]),
        *(known.WithoutRack(each) for each in given["remove_rack"]),
        *(known.WithoutNode(each) for each in given["remove_node"]),
        *(known.NewJob(known.read_job(each, round_.now_s)) for each in given["job"]),
        *(known.WithoutJob(each) for each in given["remove_job"]),
    ]
    with Bars() as bars:
        how["progress"] = partial(bars.update, "plans")
        found = whatif(round_, changes, policy=made, initial=before, **how)
    report = whatif_report(source, round_, found)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_tables(report.tables, out)
        write(found.outcomes[-1].round, out / "round.json")
        write(found.outcomes[-1].plan, out / "plan.json")
        if can_draw():
            from ronda.bench.figures.answers.whatif import whatif as shown
            from ronda.bench.figures.draw import save_chart

            save_chart(shown(source, found), out / "whatif")
        report = report.added(f"table, picture, round and plan with all changes: {out}")
    return show(report, as_json=as_json)
