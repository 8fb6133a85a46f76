"""``ronda import-solution``: a plan from another solver's solution of a round."""

from pathlib import Path

import click

from ronda.cli.command import taught
from ronda.cli.options import (
    plan_options,
    policy_options,
    round_argument,
    time_limit_option,
)


@taught(
    "import-solution",
    "ronda import-solution round.json model.sol --out plan.json",
    "ronda import-solution round.json model.sol --policy 'milp(elastic=false)' --json",
)
@round_argument
@click.argument("solution", type=click.Path(path_type=Path), metavar="SOLUTION")
@policy_options
@time_limit_option(60.0, "For all of it.")
@plan_options
@click.pass_obj
def command(
    entered: float,
    source: str,
    solution: Path,
    policy: str,
    extra: str,
    time_limit: float,
    out: Path | None,
    as_json: bool,
) -> int:
    """Make a checked plan from a SOLUTION that any solver found for the exported model of a ROUND.

    `ronda export` writes the model; use the same --policy and --with. SOLUTION is a file from HiGHS
    (raw or pretty), SCIP, CBC or Gurobi: each line has the name of a variable and its value. A
    solution that breaks a limit of the model is refused. The plan's gap is relative to the bound of
    ronda's own price engine.
    """
    from ronda.cli.load import milp_question
    from ronda.cli.load import round_ as load_round
    from ronda.cli.output import show
    from ronda.instances.clock import Deadline
    from ronda.instances.files.json import write
    from ronda.solvers.decision.by_file import allocate_by_file
    from ronda.solvers.decision.plan import to_plan
    from ronda.solvers.plan_report import plan_report
    from ronda.solvers.prices.dual import Search

    round_, deadline = load_round(source), Deadline(time_limit, started=entered)
    seen, question, milp = milp_question(round_, policy, extra)
    search = Search(gap=milp.gap, deadline=deadline)
    choice = allocate_by_file(question, solution, search, exact=milp.exact)
    plan = seen.told(to_plan(question, choice, deadline))
    if out is not None:
        write(plan, out)
    report = plan_report(source, round_, plan, milp, seed=0, elapsed_s=deadline.elapsed())
    return show(report, as_json=as_json)
