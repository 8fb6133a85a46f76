"""What different plans of a round are worth, and what differs among them."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import click

from ronda.cli.command import FORCED
from ronda.cli.options import Parsed
from ronda.cli.output import display, emit, refuse_existing, table
from ronda.instances.errors import InputError
from ronda.instances.job import Allocation
from ronda.instances.plan import Plan
from ronda.instances.round import Round

JOBS = 6
"""Jobs that the table names of a plan."""


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and 1 <= int(text) <= 1000 else None


def _share(text: str) -> float | None:
    try:
        share = float(text)
    except ValueError:
        return None
    return share if 0 <= share <= 1 else None


NUMBER = Parsed("number", "a whole number from 1 to 1000", _number)
SHARE = Parsed("share", "a share from 0 to 1", _share)


def files(out: Path | None, number: int, explain: Collection[str]) -> list[Path]:
    """Return the files of so many plans, ``plan.json``, ``plan-2.json``, ...; none without a name.

    InputError, before any work, for one that exists, and for what alternatives do not explain.
    """
    if explain:
        raise InputError("--explain", "--alternatives", "one of them: alternatives have no prices")
    if out is None:
        return []
    stem, dot, suffix = out.name.partition(".json")
    others = [out.with_name(f"{stem}-{n}{dot}{suffix}") for n in range(2, number + 1)]
    for each in others:
        refuse_existing(each, force=FORCED in click.get_current_context().meta)
    return [out, *others]


def differences(round_: Round, plan: Plan, best: Plan) -> dict[str, str]:
    """Return what jobs do in a plan, by job, where it is not what they do in the best one."""
    pools = [pool.name for pool in round_.cluster.topology.pools]
    found = {}
    for job in (state.job.id for state in round_.jobs):
        own, other = (_way(each.allocations.get(job), pools) for each in (plan, best))
        if own != other and own and other:
            changed = [what for what in own if own[what] != other[what]]
            found[job] = ", ".join(f"{what} {other[what]} → {own[what]}" for what in changed)
        elif own != other:
            found[job] = "runs" if own else "waits"
    return found


def _way(given: Allocation | None, pools: Sequence[str]) -> dict[str, str]:
    """Return how a job runs, in words; empty if it does not."""
    if given is None:
        return {}
    option = given.option
    numbers = {"GPUs": option.gpus, "clock": option.clock, "batch": option.batch}
    return {"pool": pools[option.pool], "span": option.span} | {
        what: f"{number:g}" for what, number in numbers.items()
    }


def show(round_: Round, plans: Sequence[Plan], *, as_json: bool) -> int:
    """Show what plans are worth, and in what they differ from the best; return the exit code."""
    best = plans[0].objective or 0.0
    told: list[dict[str, Any]] = [
        {
            "objective": plan.objective,
            "below_best": (best - (plan.objective or 0.0)) / abs(best) if best else 0.0,
            "running": len(plan.allocations),
            "differs": differences(round_, plan, plans[0]),
        }
        for plan in plans
    ]
    if as_json:
        proven = {"policy": plans[0].policy, "bound": plans[0].bound}
        emit({"round": round_.name} | proven | {"alternatives": told})
        return 0
    made = table("plan", "objective", "below the best", "jobs that run", "what differs", left=0)
    made.columns[-1].justify = "left"
    for number, record in enumerate(told, 1):
        differs = [f"{job}: {words}" for job, words in record["differs"].items()]
        more = [f"… and {len(differs) - JOBS:,} more jobs"] * (len(differs) > JOBS)
        short = f"{100 * record['below_best']:.3g} %"
        words = "; ".join([*differs[:JOBS], *more]) or "the best"
        worth, running = f"{record['objective']:.8g}", str(record["running"])
        made.add_row(str(number), worth, short, running, words)
    display(made)
    return 0
