"""Better results for the registry: a better plan or a tighter bound replaces, never a worse one."""

import tempfile
from pathlib import Path

import msgspec

from ronda.bench.runs.single import drive
from ronda.bench.runs.specs import cases
from ronda.formulations.bounds.clairvoyant import bounds
from ronda.horizon.solve import solve_valid
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError
from ronda.instances.files import json as files
from ronda.instances.instance import DECLARED, Instance, Knowledge
from ronda.instances.plan import Plan, PlanDetails, SolutionStatus, SolveRecord
from ronda.instances.round import Round
from ronda.solvers.contract import Capability, Policy
from ronda.solvers.decision.plan import AGGREGATE
from ronda.solvers.registry import config_of, policy
from ronda.solvers.versions import versions
from tools.registry import models
from tools.registry.check import below, packaged_round, worth
from tools.registry.records import (
    BestPlan,
    BestRun,
    Bound,
    By,
    InstanceEntry,
    RoundEntry,
    plan_file,
)


def new_round(name: str, folder: Path) -> RoundEntry:
    """Return the entry of a round that has none: its model, which goes into the folder if small.

    The optimum of the model is a bound.
    """
    round, bound = packaged_round(name), None
    with tempfile.TemporaryDirectory() as scratch:
        model = models.write_model(round, Path(scratch))
        written = Path(scratch) / f"{round.name}.mps"
        if model.columns <= models.SOLVED:
            models.pack(written, folder)
            model = msgspec.structs.replace(model, optimum=models.optimum(written))
    if model.optimum is not None:
        by = By.now("HiGHS, whole model", 0, {"highspy": versions()["highspy"]})
        bound = Bound(value=model.optimum, of="counts", by=by)
    return RoundEntry(fingerprint=files.fingerprint(round), bound=bound, model=model)


def new_instance(instance: Instance) -> InstanceEntry:
    """Return the entry of an instance that has none: its bound."""
    return InstanceEntry(
        fingerprint=files.fingerprint(instance), bound_mean_jct_s=bounds(instance).mean_jct_s
    )


def trial(spec: str, seed: int, level: Knowledge = DECLARED) -> str:
    """Return the name of a trial, by which a later update leaves it out."""
    known = "" if level == DECLARED else f" [{level}]"
    return f"{spec}{known} seed {seed}, ronda {versions()['ronda']}"


def proves(made: Policy) -> bool:
    """Return whether a policy's bound is one of `worth`: the same objective over all options."""
    usual, own = config_of(policy("prices")), config_of(made)
    same = all(
        own.get(key, usual[key]) == usual[key]
        for key in usual.keys() - {"gap", "joint", "placement"}
    )
    able = Capability.BOUND in made.capabilities and Capability.ARRAYS not in made.capabilities
    return same and able and own.get("placement") != "exact"


def solved(
    name: str, entry: RoundEntry, folder: Path, spec: str, seed: int, time_limit_s: float
) -> RoundEntry:
    """Let a policy decide a round, and take over what is better."""
    round, made = packaged_round(name), policy(spec)
    plan = solve_valid(round, made, seed=seed, deadline=Deadline(time_limit_s))
    by = By.now(spec, seed, plan.record.versions)
    entry = msgspec.structs.replace(entry, tried=entry.tried | {trial(spec, seed): time_limit_s})
    if plan.status in {SolutionStatus.NONE, SolutionStatus.FALLBACK}:
        return entry
    if plan.bound is not None and proves(made):
        of_counts = config_of(made).get("placement") == AGGREGATE
        bound = Bound(value=plan.bound, of="counts" if of_counts else "nodes", by=by)
        if entry.bound is None or below(bound.value, entry.bound.value):
            entry = msgspec.structs.replace(entry, bound=bound)
    return taken(round, entry, folder, name, plan, by)


def taken(
    round: Round, entry: RoundEntry, folder: Path, name: str, plan: Plan, by: By
) -> RoundEntry:
    """Take over a plan that is worth more than the best one; refuse one that breaks a rule."""
    broken = check(round, plan)
    if broken:
        raise InputError(f"{name}, {by.policy}", f"a plan that breaks a rule: {broken[0]}", "none")
    value = worth(round, plan)
    if entry.best is not None and not below(entry.best.objective, value):
        return entry
    kept = msgspec.structs.replace(
        plan,
        policy=by.policy,
        objective=value,
        bound=None,
        prices={},
        memory={},
        details=PlanDetails(),
        record=SolveRecord(seed=by.seed, versions=by.versions),
    )
    files.write(kept, plan_file(folder, name))
    return msgspec.structs.replace(entry, best=BestPlan(objective=value, by=by))


def driven(
    instance: Instance,
    name: str,
    entry: InstanceEntry,
    spec: str,
    seed: int,
    time_limit_s: float,
    level: Knowledge,
) -> InstanceEntry:
    """Let a policy drive an instance, and take over the mean JCT if it is the least known.

    `time_limit_s` is that of a decision. Runs with a violation do not count.
    """
    about = {name: (instance, entry.fingerprint)}
    (case,) = cases(about, [spec], [seed], time_limit_s=time_limit_s, levels=[level])
    _, figures = drive(instance, case)
    tried = entry.tried | {trial(spec, seed, level): time_limit_s}
    entry = msgspec.structs.replace(entry, tried=tried)
    known, mean_jct_s = figures.metrics["knowledge"], figures.metrics["mean_jct_s"]
    best = entry.best.get(known)
    if figures.wrong or (best is not None and not below(mean_jct_s, best.mean_jct_s)):
        return entry
    packages = {p: versions()[p] for p in getattr(policy(spec), "packages", ()) if p in versions()}
    run = BestRun(mean_jct_s=mean_jct_s, by=By.now(spec, seed, packages))
    return msgspec.structs.replace(entry, best=entry.best | {known: run})
