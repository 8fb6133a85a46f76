"""Rules for consistent rounds of tasks, and the shapes of tasks that fit no node."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ronda.instances.arguments import refuse_unfit
from ronda.instances.base import Index, Mask
from ronda.instances.rules.problem import Problem, as_error, limits, show, too_many
from ronda.instances.tasks.arrays import TaskPlan, TaskRound
from ronda.instances.tasks.check import placement_violations

Arrays = TypeVar("Arrays", TaskRound, TaskPlan)

AXES = {
    **{"capacity": "KR", "count": "K", "pool": "K", "use": "SR", "slices": "S", "speed": "SP"},
    **{"shape": "T", "value": "T", "group": "T", "job": "T", "move_cost": "T"},
    **{"held_task": "H", "held_node": "H", "task": "A", "node": "A"},
    **{"node_price": "KR", "slot_price": "SP"},
}
"""The axes of each array: kinds, resources, shapes, pools, tasks, slices that run or are placed."""

REAL = {"speed", "value", "move_cost", "node_price", "slot_price"}
"""The arrays of real numbers; all others hold whole numbers."""

MOST, DEAREST = 2**45, 1e100
"""The largest amount of a resource on a node, and the largest value and speed."""


def validate_tasks(found: TaskRound, place: str | None = None) -> TaskRound:
    """Return a round with arrays of 64-bit numbers, or refuse it if it has any problem.

    That a shape fits no node is no problem; `unplaceable` tells it.

    Raises
    ------
    InputError
        If arrays have wrong lengths or numbers, names repeat, or nodes cannot hold what runs. The
        one-line error names the problems and `place`, by default the round's name.
    """
    place = place or f"round {show(found.name)}"
    names = {"kinds": found.kinds, "resources": found.resources, "pools": found.pools}
    odd = [
        Problem(word, show(listed), "names that differ, in visible characters")
        for word, listed in names.items()
        if not listed
        or len({*listed}) < len(listed)
        or not all(n and n.isprintable() for n in listed)
    ]
    refuse_unfit(f"{place}, most_disrupted", found.most_disrupted, Index | None)
    if odd:
        raise as_error(place, odd)
    sizes = {word[0].upper(): len(listed) for word, listed in names.items()}
    made = sized(found, place, sizes)
    odd = [*too_many("shape", "tasks", made.tasks), *_outside(made)]
    odd = odd or too_many("count", "nodes", made.nodes) or [*_inconsistent(made)]
    if odd:
        raise as_error(place, odd)
    return made


def sized(found: Arrays, place: str, sizes: dict[str, int] | None = None) -> Arrays:
    """Return a round or a plan whose arrays have 64-bit numbers and the right axes, or refuse it.

    `sizes` holds the lengths of axes that are known; others follow from the first array with them.
    """
    odd, made, known = list[Problem](), dict[str, Any](), sizes or {}
    for name, axes in AXES.items():
        if getattr(found, name, None) is None:
            continue
        array = np.asarray(getattr(found, name))
        shape = tuple(known.setdefault(axis, n) for axis, n in zip(axes, array.shape, strict=False))
        real = name in REAL
        if array.size and array.dtype.kind not in ("iuf" if real else "iu"):
            words = "real numbers" if real else "whole numbers"
            odd.append(Problem(name, f"numbers of the type {array.dtype}", words))
        elif array.ndim != len(axes) or array.shape != shape:
            expected = " by ".join(str(known.get(axis, axis)) for axis in axes)
            odd.append(Problem(name, f"the shape {array.shape}", f"{expected} numbers"))
        elif array.dtype.kind == "u" and array.size and array.max() >= 2**63:
            odd.append(Problem(name, str(array.max()), "numbers below 2^63"))
        else:
            made[name] = array.astype(np.float64 if real else np.int64, copy=False)
    if odd:
        raise as_error(place, odd)
    return replace(found, **made)


def _outside(made: TaskRound) -> Iterator[Problem]:
    """Yield the first number of each array that is out of range."""
    last, most = made.tasks - 1, limits().nodes
    ranges: dict[str, tuple[float, float]] = {
        **{"capacity": (0, MOST), "count": (1, most), "pool": (0, len(made.pools) - 1)},
        **{"use": (0, MOST), "slices": (1, most), "speed": (0, DEAREST), "group": (-1, last)},
        **{"shape": (0, len(made.slices) - 1), "value": (1 / DEAREST, DEAREST), "job": (0, last)},
        **{"move_cost": (0, DEAREST), "held_task": (0, last), "held_node": (0, made.nodes - 1)},
    }
    for name, (least, highest) in ranges.items():
        array = getattr(made, name)
        bad = np.zeros(0, dtype=bool) if array is None else ~((array >= least) & (array <= highest))
        if bad.any():
            at = np.unravel_index(int(bad.argmax()), array.shape)
            more = f" (and {int(bad.sum()) - 1:,} more)" if bad.sum() > 1 else ""
            where = ", ".join(map(str, at))
            yield Problem(f"{name}[{where}]", f"{array[at]}{more}", f"{least} to {highest}")


def _inconsistent(made: TaskRound) -> Iterator[Problem]:
    """Yield problems of arrays with each other."""
    for s in np.flatnonzero(~made.use.any(axis=1)).tolist():
        yield Problem(f"use[{s}]", "nothing of any resource", "an amount above 0")
    for each in placement_violations(made, made.held_task, made.held_node):
        what = f"a {each.where.partition(' ')[0]} that {each.message}"
        yield Problem(f"held_task, {each.where}", what, f"one that keeps the rule {each.code}")
    if made.job is not None:
        cost = np.full(made.tasks, -1.0)
        cost[made.job[made.held_task]] = made.move_cost[made.held_task]
        own = cost[made.job]
        for t in np.flatnonzero((own >= 0) & (own != made.move_cost)).tolist():
            yield Problem(
                f"move_cost[{t}]",
                f"{made.move_cost[t]:g}",
                f"{own[t]:g}, that of the way that runs",
            )
        group = np.full(made.tasks, -1)
        group[made.job] = made.group
        for t in np.flatnonzero(group[made.job] != made.group).tolist():
            expected = f"{group[made.job[t]]}, as another way of its job"
            yield Problem(f"group[{t}]", f"{made.group[t]}", expected)


class Unplaceable(NamedTuple):
    """A shape of tasks that fits nowhere: its index, the number of its tasks, and reasons."""

    shape: int
    tasks: int
    reasons: tuple[str, ...]


def unplaceable(round: TaskRound) -> list[Unplaceable]:
    """Return the shapes of tasks that not even empty nodes hold, with a reason for each pool."""
    found = []
    for s, tasks in enumerate(np.bincount(round.shape).tolist()):
        short = round.use[s] > round.capacity
        fits = (round.speed[s, round.pool] > 0) & ~short.any(axis=1)
        room = np.bincount(round.pool, round.count * fits, len(round.pools))
        if tasks and not (room >= round.slices[s]).any():
            reasons = [
                f"pool {pool}: {_reason(round, s, p, short[round.pool == p], int(room[p]))}"
                for p, pool in enumerate(round.pools)
                if round.speed[s, p] > 0
            ]
            found.append(Unplaceable(s, tasks, tuple(reasons) or ("it may run in no pool",)))
    return found


def _reason(round: TaskRound, s: int, p: int, short: Mask, room: int) -> str:
    """Return why a shape fits no node of a pool, whose kinds are short of resources."""
    if room:
        return f"{room:,} nodes have room for a slice, and a task has {round.slices[s]:,}"
    if not len(short):
        return "it has no nodes"
    most = round.capacity[round.pool == p].max(axis=0)
    lacks = [
        f"a slice takes {round.use[s, r]:,} of {name}, and no node has more than {most[r]:,}"
        for r, name in enumerate(round.resources)
        if short[:, r].all()
    ]
    some = [name for r, name in enumerate(round.resources) if short[:, r].any()]
    return "; ".join(lacks) or f"no node has enough of {' and '.join(some)} at once"
