"""The report on a plan of a round: its jobs, facts, prices and violations."""

import shlex
from collections import defaultdict

from ronda.formulations.placement.node_reasons import stranded
from ronda.formulations.watts import drawn_w
from ronda.instances.check.checker import check
from ronda.instances.plan import Plan, SolutionStatus, StopReason
from ronda.instances.round import Round
from ronda.instances.rules.problem import SHOWN
from ronda.instances.site import GPUS
from ronda.instances.tables.numbers import on_nodes
from ronda.instances.tables.table import Report, Table
from ronda.solvers.applied_rules import broken_rules
from ronda.solvers.rules import rules_of

ROWS = 40
"""The number of jobs that the table shows for a large plan."""


def plan_report(
    source: str, round: Round, plan: Plan, made: object, *, seed: int, elapsed_s: float
) -> Report:
    """Return the report on the plan of the policy `made` for the round `source`, with its check.

    The user's own rules are checked as well. The exit code is 1 if a rule is broken, if no plan was
    found, or if the policy failed.
    """
    violations = [*check(round, plan), *broken_rules(rules_of(made), round, plan)]
    record, watts = plan.record, _watts(round, plan)
    of_plan = ("policy", "objective", "bound", "gap", "stop", "status", "prices")
    fields = {
        "round": round.name,
        **{name: getattr(plan, name) for name in of_plan},
        "dual_bound": plan.details.dual_bound,
        "proven_by": plan.details.proven_by,
        "times": {
            "build_s": record.build_s,
            "solve_s": record.solve_s,
            "extract_s": record.extract_s,
            "total_s": elapsed_s,
        },
        "seed": seed,
        "jobs": len(round.jobs),
        "running": len(plan.allocations),
        "options": record.options,
        "nodes": record.nodes,
        "power_w": watts,
        "violations": len(violations),
        "message": record.message,
    }
    notes = [f"violation: {violation}" for violation in violations]
    infeasible = plan.stop is StopReason.INFEASIBLE or plan.status is SolutionStatus.NONE
    if plan.stop is StopReason.INFEASIBLE:
        words = f"; {_explaining(source, made)} says which ones conflict"
        seeing = rules_of(made).seeing_racks
        notes.append(f"error: no plan keeps every limit{'' if seeing else words}")
    elif plan.status is SolutionStatus.FALLBACK:
        why = record.message if _failed(plan) else "found nothing in time"
        notes.append(f"warning: {plan.policy}: {why}; what runs keeps running")
    else:
        notes += [f"warning: {conflict.message}" for conflict in plan.details.conflicts]
    parts = (_jobs(round, plan), _facts(round, plan, watts, elapsed_s), *_prices(plan))
    return Report(fields, parts, notes, int(bool(violations) or infeasible or _failed(plan)))


def _explaining(source: str, made: object) -> str:
    """Return the command that explains, for the same options, why a policy finds no plan."""
    words, own = ["ronda", "explain", source], rules_of(made)
    if not getattr(made, "elastic", True):
        words += ["--policy", "milp(elastic=false)"]
    return shlex.join([*words, *(["--with", own.path] if own else [])])


def _failed(plan: Plan) -> bool:
    """Return whether a fallback replaced the policy's plan for any reason but lack of time."""
    return plan.status is SolutionStatus.FALLBACK and plan.stop is not StopReason.TIME_LIMIT


def _jobs(round: Round, plan: Plan) -> Table:
    pools, rows = round.cluster.topology.pools, []
    running = [state for state in round.jobs if state.job.id in plan.allocations]
    for state in running[:ROWS]:
        allocation = plan.allocations[state.job.id]
        option = allocation.option
        kept = "goes on" if state.allocation == allocation else "changes"
        known = _has_watts(round, state.job.profile, option.pool)
        rows.append(
            {
                "job": state.job.id,
                "now": "starts" if state.allocation is None else kept,
                "pool": pools[option.pool].name,
                "node×GPUs": on_nodes(allocation.placement),
                "GPUs": option.gpus,
                "clock": f"{option.clock:g}",
                "batch": f"{option.batch:g}",
                "work/s": f"{option.rate:.4g}",
                "W": f"{option.power_w:,.0f}" if known else "–",
            }
        )
    more = [f"… and {len(running) - ROWS:,} more jobs (--out FILE keeps them all)"]
    return Table.of("", rows, more * (len(running) > ROWS), left=(0, 1, 2, 3))


def _watts(round: Round, plan: Plan) -> float | None:
    """Return the watts that the cluster draws under a plan, or None if no job's watts are known."""
    held, profiles = plan.allocations, {s.job.id: s.job.profile for s in round.jobs}
    if held and not any(_has_watts(round, profiles[j], a.option.pool) for j, a in held.items()):
        return None
    return drawn_w(round, held, plan.asleep)


def _has_watts(round: Round, profile: str, pool: int) -> bool:
    """Return whether the watts of a busy GPU in a pool are known."""
    kind = round.cluster.topology.pools[pool].gpu_type
    return kind.name in round.profiles[profile].power


def _facts(round: Round, plan: Plan, watts: float | None, elapsed_s: float) -> Table:
    record, run = plan.record, len(plan.allocations)
    used = sum(a.option.own_gpus for a in plan.allocations.values())
    stopped = sum(1 for s in round.running if s.job.id not in plan.allocations)
    ends = f" ({stopped} of them stopped now)" if stopped else ""
    facts = {
        "policy": plan.policy,
        "jobs": f"{run:,} run, {len(round.jobs) - run:,} wait{ends}",
        "GPUs": f"{used:,.0f} of {round.cluster.gpus:,}",
    }
    if (kept := stranded(round, plan.allocations)) is not None:
        facts["stranded"] = kept
    if watts is not None:
        cap_w = round.power_cap_w
        facts["power"] = f"{watts:,.0f} W" + ("" if cap_w is None else f" of {cap_w:,.0f} W")
    numbers = {"objective": plan.objective, "bound": plan.bound}
    facts |= {name: f"{value:z.8g}" for name, value in numbers.items() if value is not None}
    if plan.gap is not None:
        facts["gap"] = f"{plan.gap:z.2e}"
    for stage in plan.details.stages:
        cost = stage.reached * plan.prices.get(stage.name, 0.0)
        reached = f"{stage.reached:z.8g} of at most {stage.bound:z.8g}"
        facts[stage.name] = f"{reached}, which costs the others {cost:z.6g}"
    if plan.details.owed and plan.objective is not None:
        facts["worth"] = f"{plan.objective - plan.details.owed_worth:.8g} without what is owed"
        facts["owed"] = _owed(round, plan)
    if borrowed := _borrowed(round, plan):
        facts["borrowed"] = f"{borrowed}: the first to go when their owners ask"
    if plan.details.proven_by:
        facts["proven by"] = plan.details.proven_by
    facts["result"] = f"{plan.status.value} (stopped: {plan.stop.value})"
    if record.message and (not _failed(plan) or plan.stop is StopReason.INFEASIBLE):
        facts["solver"] = record.message
    facts["seconds"] = (
        f"build {record.build_s:.3f}, solve {record.solve_s:.3f}, "
        f"extract {record.extract_s:.3f}, all {elapsed_s:.3f}"
    )
    return Table.facts(facts)


def _owed(round: Round, plan: Plan) -> str:
    """Return what tenants get of what is owed to them, and which get less."""
    inner = {tenant.parent for tenant in round.site.tenants}
    rows = [(name.partition("[")[2][:-1], pair) for name, pair in plan.details.owed.items()]
    leaves = [(name, pair) for name, pair in rows if name.rpartition(",")[0] not in inner]
    leaves = [(name, pair) for name, pair in leaves if name.endswith(f",{GPUS}")] or leaves
    given, owed = (sum(pair[k] for _, pair in leaves) for k in (0, 1))
    short = [f"{name} {has:g} of {most:g}" for name, (has, most) in leaves if has < most]
    text = f"{given:g} of {owed:g} GPUs"
    return text + (f"; not given: {_some(short)}" if short else "")


def _borrowed(round: Round, plan: Plan) -> str:
    """Return how many GPUs tenants hold beyond what is guaranteed to them, by tenant."""
    used: defaultdict[str, float] = defaultdict(float)
    for state in round.jobs:
        given = plan.allocations.get(state.job.id)
        if given is not None and state.job.tenant is not None:
            used[state.job.tenant] += given.option.own_gpus
    has = {t.name: q.guaranteed for t in round.site.tenants for q in t.quotas if q.of == GPUS}
    more = [(name, n, has.get(name)) for name, n in used.items()]
    return _some([f"{t} {n - own:g} of {n:g}" for t, n, own in more if own is not None and n > own])


def _some(words: list[str]) -> str:
    """Return the first of some words, and how many there are if there are more."""
    more = [f"… ({len(words)} in all)"] if len(words) > SHOWN else []
    return ", ".join([*words[:SHOWN], *more])


def _prices(plan: Plan) -> list[Table]:
    """Return the table of the value of one more unit of each resource, if any value is known."""
    dearest = sorted(plan.prices.items(), key=lambda item: -abs(item[1]))
    worth = {name: f"{value:z.6g}" for name, value in dearest}
    worth |= dict.fromkeys(plan.details.unpriced, "not known here")
    header = ("one more unit of", "is worth")
    return [Table("", header, tuple(worth.items()))] if worth else []
