"""The choice from a file with another solver's solution of a round's model.

The bound is that of the price engine, whatever the other solver claims. It also holds for the exact
model, which values options no higher and has constraints for nodes in addition.
"""

import dataclasses
import os
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from ronda.formulations.allocation.model_data import Fidelity, make_case
from ronda.formulations.allocation.pyomo_model import build, chosen_rows
from ronda.formulations.allocation.rows import UNNAMED
from ronda.formulations.positions.variables import ways
from ronda.instances.errors import printable
from ronda.instances.plan import SolutionStatus, StopReason
from ronda.instances.violation import ROUNDING
from ronda.solvers.decision.by_positions import chosen_on_nodes
from ronda.solvers.decision.by_prices import allocate_by_prices
from ronda.solvers.decision.plan import Choice, Question
from ronda.solvers.exact.model_file import load_solution
from ronda.solvers.prices.dual import Search

ROUNDED = 1e-4
"""The relative difference up to which objectives count as equal, because solvers accept nearly
whole numbers as integers."""


def model_of(question: Question, *, exact: bool) -> Any:
    """Return the Pyomo model of a question: of options, or with `exact` of options and nodes.

    Its units are GPUs, watts, joules and the unit of the values.
    """
    if not exact:
        return build(question.round, question.table, question.values)
    from ronda.formulations.positions.model import build_positions as build_exact

    case = make_case(question.round, question.table, question.values, Fidelity.NODES)
    return build_exact(ways(case), units_of_its_own=False)


def meanings(model: Any, *, exact: bool) -> Iterator[str]:
    """Yield a line with the meaning of each variable x of a question's model."""
    if not exact:
        yield "x(job,pool,GPUs,clock,batch) = 1: the job gets that option, at most one of its own."
        return
    case, stays = model.ways.case, model.ways.stay
    table, racks = case.table, case.round.cluster.topology.racks
    yield "x(i) = 1: the job gets way i, at most one of its own; others cut nodes for it."
    yield "x(i): job, pool, GPUs, clock, batch, the rack if tied to it, if it stays"
    for i, (row, job) in enumerate(zip(case.rows, case.job, strict=True)):
        words = [printable(table.jobs[job].job.id), str(table.pool[row]), str(table.gpus[row])]
        words += [f"{table.clock[row]:g}", f"{table.batch[row]:g}"]
        if case.rack[i] >= 0:
            words.append(printable(racks[case.rack[i]] or UNNAMED))
        words += ["stays"] * bool(stays[i])
        yield f"x({i}): {', '.join(words)}"


def allocate_by_file(
    question: Question, path: str | os.PathLike[str], search: Search, *, exact: bool = False
) -> Choice:
    """Return the choice in a solution file for the model that `ronda export` writes.

    Raises InputError if the file has no solution of this question's model.
    """
    model = model_of(question, exact=exact)
    said = load_solution(model, path, derived=() if exact else model.blocks)
    asked = question.round, question.table, question.values
    best = allocate_by_prices(*asked, dataclasses.replace(search, gap=max(search.gap, ROUNDING)))
    if best.status is SolutionStatus.NONE:
        return best
    if exact:
        best = chosen_on_nodes(question, model, best, search)
        worth = best.objective
    else:
        chosen = chosen_rows(model)
        worth = question.table.worth(question.values, chosen)
        best = replace(best, chosen=chosen, fill=False)
    return replace(
        best,
        objective=worth,
        bound=max(best.bound, worth),
        stop=StopReason.COMPLETE,
        incumbents=((search.deadline.elapsed(), worth),),
        record=replace(
            best.record,
            solver="file",
            message=f"read from {os.fspath(path)}{_otherwise(said, worth)}",
        ),
    ).judged(search.gap)


def _otherwise(said: float | None, worth: float) -> str:
    """Return a warning if a file's objective differs from that of its values, as when cut off."""
    if said is None or abs(abs(said) - abs(worth)) <= ROUNDED * max(1.0, abs(worth)):
        return ""
    return f", which says {said:g}; its values are worth {worth:g}"
