"""``ronda solve``: decide one round."""

import shlex
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from ronda.cli.alternatives import NUMBER, SHARE, files, show
from ronda.cli.command import taught
from ronda.cli.load import round_ as load_round
from ronda.cli.options import (
    force_option,
    json_option,
    plan_option,
    policy_option,
    round_argument,
    seed_option,
    time_limit_option,
    with_option,
)
from ronda.cli.output import display, emit, facts, note, table, tell_json
from ronda.cli.progress import waiting
from ronda.horizon.solve import solve_valid
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError
from ronda.instances.files.canonical import encode
from ronda.instances.files.json import write
from ronda.instances.plan import Plan, SolutionStatus, StopReason
from ronda.instances.round import Round
from ronda.instances.violation import Violation
from ronda.solvers.applied_rules import broken_rules
from ronda.solvers.plugins import declared
from ronda.solvers.registry import policy as make_policy
from ronda.solvers.rules import rules_of, with_rules

ROWS = 40
"""Jobs that the table shows of a large plan."""


@taught(
    "solve",
    "ronda solve round.json --policy milp --time-limit 1",
    "ronda solve round.json --policy 'genetic(generations=50)' --seed 3 --out plan.json",
    "ronda solve round.json --policy prices --explain j03",
    "ronda solve round.json --policy 'milp(highs.mip_heuristic_effort=0.2)' --verbose",
    "ronda solve round.json --with rules.py",
    "ronda solve - < round.json > plan.json",
)
@round_argument
@policy_option
@with_option
@time_limit_option(
    60.0, "For all of it: start-up, reading, building, solving, answering. The clock is running."
)
@seed_option
@click.option(
    "--explain",
    multiple=True,
    metavar="JOB",
    help="Say by prices why a job got what it got (again for more jobs).",
)
@click.option(
    "--alternatives",
    type=NUMBER,
    metavar="N",
    help="Find the N best different plans instead of one (milp, cp-sat, sia-like): at least one "
    "job has another option. With --out plan.json the second is plan-2.json, and so on.",
)
@click.option(
    "--within",
    type=SHARE,
    default=0.01,
    show_default=True,
    metavar="SHARE",
    help="By which share of the best plan's objective alternatives may fall short.",
)
@click.option("--verbose", is_flag=True, help="Show the solver's own log on stderr as it runs.")
@plan_option
@force_option
@json_option
@click.pass_obj
def command(
    entered: float,
    source: str,
    policy: str,
    extra: str,
    time_limit: float,
    seed: int,
    explain: tuple[str, ...],
    alternatives: int | None,
    within: float,
    verbose: bool,
    out: Path | None,
    as_json: bool,
) -> int:
    """Decide one ROUND: who runs now, on which GPUs, how fast.

    Objectives compare between plans for one ROUND: the default one, rank, is scaled by all its
    jobs and GPUs.

    ROUND is a file, a packaged round, or - for JSON on stdin; then the plan goes to stdout as one
    line of JSON, so that any program can use ronda as its solver.
    """
    round_ = load_round(source)
    made = with_rules(make_policy(policy), extra, "--with")
    explainer = _question("explain")(round_, made, explain) if explain else None
    deadline = Deadline(time_limit, started=entered)
    log = sys.stderr if verbose else None
    if alternatives is not None:
        names = files(out, alternatives, explain)
        plans = _question("alternatives")(round_, made, alternatives, within, seed, deadline, log)
        for name, each in zip(names, plans, strict=False):
            write(each, name)
        if plans:
            return show(round_, plans, as_json=as_json)
    with nullcontext() if verbose else waiting(f"{source}: {made.name}", time_limit):
        plan = solve_valid(round_, made, deadline=deadline, seed=seed, log=log)
    why = [] if explainer is None else explainer.explain(plan)
    if out is not None:
        write(plan, out)
    if source == "-" and out is None and not explain and not as_json:
        tell_json(encode(plan))  # as `--out` would write it
        found = [*check(round_, plan), *broken_rules(rules_of(made), round_, plan)]
        return _verdict(source, plan, found, made)
    parts = [] if explainer is None or as_json else explainer.shown(why)
    how: dict[str, Any] = {"seed": seed, "why": why, "parts": parts, "made": made}
    return report(source, round_, plan, deadline, as_json=as_json, **how)


def _question(name: str) -> Any:
    """Import what answers a question about a round, by the name of its option; it loads HiGHS."""
    if (found := declared("answers").get(name)) is None:
        raise InputError(f"--{name}", "no ronda.questions", "a ronda with this package")
    return found.load(f"--{name}")


def report(
    source: str,
    round_: Round,
    plan: Plan,
    deadline: Deadline,
    *,
    as_json: bool,
    seed: int = 0,
    why: Sequence[Any] = (),
    parts: Sequence[Any] = (),
    made: object,
) -> int:
    """Show a policy's plan and its check, the user's own rules included; return the exit code.

    `why` goes into the JSON, `parts` are displayed.
    """
    found = [*check(round_, plan), *broken_rules(rules_of(made), round_, plan)]
    if as_json:
        _emit(round_, plan, seed, len(found), deadline, why)
    else:
        _show(round_, plan, deadline, parts)
    return _verdict(source, plan, found, made)


OF_PLAN = ("policy", "objective", "bound", "gap", "stop", "status", "prices")


def _emit(
    round_: Round,
    plan: Plan,
    seed: int,
    violations: int,
    deadline: Deadline,
    why: Sequence[Any],
) -> None:
    record = plan.record
    emit(
        {
            "round": round_.name,
            **{name: getattr(plan, name) for name in OF_PLAN},
            "dual_bound": plan.details.dual_bound,
            "proven_by": plan.details.proven_by,
            "times": {name: getattr(record, name) for name in ("build_s", "solve_s", "extract_s")}
            | {"total_s": deadline.elapsed()},
            "seed": seed,
            "jobs": len(round_.jobs),
            "running": len(plan.allocations),
            "options": record.options,
            "nodes": record.nodes,
            "power_w": _watts(round_, plan),
            "violations": violations,
            "message": record.message,
        }
        | ({"explanation": why} if why else {})
    )


def _verdict(source: str, plan: Plan, violations: Sequence[Violation], made: object) -> int:
    for violation in violations:
        note(f"violation: {violation}")
    if plan.stop is StopReason.INFEASIBLE:
        words = f"; {_explaining(source, made)} says which ones conflict"
        note(f"error: no plan keeps every limit{'' if rules_of(made).seeing_racks else words}")
    elif plan.status is SolutionStatus.FALLBACK:
        why = plan.record.message if _failed(plan) else "found nothing in time"
        note(f"warning: {plan.policy}: {why}; what runs keeps running")
    else:
        for conflict in plan.details.conflicts:
            note(f"warning: {conflict.message}")
    infeasible = plan.stop is StopReason.INFEASIBLE or plan.status is SolutionStatus.NONE
    return 1 if violations or infeasible or _failed(plan) else 0


def _explaining(source: str, made: object) -> str:
    """Return the command that explains why a policy finds no plan: about the same options."""
    words, own = ["ronda", "explain", source], rules_of(made)
    if not getattr(made, "elastic", True):
        words += ["--policy", "milp(elastic=false)"]
    return shlex.join([*words, *(["--with", own.path] if own else [])])


def _failed(plan: Plan) -> bool:
    """Return whether another plan took the place of the policy's own, and not for want of time."""
    return plan.status is SolutionStatus.FALLBACK and plan.stop is not StopReason.TIME_LIMIT


def _show(round_: Round, plan: Plan, deadline: Deadline, more: Sequence[Any]) -> None:
    parts = [_plan_table(round_, plan), facts(_facts(round_, plan, deadline.elapsed()))]
    if plan.prices or plan.details.unpriced:
        parts.append(_price_table(plan))
    display(*parts, *more)


def _price_table(plan: Plan) -> Any:
    made = table("one more unit of", "is worth")
    for name, value in sorted(plan.prices.items(), key=lambda item: -abs(item[1])):
        made.add_row(name, f"{value:z.6g}")
    for name in plan.details.unpriced:
        made.add_row(name, "not known here")
    return made


def _plan_table(round_: Round, plan: Plan) -> Any:
    made = table("job", "now", "pool", "node×GPUs", "GPUs", "clock", "batch", "work/s", "W", left=4)
    pools = round_.cluster.topology.pools
    running = [state for state in round_.jobs if state.job.id in plan.allocations]
    for state in running[:ROWS]:
        allocation = plan.allocations[state.job.id]
        option = allocation.option
        change = "goes on" if state.allocation == allocation else "changes"
        if state.allocation is None:
            change = "starts"
        made.add_row(
            state.job.id,
            change,
            pools[option.pool].name,
            " ".join(f"{node}×{gpus}" for node, gpus in allocation.placement),
            str(option.gpus),
            f"{option.clock:g}",
            f"{option.batch:g}",
            f"{option.rate:.4g}",
            f"{option.power_w:,.0f}" if _has_watts(round_, state.job.profile, option.pool) else "–",
        )
    if len(running) > ROWS:
        made.caption = f"… and {len(running) - ROWS:,} more jobs (--out FILE keeps them all)"
        made.caption_justify = "left"
    return made


def _watts(round_: Round, plan: Plan) -> float | None:
    """Return what the cluster draws under a plan; None if no watts of its jobs are known."""
    held, profiles = plan.allocations, {s.job.id: s.job.profile for s in round_.jobs}
    if held and not any(_has_watts(round_, profiles[j], a.option.pool) for j, a in held.items()):
        return None
    from ronda.formulations.watts import drawn_w  # NumPy, which help needs not

    return drawn_w(round_, held, plan.asleep)


def _has_watts(round_: Round, profile: str, pool: int) -> bool:
    """Return whether it is known what a busy GPU of a pool draws."""
    kind = round_.cluster.topology.pools[pool].gpu_type
    return kind.name in round_.profiles[profile].power


def _facts(round_: Round, plan: Plan, total_s: float) -> list[tuple[str, str]]:
    used = round(sum(a.option.own_gpus for a in plan.allocations.values()))
    stopped = sum(1 for s in round_.running if s.job.id not in plan.allocations)
    record = plan.record
    rows = [
        ("policy", plan.policy),
        (
            "jobs",
            f"{len(plan.allocations):,} run, {len(round_.jobs) - len(plan.allocations):,} wait"
            + (f" ({stopped} of them stopped now)" if stopped else ""),
        ),
        ("GPUs", f"{used:,} of {round_.cluster.gpus:,}"),
    ]
    if (watts := _watts(round_, plan)) is not None:
        cap_w = round_.power_cap_w
        rows.append(("power", f"{watts:,.0f} W" + ("" if cap_w is None else f" of {cap_w:,.0f} W")))
    numbers = (("objective", plan.objective), ("bound", plan.bound))
    rows += [(name, f"{value:z.8g}") for name, value in numbers if value is not None]
    if plan.gap is not None:
        rows.append(("gap", f"{plan.gap:z.2e}"))
    if plan.details.proven_by:
        rows.append(("proven by", plan.details.proven_by))
    rows.append(("result", f"{plan.status.value} (stopped: {plan.stop.value})"))
    if record.message and (not _failed(plan) or plan.stop is StopReason.INFEASIBLE):
        rows.append(("solver", record.message))
    rows.append(
        (
            "seconds",
            f"build {record.build_s:.3f}, solve {record.solve_s:.3f}, "
            f"extract {record.extract_s:.3f}, all {total_s:.3f}",
        )
    )
    return rows
