"""The application of the user's rules to a round, and the check that a plan keeps them.

Rules are called twice: with all options of the round, to build the model, and with the options of
the finished plan. So no policy can return a plan that breaks a rule.
"""

import traceback
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace as with_fields
from pathlib import PurePath
from typing import Any

import numpy as np
from msgspec.structs import replace

from ronda.formulations.allocation.racks import by_rack
from ronda.formulations.options.build import build, table_of
from ronda.formulations.options.stated_rows import (
    EQUAL,
    LEAST,
    ROUNDED,
    RULE,
    SENSES,
    Limit,
    Sheet,
    StatedRows,
    Term,
)
from ronda.formulations.options.table import ANYWHERE, OptionTable, rack_of
from ronda.instances.arguments import checked
from ronda.instances.base import Floats
from ronda.instances.errors import InputError
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.violation import Violation
from ronda.solvers.as_one import AsOne
from ronda.solvers.rules import RACK, Rule, Rules, name_of, rules, sees_racks


def asked(extra: Rules, round: Round, table: OptionTable) -> tuple[StatedRows, Floats]:
    """Return the limits of rules on a table's options, and the values of their terms, shape (K,).

    Raises
    ------
    InputError
        If a rule raises an exception, or returns anything but limits and terms with one finite
        coefficient per option.
    """
    sheet, every, table = Sheet(len(table)), np.arange(len(table)), _read_only(table)
    for rule in extra.functions:
        place = f"{extra.path}: {name_of(rule)}" if extra.path else f"rule {name_of(rule)}"
        given = _answers(rule, round, table, place)
        unnamed = sum(isinstance(each, Limit) and not each.name for each in given)
        for i, each in enumerate(given):
            use = _coefficients(each.coefficients, len(table), place)
            if isinstance(each, Term):
                sheet.worth += use
                continue
            name = str(each.name) or name_of(rule) + (f",{i}" if unnamed > 1 else "")
            counts = _counts(each, sheet, place)
            for key, row, most, penalty, turned in _rows(each, name, use, place):
                if key in sheet:
                    raise InputError(place, f"a second limit {key[5:-1]!r}", "a name of its own")
                sheet.state(key, every, row, most, penalty=penalty, turned=turned, counts=counts)
    return sheet.rows(), sheet.worth


def _read_only(table: OptionTable) -> OptionTable:
    """Return a read-only view of a table, so that no rule can change the table."""
    columns = {name: getattr(table, name) for name in table.__struct_fields__}
    views = {name: own.view() for name, own in columns.items() if isinstance(own, np.ndarray)}
    for view in views.values():
        view.flags.writeable = False
    return replace(table, **views)


def _answers(rule: Rule, round: Round, table: OptionTable, place: str) -> list[Limit | Term]:
    more = {}
    if sees_racks(rule):
        if table.rack is None:
            raise InputError(place, "racks", "a table in which options have one (by_rack)")
        more = {RACK: np.maximum(table.rack, ANYWHERE)}
    try:
        given = rule(replace(round, profiles=deepcopy(round.profiles)), table, **more)
        found = [given] if isinstance(given, Limit | Term) else list(given)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit in a rule is a rule that fails
        frame = traceback.extract_tb(error.__traceback__)[-1]
        told = " ".join(f"{type(error).__name__}: {error}".split())
        where = f"{told} ({PurePath(frame.filename).name}:{frame.lineno})"
        raise InputError(place, where, "limits and terms") from error
    for each in found:
        if not isinstance(each, Limit | Term):
            raise InputError(place, type(each).__name__, "ronda.Limit, ronda.Term, or several")
    return found


def _coefficients(given: Any, options: int, place: str) -> Floats:
    try:
        found = np.asarray(given)
    except ValueError:
        found = np.array(None)
    if found.dtype.kind not in "biuf" or isinstance(given, np.ma.MaskedArray):
        has = f"coefficients that are no real numbers ({found.dtype})"
        raise InputError(place, has, f"{options} numbers")
    found = found.astype(float)
    if found.shape != (options,):
        has = f"coefficients of shape {found.shape}"
        raise InputError(place, has, f"({options},): one for each option")
    if not np.isfinite(found).all():
        odd = np.flatnonzero(~np.isfinite(found))
        raise InputError(f"{place}, option {odd[0]}", f"{found[odd[0]]}", "a finite number")
    return found


def _rows(
    limit: Limit, name: str, use: Floats, place: str
) -> Iterator[tuple[str, Floats, float, float, bool]]:
    """Yield the rows of a limit, each an upper limit; an equation has two rows."""
    if set(name) & set("[]") or (limit.name and "," in name):
        raise InputError(f"{place}: name", repr(name), "one without brackets and commas")
    if str(limit.sense) not in SENSES:
        raise InputError(f"{place}: sense", repr(limit.sense), " or ".join(SENSES))
    most, soft = _number(limit.limit), limit.penalty is not None
    penalty = _number(limit.penalty) if soft else np.inf
    if not np.isfinite(most):
        raise InputError(f"{place}: limit", f"{limit.limit!r}", "a finite number")
    if soft and not 0 <= penalty < np.inf:
        raise InputError(f"{place}: penalty", f"{limit.penalty!r}", "a number, 0 or more, or None")
    if limit.sense != LEAST:
        yield f"{RULE}[{name}]", use, most, penalty, False
    if limit.sense in (LEAST, EQUAL):
        least = f"{name},least" if limit.sense == EQUAL else name
        yield f"{RULE}[{least}]", -use, -most, penalty, True


def _counts(limit: Limit, sheet: Sheet, place: str) -> dict[str, float]:
    """Return the soft limits whose excess a limit counts, by the names of their rows."""
    found = {f"{RULE}[{name}]": _number(more) for name, more in limit.counts.items()}
    if limit.sense != "<=" and found:
        raise InputError(f"{place}: counts", f"in a limit with {limit.sense}", "one with <=")
    for name, more in found.items():
        if not sheet.soft(name):
            raise InputError(f"{place}: counts", name, "a soft limit before this one")
        if not 0 <= more < np.inf:
            raise InputError(f"{place}: counts[{name}]", f"{more:g}", "a number, 0 or more")
    return found


def _number(given: object) -> float:
    """Return a real number of Python or NumPy as a float, or NaN for anything else."""
    real = isinstance(given, int | float | np.number | np.bool_) and np.isrealobj(given)
    real = real and not isinstance(given, np.timedelta64)  # a whole number, to numpy
    try:
        return float(given) if real else np.nan  # type: ignore[arg-type]
    except OverflowError:  # a whole number of Python
        return np.inf


@checked
def option_table(round: Round) -> OptionTable:
    """Return all options of a round as rules see them. An array counts as one job."""
    return build(AsOne(round).round, prune=False, mind_power=True)


def refuse_bad(extra: Rules, round: Round) -> None:
    """Check the rules on a round before the decision, as a policy that fails is only replaced.

    Raises InputError as `asked` does.
    """
    seen, table = AsOne(round).round, option_table(round)
    if extra.seeing_racks:
        table, _ = by_rack(seen.cluster.topology, table)
    asked(extra, seen, table)


@checked
def broken_rules(extra: object, round: Round, plan: Plan) -> list[Violation]:
    """Return the violations of rules by a plan for a round; the list is empty if there are none.

    Each rule is called with a table of the plan's options alone (`table_of`), in their real racks.
    An array counts as one job. A soft limit is never broken. The unavoidable use of jobs that may
    not be stopped breaks no limit. If the limits of the rules cannot be read, the plan has one
    violation.
    """
    own = rules(extra)
    if not own:
        return []
    seen = AsOne(round)
    shown, racks = seen.shown(plan), round.cluster.topology.node_rack
    table = table_of(seen.round, shown)
    given = [shown.allocations[table.jobs[j].job.id] for j in table.job.tolist()]
    real = np.array([rack_of(racks, each) for each in given], dtype=int)
    table = replace(table, rack=real, node_rack=racks)
    try:
        limits, _ = asked(own, seen.round, table)
        every, most = np.arange(len(table)), limits
        if limits.broken(every).any() and table.must_run.any():
            most = with_fields(limits, capacity=_in_any_case(own, seen.round, table, limits))
    except InputError as error:
        return [Violation(RULE, error.place, f"found {error.found}; expected {error.expected}")]
    return [
        Violation(RULE, limits.names[r], limits.words(r, every))
        for r in np.flatnonzero(most.broken(every)).tolist()
    ]


def _in_any_case(extra: Rules, round: Round, table: OptionTable, limits: StatedRows) -> Floats:
    """Return the limits, shape (R,), raised to the least use beside jobs that may not stop.

    `table` and `limits` belong to a plan's options. A limit that every choice breaks even without
    the use of these jobs is not raised.
    """
    whole, most = option_table(round), limits.capacity.copy()
    if extra.seeing_racks:
        whole, _ = by_rack(round.cluster.topology, whole)
    of_all, _ = asked(extra, round, whole)
    uses, firm = dict(zip(of_all.names, of_all.dense(), strict=True)), table.must_run
    given = limits.dense()
    for r in np.flatnonzero(limits.broken(np.arange(len(table)))).tolist():
        least = np.zeros(len(table.jobs))
        np.minimum.at(least, whole.job, uses.get(limits.names[r], 0.0))
        held = np.zeros(len(table.jobs))
        held[table.job] = given[r]
        least[firm] = np.minimum(0.0, held[firm])
        if least.sum() <= most[r] + ROUNDED * abs(most[r]):
            most[r] = max(most[r], held[firm].sum() + least[~firm].sum())
    return most
