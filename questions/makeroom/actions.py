"""The solution of a model of room as actions, in an order in which each finds its room free."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pyomo.environ as pyo

from ronda.instances.base import Record
from ronda.questions.makeroom.loose import Loose
from ronda.questions.makeroom.model import Space


class Action(Record, frozen=True, kw_only=True):
    """A step that makes room.

    Attributes
    ----------
    verb, job, user
        Whether the job is stopped, moved or started; its user, or its tenant if no user is told.
    source, target
        Its pieces by node before and after; empty where it does not run.
    gpus, lost_gpu_s
        GPUs that it holds before a stop or a move, or asks for, and GPU-seconds of work that it
        loses.
    first, holds
        Of a moved job, whether it must stop before others move, because they need its nodes, and
        what it holds on each node, if that is not told by its pieces.
    """

    verb: Literal["stop", "move", "start"]
    job: str
    user: str | None = None
    source: dict[str, int] = {}
    target: dict[str, int] = {}
    gpus: float = 0.0
    lost_gpu_s: float = 0.0
    first: bool = False
    holds: dict[str, dict[str, float]] = {}


def actions_of(model: Any) -> tuple[Action, ...]:
    """Return the actions of a solved model: stops, then moves, then the start."""
    space: Space = model.space
    names = [node.name for node in space.outlook.snapshot.nodes]
    targets = _targets(model)
    stopped = [k for k, gone in model.gone.items() if round(pyo.value(gone)) and k not in targets]
    job = space.asked.job
    each = job.count // space.count
    starts = {names[n]: round(pyo.value(put)) * each for n, put in model.put.items()}
    return (
        *(_action("stop", space.loose[k]) for k in stopped),
        *_in_turn(space, stopped, targets),
        Action(
            verb="start",
            job=job.id,
            user=job.user or job.tenant,
            target={name: n for name, n in starts.items() if n},
            gpus=job.gpus,
        ),
    )


def _action(verb: Literal["stop", "move"], one: Loose, **more: Any) -> Action:
    return Action(
        verb=verb,
        job=one.job.id,
        user=one.user,
        source=dict(one.job.on),
        gpus=one.gpus,
        lost_gpu_s=one.lost_gpu_s,
        **more,
    )


def _targets(model: Any) -> dict[int, list[tuple[int, int]]]:
    """Return the nodes that moved jobs come to, as pairs (node, type of block).

    Jobs of a class are alike. If no two blocks of a job may share a node, each takes the nodes to
    which most blocks still come.
    """
    space: Space = model.space
    coming: dict[int, dict[int, dict[int, int]]] = defaultdict(lambda: defaultdict(dict))
    for (c, t, n), come in model.come.items():
        if count := round(pyo.value(come)):
            coming[c][t][n] = count
    found: dict[int, list[tuple[int, int]]] = {}
    for c, same in enumerate(space.classes.values() if len(model.moved) else ()):
        for k in (k for k in same if round(pyo.value(model.moved[k]))):
            found[k] = []
            for t, (_, number) in enumerate(space.loose[k].blocks):
                left = coming[c][t]
                for _ in range(number):
                    fresh = [n for n in left if not space.loose[k].apart or (n, t) not in found[k]]
                    n = max(fresh, key=lambda n: (left[n], -n))
                    found[k].append((n, t))
                    left[n] -= 1
                    if not left[n]:
                        del left[n]
    return found


def _in_turn(
    space: Space, stopped: list[int], targets: Mapping[int, list[tuple[int, int]]]
) -> list[Action]:
    """Return the moves in an order in which each finds its room free; some jobs may stop first."""
    outlook = space.outlook
    free, jobs = space.free.copy(), outlook.used(outlook.snapshot.now_s)[1]
    held = defaultdict(list)
    for n, leaving in space.leaving.items():
        for k, amounts in leaving:
            held[k].append((n, amounts))

    def give(holdings: list[tuple[int, Any]], times: int) -> None:
        for node, amounts in holdings:
            free[node] += times * amounts
            jobs[node] -= times

    def takes(k: int) -> list[tuple[int, Any]]:
        one, need = space.loose[k], defaultdict[int, Any](lambda: 0.0)
        for n, t in targets[k]:
            whole = one.job.exclusive
            need[n] += space.has[n] if whole else outlook.vector(dict(one.blocks[t][0].holds))
        return list(need.items())

    for k in stopped:
        give(held[k], 1)
    found, first, waiting = list[Action](), set[int](), list(targets)
    while waiting:
        late = []
        for k in waiting:
            own, need, one = [] if k in first else held[k], takes(k), space.loose[k]
            give(own, 1)
            fits = all((amounts <= np.maximum(free[n], 0.0) + 1e-6).all() for n, amounts in need)
            if fits and (not one.job.exclusive or not any(jobs[n] for n, _ in need)):
                give(need, -1)
                found.append(_moved(space, k, targets[k], first=k in first))
            else:
                give(own, -1)
                late.append(k)
        if len(late) == len(waiting):
            stuck = next(k for k in late if k not in first)
            first.add(stuck)
            give(held[stuck], 1)
        waiting = late
    return found


def _moved(space: Space, k: int, to: list[tuple[int, int]], *, first: bool) -> Action:
    one, names = space.loose[k], [node.name for node in space.outlook.snapshot.nodes]
    target, holds = defaultdict[str, int](int), dict[str, dict[str, float]]()
    for n, t in to:
        block = one.blocks[t][0]
        target[names[n]] += block.pieces
        if one.job.held and not one.job.exclusive:
            own = holds.setdefault(names[n], {})
            for resource, amount in block.holds:
                own[resource] = own.get(resource, 0.0) + amount
    return _action("move", one, target=dict(target), first=first, holds=holds)
