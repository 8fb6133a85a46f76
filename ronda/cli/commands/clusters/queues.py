"""``ronda queues``: who holds, borrows and waits for GPUs, and what quota is worth."""

import click

from ronda.cli.clusters import cluster_options, in_front
from ronda.cli.command import taught
from ronda.cli.options import decided_by, json_option, seed_option, time_limit_option, with_option
from ronda.cli.output import show
from ronda.cli.progress import waiting
from ronda.instances.clock import Deadline


@taught(
    "queues",
    "ronda queues --slurm squeue.json sinfo.json associations.txt",
    "ronda queues round.json --json",
)
@click.argument("files", metavar="FILES...", nargs=-1, required=True)
@cluster_options
@decided_by(
    "prices(gap=0.01)",
    "Whose prices say what quota is worth: prices or milp, with parameters as of 'ronda solve'.",
)
@with_option
@time_limit_option(10.0, "For the plan that the prices are of.")
@seed_option
@json_option
@click.pass_obj
def command(
    entered: float,
    files: tuple[str, ...],
    now_s: float | None,
    policy: str,
    extra: str,
    time_limit: float,
    seed: int,
    as_json: bool,
    system: str | None = None,
) -> int:
    """Say what each tenant holds, is owed, borrows (and from whom) and waits for.

    FILES are a round, or what the tools of a scheduler write, as for 'ronda why'. Without tenants,
    the same is said of users. What a GPU more of a guarantee or a limit is worth follows from the
    prices of a plan. The exit code is 3 if no plan was found in time.
    """
    deadline = Deadline(time_limit, started=entered)
    source = " ".join(files)
    round_ = in_front(files, system, now_s).needed_round()

    from ronda.questions.queues.answer import queues
    from ronda.questions.queues.report import queues_report
    from ronda.solvers.registry import policy as make_policy
    from ronda.solvers.rules import with_rules

    made = with_rules(make_policy(policy), extra, "--with")
    with waiting(f"{source}: {made.name}", time_limit):
        found = queues(round_, made, seed=seed, deadline=deadline)
    return show(queues_report(source, round_, found), as_json=as_json)
