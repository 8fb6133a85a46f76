"""``python -m tools.registry``: check and improve the best results known."""

import sys
import tempfile
from pathlib import Path
from typing import Any

import click
import msgspec

from lab.program import CONTEXT, run_program
from ronda.bench.runs.specs import split_policies
from ronda.cli.command import Taught
from ronda.cli.options import (
    FOLDER,
    Source,
    json_option,
    knowledge_option,
    policies_option,
    seed_option,
    time_limit_option,
)
from ronda.cli.output import display, emit, note, tell
from ronda.cli.progress import Bars
from ronda.instances.errors import InputError
from ronda.instances.files.json import read
from ronda.instances.files.packaged import load
from ronda.instances.instance import Instance, Knowledge
from ronda.instances.plan import Plan
from ronda.instances.tables.table import Table
from tools.registry import check, records
from tools.registry import update as updates
from tools.registry.records import Registry


@click.command(
    cls=Taught,
    context_settings=CONTEXT,
    examples=(
        "python -m tools.registry",
        "python -m tools.registry round-power round-pods --mps models",
        "python -m tools.registry round-power --plan plan.json --data tools/data",
        "python -m tools.registry round-tight-64 --update --policies milp --data tools/data",
        "python -m tools.registry pods-mixed --update --policies prices,srtf --data tools/data",
    ),
)
@click.argument("names", metavar="[NAME]...", type=Source(), nargs=-1)
@click.option("--update", is_flag=True, help="Try the policies, and take over what is better.")
@click.option(
    "--plan",
    "plan_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Take over a plan of the one NAME, if it is better.",
)
@click.option(
    "--mps", type=FOLDER, metavar="FOLDER", help="Write the models of all rounds, and compare them."
)
@policies_option("prices,milp")
@time_limit_option(60.0, "For each policy on a round, or for each decision on an instance.")
@seed_option
@knowledge_option
@click.option(
    "--data",
    type=FOLDER,
    metavar="FOLDER",
    help="Folder of the registry, such as tools/data; without it none is changed.",
)
@json_option
def command(
    names: tuple[str, ...],
    update: bool,
    plan_path: Path | None,
    mps: Path | None,
    policies: str,
    time_limit: float,
    seed: int,
    knowledge: Knowledge,
    data: Path | None,
    as_json: bool,
) -> int:
    """Check what the registry says of rounds and instances; all, if no NAME is given.

    Every plan goes through the checker and is valued again, bounds are compared with plans, and
    HiGHS solves the smaller models: a minute for all. An update only improves: a
    better plan or a tighter bound replaces another one. What was tried with as long a limit by this
    version is not tried again, so that an update that was stopped goes on.
    """
    if (update or plan_path is not None) and data is None:
        raise InputError("--data", "none", "the folder of the registry that is to change")
    folder = data or records.DATA
    registry = records.load(folder)
    if plan_path is not None:
        registry = _with_plan(registry, names, plan_path, folder)
    if update:
        registry = _updated(registry, names, folder, policies, time_limit, seed, knowledge)
    known = [*registry.rounds, *registry.instances]
    for name in names:
        if name not in known:
            raise InputError("NAME", repr(name), f"one of the registry: {', '.join(known)}")
    wrong = _checked(registry, names or tuple(known), folder, mps)
    rows = _rows(registry, names or tuple(known), wrong)
    if as_json:
        emit({"entries": rows, "wrong": {n: w for n, w in wrong.items() if w}})
    else:
        display(_table(rows))
    for name, found in wrong.items():
        for words in found:
            note(f"{name}: {words}")
    return 1 if any(wrong.values()) else 0


def _with_plan(registry: Registry, names: tuple[str, ...], path: Path, folder: Path) -> Registry:
    if len(names) != 1:
        raise InputError("--plan", f"{len(names)} names", "the one round that it is a plan of")
    (name,), plan = names, read(path)
    if not isinstance(plan, Plan):
        raise InputError(str(path), "no plan", "a plan")
    old = registry.rounds.get(name) or updates.new_round(name, folder)
    by = records.By.now(plan.policy or str(path), plan.record.seed, plan.record.versions)
    entry = updates.taken(check.packaged_round(name), old, folder, name, plan, by)
    tell(f"{name}: {'a better plan' if entry != old else 'the plan known is as good'}")
    registry = msgspec.structs.replace(registry, rounds=registry.rounds | {name: entry})
    records.store(registry, folder)
    return registry


def _updated(
    registry: Registry,
    names: tuple[str, ...],
    folder: Path,
    policies: str,
    time_limit_s: float,
    seed: int,
    level: Knowledge,
) -> Registry:
    """Try every policy on every name, and write the registry after each trial."""
    trials = [
        (name, spec)
        for name in names or (*registry.rounds, *registry.instances)
        for spec in split_policies(policies)
    ]
    with Bars() as bars:
        for done, (name, spec) in enumerate(trials):
            bars.update("update", done / len(trials), f"{name} {spec}")
            known = load(name)
            kind = "instances" if isinstance(known, Instance) else "rounds"
            kept: dict[str, Any] = getattr(registry, kind)
            old = kept.get(name)
            if old and old.tried.get(updates.trial(spec, seed, level), 0.0) >= time_limit_s:
                continue
            if isinstance(known, Instance):
                start = old or updates.new_instance(known)
                new: Any = updates.driven(known, name, start, spec, seed, time_limit_s, level)
            else:
                start = old or updates.new_round(name, folder)
                new = updates.solved(name, start, folder, spec, seed, time_limit_s)
            registry = msgspec.structs.replace(registry, **{kind: kept | {name: new}})
            records.store(registry, folder)
    return registry


def _checked(
    registry: Registry, names: tuple[str, ...], folder: Path, mps: Path | None
) -> dict[str, list[str]]:
    """Return what is wrong, by name."""
    wrong: dict[str, list[str]] = {}
    with Bars() as bars, tempfile.TemporaryDirectory() as scratch:
        if mps is not None:
            mps.mkdir(parents=True, exist_ok=True)
        for done, name in enumerate(names):
            bars.update("check", done / len(names), name)
            if name in registry.instances:
                wrong[name] = check.wrong_with_instance(name, registry.instances[name])
                continue
            entry = registry.rounds[name]
            wrong[name] = check.wrong_with_round(
                name, entry, folder, Path(scratch) if mps is None else mps, every=mps is not None
            )
    return wrong


def _rows(
    registry: Registry, names: tuple[str, ...], wrong: dict[str, list[str]]
) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for name in names:
        if name in registry.rounds:
            entry = registry.rounds[name]
            best, bound = entry.best, entry.bound
            made.append(
                {
                    "name": name,
                    "best": best and best.objective,
                    "bound": bound and bound.value,
                    "bound_of": bound and bound.of,
                    "gap": entry.gap,
                    "by": best and best.by.policy,
                    "knowledge": None,
                    "holds": not wrong[name],
                }
            )
            continue
        own = registry.instances[name]
        for level, run in own.best.items():
            gap = run.mean_jct_s / own.bound_mean_jct_s - 1.0 if own.bound_mean_jct_s else None
            made.append(
                {
                    "name": name,
                    "best": run.mean_jct_s,
                    "bound": own.bound_mean_jct_s,
                    "bound_of": "schedules",
                    "gap": gap,
                    "by": run.by.policy,
                    "knowledge": level,
                    "holds": not wrong[name],
                }
            )
    return made


def _table(rows: list[dict[str, Any]]) -> Table:
    def number(value: float | None, digits: str) -> str:
        return "–" if value is None else format(value, digits)

    return Table.of(
        "",
        (
            {
                "name": row["name"],
                "best known": number(row["best"], ",.6g"),
                "bound": number(row["bound"], ",.6g"),
                "of": row["bound_of"] or "–",
                "gap": number(row["gap"], ".1e"),
                "by": row["by"] or "–",
                "knowledge": row["knowledge"] or "",
                "holds": "yes" if row["holds"] else "NO",
            }
            for row in rows
        ),
    )


if __name__ == "__main__":
    sys.exit(run_program(command, "python -m tools.registry"))
