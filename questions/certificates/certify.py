"""Certificates of plans of rounds: the options with their values, the rows, and prices.

The prices are those of the price engine for pools of GPUs, the power cap, the energy window and the
rows of the site. Rows for nodes and racks have none, which can only raise the bound.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec.structs import replace

from ronda.formulations.allocation.model_data import lasts_s, make_case
from ronda.formulations.allocation.rows import CAP, WINDOW, separable
from ronda.formulations.allocation.separable import subset
from ronda.formulations.objectives.switching_cost import loss_of_moves
from ronda.formulations.options.stated_rows import StatedRows
from ronda.formulations.options.table import options, rows_of
from ronda.horizon.solve import ROUND
from ronda.instances.arguments import checked
from ronda.instances.errors import InputError
from ronda.instances.files.canonical import encode
from ronda.instances.files.json import write
from ronda.instances.files.storage import label, read_bytes, unpack, write_bytes
from ronda.instances.plan import Plan, gap_between
from ronda.instances.round import Round
from ronda.instances.rules.validate import exact, validate
from ronda.instances.tables.table import Report
from ronda.questions.certificates.record import CertifiedOption, RoundCertificate
from ronda.questions.certificates.verify import MODEL, NotProvenError, Proof, digest
from ronda.solvers.contract import Policy
from ronda.solvers.decision.plan import Question
from ronda.solvers.prices.dual import EPSILON
from ronda.solvers.prices.engine import first_answer
from ronda.solvers.registry import as_policy
from ronda.solvers.rules import rules_of


@checked
def certificate(
    round: Annotated[Round, ROUND], plan: Plan, policy: Policy | str = "prices"
) -> RoundCertificate:
    """Return a certificate of how far a plan is from the best plan of its round.

    Parameters
    ----------
    plan
        A plan of any policy, or made by hand.
    policy
        The policy whose objective and rules count. The plan's own objective comes first.

    Raises
    ------
    InputError
        If the round has what no certificate covers, or the plan breaks a limit.
    """
    round, made = validate(round), as_policy(policy)
    name = plan.details.objective or getattr(made, "objective", "rank")
    given = getattr(made, "parameters", {}) if name == getattr(made, "objective", "") else {}
    for whole in (False, True):
        question = Question.of(
            round,
            name,
            elastic=getattr(made, "elastic", True),
            parameters={**given, **plan.details.parameters},
            extra=rules_of(made),
            whole=whole,
        )
        if (rows_of(question.table, plan) >= 0).sum() >= len(plan.allocations):
            break  # else the plan may have options that others dominate
    own = question.table.own
    for hindrance, found in (
        (question.aims, "aims of the site that come before the objective"),
        (question.gave, "limits that gave way to jobs which may not be stopped"),
        (own is not None and own.moves is not None, "a budget of disruption"),
        (question.table.rack is not None, "rules that see racks"),
    ):
        if hindrance:
            raise InputError("certificate", found, "a round without, as no certificate covers it")
    bare = RoundCertificate(
        round=digest(of_round := encode(exact(round))),
        model="",
        objective=name,
        worth=-1e300,
        bound=1e300,
        prices=_prices(question),
        jobs=_jobs(question),
        **({} if own is None else _rows(own)),
    )
    bare = replace(bare, model=digest(bare.text(), *MODEL))
    try:
        proof = Proof([of_round, encode(exact(plan)), bare.text()])
    except (NotProvenError, ValueError) as error:
        expected = "a round that certificates cover, and a plan that keeps every limit"
        raise InputError("certificate", str(error), expected) from None
    worth, bound = float(proof.worth), float(proof.bound)  # one digit outwards, so as to be safe
    return replace(bare, worth=worth - EPSILON * abs(worth), bound=bound + EPSILON * abs(bound))


def certified(
    round: Round, made: Policy, source: str, out: Path
) -> Callable[[Report, Plan], Report]:
    """Return a function that writes a plan's certificate, and adds to a report what it proves.

    The round is written beside it unless the file `source` holds it as ronda writes it.
    """

    def told(report: Report, plan: Plan) -> Report:
        found, path, beside = certificate(round, plan, made), Path(source), out.with_suffix("")
        write_bytes(out, found.text())
        gap = gap_between(found.bound, found.worth)
        words = f"Proved by {label(out)}: within {math.ceil(1e8 * gap) / 1e6:g} % of the best"
        if plan.gap is not None and plan.gap < gap:
            by = plan.details.proven_by or plan.policy
            words += f"; by the word of {by}: {plan.status}, within {100 * plan.gap:.2g} %"
        if not path.is_file() or digest(unpack(read_bytes(path), source)) != found.round:
            write(round, f"{beside}.round.json")
            words += f". It is about {label(beside)}.round.json"
        proved = {"worth": found.worth, "bound": found.bound}
        return report.added(f"{words}.", certificate=proved)

    return told


def _jobs(question: Question) -> dict[str, tuple[CertifiedOption, ...]]:
    """Return the options that rules allow and that fit beside the jobs that must run."""
    round, table, values, own = question.round, question.table, question.values, question.table.own
    found: dict[str, list[CertifiedOption]] = {state.job.id: [] for state in table.jobs}
    must = table.must_run[table.job]
    free = np.array([pool.gpus for pool in table.pools])
    free = free - np.bincount(table.pool[must], table.own_gpus[must], len(free))
    rows = np.flatnonzero(np.isfinite(values) & (must | (table.own_gpus <= free[table.pool])))
    ends = np.full(len(table), np.inf) if round.energy_j is None else lasts_s(round, table)
    for k, option in zip(rows.tolist(), options(table, rows), strict=True):
        job, value, moved = table.jobs[table.job[k]].job.id, float(values[k]), None
        if table.current[k]:
            moved = value - loss_of_moves(round, table, values, np.array([k]), [job])
        found[job].append(
            CertifiedOption(
                option=option,
                value=value,
                moved=moved,
                lasts_s=float(ends[k]) if np.isfinite(ends[k]) else None,
                uses={} if own is None else _named(own.names, own.use, k),
            )
        )
    return {job: tuple(ways) for job, ways in found.items()}


def _rows(own: StatedRows) -> dict[str, Any]:
    """Return the fields of a certificate for the rows of the site and of the user."""
    penalties = dict(zip(own.names, own.penalty.tolist(), strict=True))
    counts = {name: _named(own.names, own.counts, r) for r, name in enumerate(own.names)}
    return {
        "limits": dict(zip(own.names, own.capacity.tolist(), strict=True)),
        "penalties": {name: x for name, x in penalties.items() if math.isfinite(x)},
        "counts": {name: counted for name, counted in counts.items() if counted},
    }


def _named(names: tuple[str, ...], matrix: Any, k: int) -> dict[str, float]:
    """Return the entries of a compressed row or column, by names."""
    at = slice(matrix.indptr[k], matrix.indptr[k + 1])
    entries = zip(matrix.indices[at].tolist(), matrix.data[at].tolist(), strict=True)
    return {names[i]: amount for i, amount in entries}


def _prices(question: Question) -> dict[str, float]:
    """Return prices of the engine for the rows of certificates."""
    table, own = question.table, question.table.own
    names = () if own is None else own.names
    problem = separable(make_case(question.round, table, question.values))
    known = {CAP, WINDOW, *names, *(f"gpus[{pool.name}]" for pool in table.pools)}
    rows = np.array([r for r, name in enumerate(problem.names) if name in known], dtype=np.int64)
    every = np.arange(problem.jobs), np.arange(len(problem.block_value))
    fewer = subset(problem, every[0], rows, every[1]).problem
    found = fewer.named(first_answer(fewer).dual.prices)
    dear = np.zeros(len(names))  # what a unit of excess costs in rows that count it
    for r in reversed(range(len(names))):
        assert own is not None
        most = float(own.penalty[r] + dear[r]) * (1 - 1e-12)  # more would make excess pay
        found[names[r]] = price = min(found.get(names[r], 0.0), most)
        dear += price * own.counts[[r]].toarray()[0]
    return {name: price for name, price in found.items() if price > 0}
