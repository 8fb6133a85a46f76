"""Rules for a batch of repetitive jobs: full arrays as HFHT cuts them, or as many as pay.

Arrays go to GPUs by list scheduling: the longest first for the makespan, by Smith's rule for the
mean JCT, each to the GPU on which it ends first.
"""

from collections.abc import Mapping, Sequence

from lab.fusion.arrays import (
    Arrangement,
    Array,
    FusionCase,
    Objective,
    arrays_of,
    in_order,
)
from ronda.instances.errors import InputError
from ronda.instances.models.sharing import balanced, first_fit

Ways = Mapping[tuple[int, int], Sequence[Array]]
"""The arrays of a batch and k, one for each GPU type that holds them."""


def full(case: FusionCase, objective: Objective) -> Arrangement:
    """Return full arrays and a last one with the rest, for every batch (HFHT's chunks)."""
    ways = _ways(case)
    sizes = {
        c: [len(array) for array in first_fit(range(batch.jobs), _most(ways, c))]
        for c, batch in enumerate(case.batches)
    }
    return _placed(case, ways, sizes, objective)


def even(case: FusionCase, objective: Objective) -> Arrangement:
    """Return even arrays, as many of each batch as serve the objective best.

    From the fewest on, one batch after another takes the number that is best with the others,
    until none changes.
    """
    ways = _ways(case)
    fewest = {c: -(-b.jobs // _most(ways, c)) for c, b in enumerate(case.batches)}

    def placed(numbers: Mapping[int, int]) -> Arrangement:
        sizes = {
            c: [len(array) for array in balanced(range(case.batches[c].jobs), number)]
            for c, number in numbers.items()
        }
        return _placed(case, ways, sizes, objective)

    numbers, best = dict(fewest), placed(fewest)
    changed = True
    while changed:
        changed = False
        for c, batch in enumerate(case.batches):
            for number in range(fewest[c], batch.jobs + 1):
                found = placed(numbers | {c: number})
                if found.value(objective) < best.value(objective) * (1 - 1e-12):
                    numbers, best, changed = numbers | {c: number}, found, True
    return best


def _ways(case: FusionCase) -> Ways:
    """Return the arrays by batch and k; a batch needs one of every k up to its most."""
    found: dict[tuple[int, int], list[Array]] = {}
    for array in arrays_of(case):
        found.setdefault((array.batch, array.models), []).append(array)
    for c, batch in enumerate(case.batches):
        missing = [k for k in range(1, _most(found, c)) if (c, k) not in found]
        if missing:
            raise InputError(f"batch {batch.name}", f"no array of {missing[0]}", "every number")
    return found


def _most(ways: Ways, batch: int) -> int:
    return max(k for c, k in ways if c == batch)


def _placed(
    case: FusionCase, ways: Ways, sizes: Mapping[int, Sequence[int]], objective: Objective
) -> Arrangement:
    """Return arrays of these sizes on GPUs, by list scheduling.

    For least GPU time each goes to the type on which it is shortest.
    """
    wanted = [ways[c, k] for c, many in sizes.items() for k in many]
    if objective == "gpu-time":
        wanted = [[min(options, key=lambda a: a.time_s)] for options in wanted]
    shortest = [min(a.time_s for a in options) for options in wanted]
    if objective == "mean-jct":
        rank = [t / options[0].models for t, options in zip(shortest, wanted, strict=True)]
    else:
        rank = [-t for t in shortest]
    gpus = [(gpu, number) for gpu, many in case.gpus.items() for number in range(many)]
    ends = dict.fromkeys(gpus, 0.0)
    taken: dict[tuple[str, int], list[Array]] = {gpu: [] for gpu in gpus}
    for index in sorted(range(len(wanted)), key=rank.__getitem__):
        pairs = [(gpu, a) for a in wanted[index] for gpu in gpus if gpu[0] == a.gpu_type]
        gpu, array = min(pairs, key=lambda pair: ends[pair[0]] + pair[1].time_s)
        ends[gpu] += array.time_s
        taken[gpu].append(array)
    return Arrangement(case, tuple(in_order(own) for own in taken.values()))
