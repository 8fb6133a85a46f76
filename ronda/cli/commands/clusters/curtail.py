"""``ronda curtail``: the supply curve of a cluster's flexible power."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import click

from ronda.cli.command import taught
from ronda.cli.load import subject
from ronda.cli.options import (
    Parsed,
    Source,
    at_option,
    decided_by,
    lasting,
    output_options,
    picture_option,
    seed_option,
    time_limit_option,
)
from ronda.cli.output import show
from ronda.cli.progress import Bars, bar
from ronda.instances.errors import InputError
from ronda.instances.instance import Instance


def _less(text: str) -> float | None:
    """Return watts, or a share up to 1."""
    match = re.fullmatch(r"\s*(\d{0,9}\.?\d{1,9})\s*(%|W|kW)\s*", text, re.ASCII)
    number = float(match[1]) if match else 0.0
    if match is None or number <= 0:
        return None
    if match[2] == "%":
        return number / 100.0 if number <= 100 else None
    watts = number * (1000.0 if match[2] == "kW" else 1.0)
    return watts if watts > 1 else None


DURATION = Parsed("time", "a time above 0 such as 30, 15min or 3h", lasting)
LESS = Parsed("share|watts", "a share such as 25% or watts such as 5kW, above 1 W", _less)


@taught(
    "curtail",
    "ronda curtail round-power --for 3h --less 25% --picture curve.png",
    "ronda curtail round-power --within 30 --gpu-hour 2.5",
    "ronda curtail philly-energy-small --at 28800 --for 1h --less 5kW --drive",
)
@click.argument("source", metavar="ROUND|INSTANCE", type=Source())
@click.option(
    "--for",
    "for_s",
    type=DURATION,
    default="1h",
    help="Length of the window, in seconds or as in 15min or 3h.",
)
@click.option(
    "--within",
    "within_s",
    type=DURATION,
    help="Only what can be done within this time: lower clocks, and stops of jobs whose pause of a "
    "restart fits into it.",
)
@click.option(
    "--less",
    type=LESS,
    multiple=True,
    help="A reduction to look at besides: 25%, 5kW. May be repeated.",
)
@click.option(
    "--points",
    type=click.IntRange(1, 1000),
    default=10,
    help="About how many points of the curve, in round steps.",
)
@click.option(
    "--check",
    "check_at",
    type=click.IntRange(0, 1000),
    default=0,
    help="Solve anew at this many of them, and compare with the bound.",
)
@click.option(
    "--gpu-hour",
    type=click.FloatRange(0, min_open=True),
    metavar="PRICE",
    help="Price of a GPU-hour, so that prices of a kWh are in money.",
)
@decided_by(
    "prices", "Who makes the plan as it is, and those that are solved anew: prices or milp."
)
@at_option
@click.option(
    "--drive",
    is_flag=True,
    help="Of an instance: also run all of it with and without each --less in the window.",
)
@seed_option
@time_limit_option(10.0, "For each plan.")
@picture_option("Draw the curve as a PNG, with its numbers as CSV beside it.")
@output_options
def command(
    source: str,
    less: tuple[float, ...],
    gpu_hour: float | None,
    policy: str,
    at: float | None,
    drive: bool,
    seed: int,
    time_limit: float,
    picture: Path | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Say what each kilowatt less over a window costs, who bears it, and at which price it pays.

    The curve starts from the plan as it is, whose power counts as 0 kW less. One pass over falling
    power caps gives plans, and from the prices of power a bound on what any plan is worth. The
    reduction holds for the window; what is lost may be caught up later, which --drive measures.
    """
    from ronda.questions.curtail.answer import curtail
    from ronda.questions.curtail.driven import Driven, driven
    from ronda.questions.curtail.report import curtail_report
    from ronda.solvers.registry import policy as make_policy

    made, before, about = make_policy(policy), None, subject(source)
    how: dict[str, Any] = {"seed": seed, "time_limit_s": time_limit}
    if not isinstance(about, Instance):
        if at is not None or drive:
            option = "--at" if at is not None else "--drive"
            raise InputError(option, "a round", "an instance: a round has one time")
        round_ = about
    else:
        from ronda.questions.whatif.moment import moment

        with bar(f"{source}: run by {made.name}") as progress:
            round_, before = moment(about, made, at_s=at, progress=progress, **how)
    if drive and not less:
        raise InputError("--drive", "no reduction", "at least one, such as --less 25%")
    runs: tuple[Driven, ...] = ()
    with Bars() as bars:
        how["progress"] = partial(bars.update, "plans")
        found = curtail(round_, less=less, policy=made, initial=before, **how, **given)
        if drive and isinstance(about, Instance):
            wanted = sorted(each * found.drawn_w if each <= 1 else each for each in less)
            caps_w, by = [found.drawn_w - less_w for less_w in wanted], found.borne_by
            when = {"at_s": found.round.now_s, "for_s": found.for_s}
            runs = driven(about, made, caps_w, borne_by=by, **how | when)
    report = curtail_report(source, found, gpu_hour, runs)
    if picture is not None and found.sheds:
        from ronda.bench.figures.answers.curtail import curtail as shown
        from ronda.bench.figures.draw import save_chart

        save_chart(shown(source, found, gpu_hour), picture.with_suffix(""))
        report = report.added(f"picture: {picture}")
    return show(report, as_json=as_json)
