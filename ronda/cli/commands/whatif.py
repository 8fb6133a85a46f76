"""``ronda whatif``: what changes to a cluster or its jobs would do to a round's plan."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ronda.bench.figures.table import Table, write_tables
from ronda.cli.command import FORCED, taught
from ronda.cli.load import subject
from ronda.cli.options import (
    FOLDER,
    SECONDS,
    Parsed,
    PolicyName,
    Source,
    force_option,
    json_option,
    seed_option,
    time_limit_option,
    with_option,
)
from ronda.cli.output import can_draw, display, emit, note, refuse_existing, tell
from ronda.cli.progress import Bars, bar
from ronda.instances.base import NonNegative
from ronda.instances.cluster import Pool
from ronda.instances.errors import InputError
from ronda.instances.files.json import read_part, write
from ronda.instances.instance import Instance
from ronda.instances.job import Allocation, Job
from ronda.instances.plan import Plan
from ronda.instances.round import Round

if TYPE_CHECKING:
    from ronda.questions.whatif.answer import WhatIf
    from ronda.questions.whatif.changes import Change
    from ronda.questions.whatif.sizes import Size

JOBS = 3
"""Jobs that the table names of those that gain, and of those that lose."""


FILES = (
    "table.md",
    "table.tex",
    "table.csv",
    "whatif.png",
    "whatif.csv",
    "round.json",
    "plan.json",
)


def _more(text: str) -> tuple[str, int] | None:
    match = re.fullmatch(r"\s*(\S+?)\s*:\s*([+-]\d{1,7})\s*", text, re.ASCII)
    return (match[1], int(match[2])) if match else None


def _cap(text: str) -> tuple[float | None, float | None] | None:
    """Return watts, or a share of the cap that there is."""
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


MORE = Parsed("change", "TYPE:+N or TYPE:-N, as in A100:+8", _more)
CAP = Parsed("cap", "a share of the cap such as 0.9, or watts such as 30kW", _cap)
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
    metavar="TYPE:+N",
    help="GPUs more of a type, on nodes like those of its largest group that draw nothing while "
    "they are not used; or fewer (TYPE:-N). VC/TYPE where several partitions have the type.",
)
@click.option(
    "--power-cap",
    type=CAP,
    multiple=True,
    metavar="SHARE|WATTS",
    help="Another power cap: a share of the one that there is (0.9), or watts (30000W, 30kW).",
)
@click.option(
    "--energy", type=SHARE, multiple=True, metavar="SHARE", help="A share of the energy budget."
)
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
@click.option(
    "--policy",
    type=PolicyName(),
    default="prices",
    show_default=True,
    help="Who decides: prices, milp or genetic, with parameters as of 'ronda solve'; one objective "
    "for all plans.",
)
@with_option
@click.option(
    "--at",
    type=SECONDS,
    metavar="SECONDS",
    help="Of an instance: which decision of a run. Without it, the one with most live jobs.",
)
@seed_option
@time_limit_option(10.0, "For each plan.")
@click.option(
    "--out",
    type=FOLDER,
    metavar="FOLDER",
    help="Keep table, picture, and the round with all changes and its plan.",
)
@force_option
@json_option
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

    Values are those of the round as it is, so that objectives compare: more GPUs, a higher cap or
    another job never show a loss. What the prices had foretold stands beside what was found. Every
    option for a change may be given again.

    Of an INSTANCE it is a round of its run by the policy. How a whole run changes is a comparison
    of instances: 'ronda run', 'ronda compare'.
    """
    if out is not None and out.exists():
        for name in FILES:
            refuse_existing(out / name, force=FORCED in click.get_current_context().meta)
    if not any(given.values()):
        raise InputError("ronda whatif", "no change", "at least one, such as --gpus A100:+8")
    from ronda.questions.whatif.answer import whatif
    from ronda.solvers.registry import policy as make_policy
    from ronda.solvers.rules import with_rules

    made, before, round_ = with_rules(make_policy(policy), extra, "--with"), None, subject(source)
    if isinstance(round_, Instance):
        from ronda.questions.whatif.moment import moment

        with bar(f"{source}: run by {made.name}") as progress:
            round_, before = moment(
                round_, made, at_s=at, seed=seed, time_limit_s=time_limit, progress=progress
            )
    elif at is not None:
        raise InputError("--at", "a round", "an instance: a round has one time")
    changes = _changes(round_, given)
    with Bars() as bars:
        found = whatif(
            round_,
            changes,
            policy=made,
            seed=seed,
            time_limit_s=time_limit,
            initial=before,
            progress=lambda share, what: bars.update("plans", share, what),
        )
    tables = [_table(source, round_, found)]
    if any(outcome.shifts for outcome in found.outcomes):
        tables.append(_shifts(round_, found))
    tables += [_sizes(job, sizes) for job, sizes in found.sizes.items()]
    if out is not None:
        _keep(out, source, found, tables)
    if as_json:
        emit(_fields(round_, found))
    else:
        display(*tables)
        if out is not None:
            tell(f"table, picture, round and plan with all changes: {out}")
    failed = [outcome for outcome in found.outcomes if outcome.why]
    for outcome in failed:
        note(f"warning: {outcome.change}: {outcome.why}")
    return int(bool(failed))


class _NewJob(Job, frozen=True, kw_only=True, gc=False):
    """A job of which submission need not be said: below 0, it is now."""

    submit_s: NonNegative = -1.0


def _changes(round: Round, given: dict[str, Any]) -> "list[Change]":
    """Return the changes of the options."""
    from ronda.questions.whatif import changes as known

    def job(path: Path) -> Job:
        new = read_part(path, _NewJob)
        fields = {name: getattr(new, name) for name in Job.__struct_fields__}
        if new.truth is not None:
            raise InputError(f"{path}, truth", "one", "none: of a round nobody knows it")
        return Job(**fields | {"submit_s": round.now_s if new.submit_s < 0 else new.submit_s})

    return [
        *(known.Gpus(*each) for each in given["gpus"]),
        *(known.PowerCap(*each) for each in given["power_cap"]),
        *(known.EnergyShare(each) for each in given["energy"]),
        *(known.WithoutRack(each) for each in given["remove_rack"]),
        *(known.WithoutNode(each) for each in given["remove_node"]),
        *(known.NewJob(job(each)) for each in given["job"]),
        *(known.WithoutJob(each) for each in given["remove_job"]),
    ]


def _on(pools: tuple[Pool, ...], allocation: Allocation | None) -> str:
    if allocation is None:
        return "waits"
    option = allocation.option
    clock = "" if option.clock == 1 else f" at {100 * option.clock:.0f} %"
    return f"{option.gpus} {pools[option.pool].gpu_type.name}{clock}"


def _table(source: str, round: Round, found: "WhatIf") -> Table:
    header = ("", "objective", "found", "foretold", "jobs run", "GPUs used")
    rows = [("as it is", f"{found.objective:.6g}", "", "", *_used(found.base))]
    rows += [
        (outcome.change, outcome.why, "", "", "", "")
        if outcome.why
        else (
            outcome.change,
            f"{outcome.objective:.6g}",
            _signed(outcome.found, found.objective),
            _signed(outcome.foretold, found.objective),
            *_used(outcome.plan),
        )
        for outcome in found.outcomes
    ]
    notes = (
        "all on the scale of the round as it is; foretold: by the prices of its plan",
        f"no plan can find more than is foretold and {max(0.0, found.slack):.2g}",
    )
    at = f"{source} at {round.now_s:,.0f} s: {len(round.jobs)} jobs on {_gpus(round)} GPUs"
    return Table(at, header, tuple(rows), notes)


def _signed(value: float, whole: float) -> str:
    """Write a difference; what rounding leaves of none is 0."""
    return f"{value:+.4g}" if abs(value) > 1e-9 * abs(whole) else "0"


def _shifts(round: Round, found: "WhatIf") -> Table:
    """Return who gains and loses most by each change, and how many others do."""
    pools, rows = round.cluster.topology.pools, []
    for outcome in found.outcomes:
        gain = [shift for shift in outcome.shifts if shift.gain > 0]
        lose = [shift for shift in reversed(outcome.shifts) if shift.gain < 0]
        for own in (gain, lose):
            rows += [
                (
                    outcome.change,
                    shift.job,
                    _on(pools, shift.before),
                    _on(pools, shift.after),
                    f"{shift.gain:+.4g}",
                )
                for shift in own[:JOBS]
            ]
            if rest := own[JOBS:]:
                total = sum(shift.gain for shift in rest)
                rows.append((outcome.change, f"{len(rest)} more", "", "", f"{total:+.4g}"))
    header = ("", "job", "as it is", "then", "gain")
    return Table("who gains and who loses most", header, tuple(rows))


def _gpus(round: Round) -> int:
    return sum(pool.gpus for pool in round.cluster.topology.pools)


def _used(plan: Plan) -> tuple[str, str]:
    gpus = sum(a.option.own_gpus for a in plan.allocations.values())
    return str(len(plan.allocations)), f"{gpus:g}"


def _sizes(job: str, sizes: "tuple[Size, ...]") -> Table:
    rows = []
    for size in sizes:
        there = size.allocation.placement if size.allocation is not None else ()
        lost = [f"{name} (-{loss:.3g})" for name, loss in size.losers.items()]
        rows.append(
            (
                f"{size.gpus} {size.pool}",
                "yes" if size.starts else "no",
                f"{size.worth:.4g}",
                "" if size.cost is None else f"{size.cost:.4g}",
                " ".join(f"{node}×{gpus}" for node, gpus in there),
                ", ".join(lost[:JOBS]) + (f", … ({len(lost)})" if len(lost) > JOBS else ""),
                size.row,
                size.why if size.cost is None else "",
            )
        )
    header = ("GPUs", "starts", "worth", "costs others", "on node×GPUs", "of them", "row", "why")
    return Table(f"{job}: each size that it could have", header, tuple(rows))


def _fields(round: Round, found: "WhatIf") -> dict[str, Any]:
    pools = round.cluster.topology.pools
    outcomes = [
        {
            "change": outcome.change,
            "objective": outcome.objective,
            "found": outcome.found,
            "foretold": outcome.foretold,
            "status": outcome.plan.status,
            "why": outcome.why,
            "shifts": [
                {
                    "job": shift.job,
                    "before": _on(pools, shift.before),
                    "after": _on(pools, shift.after),
                    "gain": shift.gain,
                }
                for shift in outcome.shifts
            ],
        }
        for outcome in found.outcomes
    ]
    return {
        "round": round.name,
        "now_s": round.now_s,
        "policy": found.base.policy,
        "objective": found.objective,
        "slack": found.slack,
        "status": found.base.status,
        "prices": found.base.prices,
        "outcomes": outcomes,
        "sizes": found.sizes,
    }


def _keep(out: Path, source: str, found: "WhatIf", tables: list[Table]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    write_tables(tables, out)
    last = found.outcomes[-1]
    write(last.round, out / "round.json")
    write(last.plan, out / "plan.json")
    if can_draw():
        from ronda.bench.figures.whatif import draw_whatif

        draw_whatif(source, found, out / "whatif")
