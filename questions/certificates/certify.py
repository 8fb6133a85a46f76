"""Certificates of plans of rounds: the options with their values, the rows, and prices.

The prices are those of the price engine for pools of GPUs, the power cap, the energy window and the
rows of the site. Rows for nodes and racks have none, which can only raise the bound.
"""

import math
from collections.abc import Mapping
from dataclasses import replace as with_fields
from fractions import Fraction
from typing import Annotated, Any

import msgspec
import numpy as np

from ronda.formulations.allocation.model_data import case_of_all, lasts_s, make_case
from ronda.formulations.allocation.rows import CAP, WINDOW, separable, unbearable
from ronda.formulations.objectives.switching_cost import loss_of_moves
from ronda.formulations.options.table import options
from ronda.horizon.solve import ROUND
from ronda.instances.arguments import checked
from ronda.instances.base import Mask
from ronda.instances.errors import InputError
from ronda.instances.files.canonical import encode
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.rules.validate import exact, validate
from ronda.questions.certificates.record import (
    CertifiedJob,
    CertifiedOption,
    CertifiedRow,
    RoundCertificate,
)
from ronda.questions.certificates.verify import NotProvenError, Proof, digest, plain
from ronda.solvers.contract import Policy
from ronda.solvers.decision.plan import Question
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
    given: Mapping[str, Any] = {}
    name = plan.details.objective or getattr(made, "objective", "rank")
    if name == getattr(made, "objective", None):
        given = getattr(made, "parameters", given)
    question = Question.of(
        round,
        name,
        elastic=getattr(made, "elastic", True),
        parameters={**given, **plan.details.parameters},
        extra=rules_of(made),
        whole=True,
    )
    limits = question.table.own
    for hindrance, found in (
        (question.aims, "aims of the site that are served before the objective"),
        (question.gave, "limits that gave way to jobs which may not be stopped"),
        (limits is not None and limits.moves is not None, "a budget of disruption"),
        (question.table.rack is not None, "rules that see racks"),
    ):
        if hindrance:
            raise InputError("certificate", found, "a round without, as no certificate covers it")
    jobs, rows = _jobs(question), _rows(question)
    bare = RoundCertificate(
        round="",
        model="",
        objective=name,
        worth=0.0,
        bound=0.0,
        prices=_prices(question),
        jobs=jobs,
        rows=rows,
    )
    of_round, of_plan, text = encode(exact(round)), encode(exact(plan)), encode(bare)
    try:
        proof = Proof(plain(of_round), plain(of_plan), plain(text))
    except NotProvenError as error:
        raise InputError("certificate", str(error), "a plan that keeps every limit") from None
    except ValueError as error:
        raise InputError("certificate", str(error), "a round that certificates cover") from None
    return msgspec.structs.replace(
        bare,
        round=digest(of_round, format="ronda/round/1"),
        model=digest(text, "jobs", "rows"),
        worth=_outwards(proof.worth, -math.inf),
        bound=_outwards(proof.bound, math.inf),
    )


def _jobs(question: Question) -> tuple[CertifiedJob, ...]:
    """Return the jobs with all options that may be chosen."""
    round, table, values, own = question.round, question.table, question.values, question.table.own
    ways = options(table, np.arange(len(table)))
    ends = lasts_s(round, table) if round.energy_j is not None else np.full(len(table), np.inf)
    may, found = _possible(question), list[CertifiedJob]()
    for j, state in enumerate(table.jobs):
        mine = list[CertifiedOption]()
        for k in np.flatnonzero(may[table.start[j] : table.start[j + 1]]) + table.start[j]:
            value, moved = float(values[k]), None
            if table.current[k]:
                moved = value - loss_of_moves(round, table, values, np.array([k]), [state.job.id])
            mine.append(
                CertifiedOption(
                    option=ways[k],
                    value=value,
                    moved=moved,
                    lasts_s=float(ends[k]) if np.isfinite(ends[k]) else None,
                    uses={} if own is None else _named(own.names, own.use, k),
                )
            )
        found.append(CertifiedJob(id=state.job.id, options=tuple(mine)))
    return tuple(found)


def _possible(question: Question) -> Mask:
    """Return the options (K,) that rules allow, and that fit beside the jobs that must run."""
    table, round = question.table, question.round
    firm = np.flatnonzero(table.must_run[table.job])
    free = np.array([pool.gpus for pool in table.pools])
    free = free - np.bincount(table.pool[firm], table.own_gpus[firm], len(free))
    may = np.isfinite(question.values) & (table.own_gpus <= free[table.pool])
    if round.watts is not None:
        may &= ~unbearable(case_of_all(round, table, np.arange(len(table))))
    may |= table.must_run[table.job]
    return np.asarray(may)


def _rows(question: Question) -> tuple[CertifiedRow, ...]:
    own = question.table.own
    if own is None:
        return ()
    return tuple(
        CertifiedRow(
            name=name,
            limit=float(own.capacity[r]),
            penalty=float(own.penalty[r]) if np.isfinite(own.penalty[r]) else None,
            counts=_named(own.names, own.counts, r),
        )
        for r, name in enumerate(own.names)
    )


def _named(names: tuple[str, ...], matrix: Any, k: int) -> dict[str, float]:
    """Return the entries of a compressed row or column, by names."""
    at = slice(matrix.indptr[k], matrix.indptr[k + 1])
    entries = zip(matrix.indices[at].tolist(), matrix.data[at].tolist(), strict=True)
    return {names[i]: amount for i, amount in entries}


def _prices(question: Question) -> dict[str, float]:
    """Return the prices of the rows of a certificate, those of soft rows below their penalties."""
    table, own = question.table, question.table.own
    names = () if own is None else own.names
    problem = separable(make_case(question.round, table, question.values))
    known = {CAP, WINDOW, *names, *(f"gpus[{pool.name}]" for pool in table.pools)}
    rows = np.array([r for r, name in enumerate(problem.names) if name in known], dtype=np.int64)
    fewer = with_fields(
        problem,
        use=problem.use.only(rows),
        capacity=problem.capacity[rows],
        names=tuple(problem.names[r] for r in rows.tolist()),
        block_use=problem.block_use[rows],
    )
    found = fewer.named(first_answer(fewer).dual.prices)
    dear = np.zeros(len(names))  # what a unit of excess costs in rows that count it
    for r in reversed(range(len(names))):
        assert own is not None
        most = float(own.penalty[r] + dear[r]) * (1 - 1e-12)
        found[names[r]] = price = min(found.get(names[r], 0.0), most)
        dear += price * own.counts[[r]].toarray()[0]
    return {name: price for name, price in found.items() if price > 0}


def _outwards(number: Fraction, towards: float) -> float:
    """Return a near float whose shortest decimal is on the given side of a number, or equal."""
    found = float(number)
    while (Fraction(repr(found)) - number) * (1 if towards > 0 else -1) < 0:
        found = math.nextafter(found, towards)
    return found
