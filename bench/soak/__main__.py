"""The command line of the soak: ``python -m ronda.bench.soak --rounds 100000``."""

import sys
from collections.abc import Sequence

import click
import pandas as pd
from rich.console import Console
from rich.progress import Progress

from ronda.bench.program import CONTEXT, run_program
from ronda.bench.soak.endure import MOST_GROWTH, Lived, endure, growth
from ronda.bench.soak.mischief import KINDS
from ronda.bench.study.harness import markdown, option, policies, words
from ronda.solvers.registry import POLICIES

QUICK = {"genetic": "genetic(generations=3)", "evolve": "evolve(generations=3)"}
"""Searches that are cut short: it is the number of decisions that counts."""

COUNTS = ("rounds", "fallbacks", "mischief", "unexplained", "unnoticed", "violations")


def soak(
    rounds: int, every: int, policies: Sequence[str], mischief: Sequence[str], seed: int
) -> int:
    """Print a row for each policy, what failed, and the memory; return the exit code."""
    lived: list[Lived] = []
    with Progress(console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task("rounds", total=rounds)
        for each in endure(rounds, policies, every, mischief, seed):
            lived.append(each)
            bars.advance(bar, each.rounds)
    click.echo(table(lived), nl=False)
    failed = [each for each in lived if each.failed]
    for each in failed:
        click.echo(f"FAILED: {each}")
    grown = growth(lived)
    judged = "too few days to judge" if grown is None else f"{grown:.3f} times the early one"
    click.echo(f"memory: {lived[-1].rss_mib:.1f} MiB at the end, {judged}")
    return int(bool(failed) or (grown or 0.0) > MOST_GROWTH)


def table(lived: Sequence[Lived]) -> str:
    """Return what each policy went through, in Markdown."""
    days = pd.DataFrame(lived)
    rows = []
    for policy, own in [*days.groupby("policy", sort=False), ("all", days)]:
        counts = [f"{len(own):,}", *(f"{own[name].sum():,}" for name in COUNTS)]
        rows.append(
            [str(policy), *counts, f"{(own.error != '').sum()}", f"{own.slowest_s.max():.2f}"]
        )
    return markdown(["policy", "days", *COUNTS, "errors", "slowest (s)"], rows)


command = click.Command(
    "soak",
    CONTEXT,
    soak,
    params=[
        option("--rounds", type=click.IntRange(1), default=100_000, help="Decisions, at least."),
        option("--every", type=click.IntRange(1), default=50, help="Rounds to a misbehaviour."),
        policies(",".join(QUICK.get(name, name) for name in POLICIES)),
        words("--mischief", tuple(KINDS), "What a policy does then, in turn."),
        option("--seed", type=click.IntRange(0), default=0, help="Of the first day."),
    ],
    help="Drive all policies through random days of small clusters, in one process.\n\n"
    "Jobs come and go, nodes sleep and wake, limits drop, estimates are wrong, and now and then a "
    "policy breaks its contract. Every fallback must have a reason, every schedule pass the "
    "checker, and memory stay flat once a fifth of the rounds is over; the exit code is 1 if not.",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    return run_program(command, "python -m ronda.bench.soak", arguments)


if __name__ == "__main__":
    sys.exit(main())
