"""``ronda explain``: why no plan keeps the limits of a round."""

from typing import TYPE_CHECKING

import click

from ronda.cli.command import taught
from ronda.cli.options import (
    json_option,
    policy_options,
    round_argument,
    time_limit_option,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ronda.instances.plan import Conflict

CODES = {True: 0, False: 1, None: 3}
"""The exit code if some plan keeps every limit, if none does, and if that is not known."""


@taught("explain", "ronda explain round.json", "ronda explain round.json --with rules.py --json")
@round_argument
@policy_options
@time_limit_option(
    60.0, "For the search; when it is over, the set may hold more constraints than it must."
)
@json_option
@click.pass_obj
def command(
    entered: float, source: str, policy: str, extra: str, time_limit: float, as_json: bool
) -> int:
    """Say which named constraints of a ROUND conflict, or that a plan exists.

    The exit code is 1 if no plan can keep all limits, and 3 if that is not known in time.
    """
    from ronda.cli.load import milp_question
    from ronda.cli.load import round_ as load_round
    from ronda.cli.output import show
    from ronda.instances.clock import Deadline
    from ronda.instances.tables.table import Report

    deadline = Deadline(time_limit, started=entered)
    round_ = load_round(source)

    from ronda.formulations.allocation.model_data import whole_case
    from ronda.formulations.allocation.rows import separable, shortages
    from ronda.formulations.allocation.separable import normalise
    from ronda.solvers.exact.infeasible import conflicts
    from ronda.solvers.exact.linear_form import form_of

    _, question, _ = milp_question(round_, policy, extra)
    case = whole_case(question.round, question.table, question.values)
    found: Sequence[Conflict] | None = [*question.gave, *shortages(case)]
    if not found:
        problem, _ = normalise(separable(case, both_limits=True))
        form = form_of(problem, [state.job.id for state in case.table.jobs])
        found = conflicts(form, deadline)
    feasible = None if found is None else not found
    named = [{"constraints": c.constraints, "message": c.message} for c in found or ()]
    fields = {"round": round_.name, "feasible": feasible, "conflicts": named}
    words = [f"{', '.join(conflict.constraints)}: {conflict.message}" for conflict in found or ()]
    if feasible is None:
        words = [f"{source}: not known in time: no plan was found, and no conflict"]
    elif feasible:
        words = [f"{source}: feasible: some plan keeps every limit"]
    return show(Report(fields, words, code=CODES[feasible]), as_json=as_json)
