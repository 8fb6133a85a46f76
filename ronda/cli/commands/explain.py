"""``ronda explain``: why no plan keeps the limits of a round."""

import click

from ronda.cli.command import taught
from ronda.cli.options import (
    json_option,
    policy_option,
    round_argument,
    time_limit_option,
    with_option,
)


@taught("explain", "ronda explain round.json", "ronda explain round.json --with rules.py --json")
@round_argument
@policy_option
@with_option
@time_limit_option(
    60.0, "For the search; when it is over, the set may hold more constraints than it must."
)
@json_option
@click.pass_obj
def command(
    entered: float, source: str, policy: str, extra: str, time_limit: float, as_json: bool
) -> int:
    """Say which named constraints of a ROUND conflict, or that a plan exists.

    The exit code is 1 if no plan can keep all limits.
    """
    from ronda.cli.load import milp_question
    from ronda.cli.load import round_ as load_round
    from ronda.cli.output import emit, tell
    from ronda.formulations.clock import Deadline

    deadline = Deadline(time_limit, started=entered)
    round_ = load_round(source)

    from ronda.formulations.allocation.rows import shortages
    from ronda.solvers.decision.by_file import model_of
    from ronda.solvers.exact.infeasible import conflicts
    from ronda.solvers.exact.read import linear_form

    _, question, _ = milp_question(round_, policy, extra)
    model = model_of(question, exact=False)
    found = [*question.gave, *shortages(model.case)] or conflicts(linear_form(model), deadline)
    if as_json:
        named = [{"constraints": c.constraints, "message": c.message} for c in found]
        emit({"round": round_.name, "feasible": not found, "conflicts": named})
    elif not found:
        tell(f"{source}: feasible: some plan keeps every limit")
    for conflict in () if as_json else found:
        tell(f"{', '.join(conflict.constraints)}: {conflict.message}")
    return 1 if found else 0
