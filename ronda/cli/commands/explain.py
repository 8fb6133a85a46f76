"""``ronda explain``: the reason why no plan keeps the limits of a round."""

import click

from ronda.cli.command import taught
from ronda.cli.load import answerer, milp_question
from ronda.cli.load import round_ as load_round
from ronda.cli.options import json_option, policy_options, round_argument, time_limit_option
from ronda.cli.output import show
from ronda.instances.clock import Deadline


@taught(
    "explain",
    "ronda explain round.json",
    "ronda explain round.json --with rules.py --json",
    "ronda explain round.json --fix",
)
@round_argument
@policy_options
@time_limit_option(
    60.0, "For the search; when it is over, the set may hold more constraints than it must."
)
@click.option(
    "--fix",
    is_flag=True,
    help="Say the smallest change of each kind that makes it feasible: GPUs, power, energy, a "
    "limit, the time at which nodes leave, or jobs given up.",
)
@json_option
@click.pass_obj
def command(
    entered: float,
    source: str,
    policy: str,
    extra: str,
    time_limit: float,
    fix: bool,
    as_json: bool,
) -> int:
    """Say which named constraints of a ROUND conflict, or that a plan exists.

    The exit code is 1 if no plan can keep all limits, and 3 if the search runs out of time.
    """
    deadline = Deadline(time_limit, started=entered)
    round_ = load_round(source)

    from ronda.solvers.decision.conflicts import conflicts_of, conflicts_report  # loads HiGHS

    _, question, made = milp_question(round_, policy, extra)
    found = conflicts_of(question, deadline)
    report = conflicts_report(source, round_.name, found)
    if fix and found:
        report = answerer("fix")(report, round_, made, question, found, deadline)
    return show(report, as_json=as_json)
