"""``ronda boosts``: the priority boosts that give a queue of Kueue the order of a policy."""

import click

from ronda.cli.clusters import cluster_options
from ronda.cli.command import taught
from ronda.cli.options import decided_by, json_option, seed_option, time_limit_option
from ronda.cli.output import show, tell
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError, RondaError
from ronda.instances.plan import SolutionStatus


@taught(
    "boosts",
    "ronda boosts --kueue kueue.json pods.json",
    "ronda boosts --kueue kueue.json pods.json --policy qssf --band -100 100",
)
@click.argument("files", metavar="FILES...", nargs=-1, required=True)
@cluster_options
@decided_by("prices", "Its order.")
@click.option(
    "--band",
    type=(click.IntRange(-(2**31), 0), click.IntRange(0, 2**31 - 1)),
    default=(-100, 0),
    metavar="LOW HIGH",
    help="Boosts that may be given, or removed. One above 0 may let a workload preempt others.",
)
@time_limit_option(10.0, "For the plan and its order together.")
@seed_option
@json_option
@click.pass_obj
def command(
    entered: float,
    files: tuple[str, ...],
    now_s: float | None,
    policy: str,
    band: tuple[int, int],
    time_limit: float,
    seed: int,
    as_json: bool,
    system: str | None = None,
) -> int:
    """Print the priority boosts that would give queues of Kueue a policy's order (a dry run).

    FILES are those of 'ronda snapshot --kueue'. Workloads are ordered within their ClusterQueue and
    priority, by the annotation kueue.x-k8s.io/priority-boost (Kueue 0.17 and later, with the
    feature gate PriorityBoost). ronda connects to nothing: the printed lines with kubectl do.
    """
    from ronda.horizon.solve import solve_valid
    from ronda.hosts.clusters.kubernetes.boosts import boosts, boosts_report
    from ronda.hosts.clusters.order import start_tiers
    from ronda.hosts.clusters.read import read_texts, text_of
    from ronda.instances.snapshots.rounds import round_of
    from ronda.solvers.registry import policy as make_policy

    if system != "kueue":
        raise InputError("ronda boosts", f"--{system}" if system else "no scheduler", "--kueue")
    deadline, made = Deadline(time_limit, started=entered), make_policy(policy)
    texts = [text_of(file) for file in files]
    seen = read_texts("kueue", texts, now_s)
    round_ = round_of(seen)
    plan = solve_valid(round_, made, seed=seed, deadline=deadline.share(1 / 3))
    if plan.status in (SolutionStatus.FALLBACK, SolutionStatus.NONE):
        raise RondaError(f"{made.name} found no plan: {plan.record.message}")
    tiers = start_tiers(made, round_, plan, deadline=deadline, seed=seed)
    report = boosts_report(made.name, tiers, boosts(texts, seen, tiers, *band))
    show(report._replace(notes=[*seen.noted.lines()]), as_json=as_json)
    for line in () if as_json else report.fields["commands"]:
        tell(line)
    return 0
