"""HFHT, HFTA's tuner on one GPU: the waves of its algorithms, and the GPU-hours of a wave.

Every rung trains from scratch, no checkpoint is used again (hfta/hfht/algorithms.py).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf

import numpy as np

from ronda.instances.errors import InputError
from ronda.instances.models.sharing import first_fit, step_s
from ronda.instances.profile import Mode, Sharing
from ronda.systems.hermes.halving import rungs, rungs_of


@dataclass(frozen=True, slots=True)
class Wave:
    """Trials that run side by side, and the epochs of each.

    `fresh` is true for configurations that are newly drawn, false for survivors of the wave before.
    """

    trials: int
    epochs: int
    fresh: bool


def random_search(epochs: int = 10, configs: int = 81) -> tuple[Wave, ...]:
    """Return the one wave of a random search; the defaults are HFHT's."""
    return (Wave(configs, epochs, fresh=True),)


def hyperband(epochs: int = 81, eta: int = 3, skip_last: int = 2) -> tuple[Wave, ...]:
    """Return Hyperband's waves; the defaults are HFHT's benchmarks.

    They are its rungs (`ronda.systems.hermes.halving`), the last `skip_last` of every
    bracket left out.

    Raises
    ------
    InputError
        If R is no power of eta: rungs would have parts of epochs.
    """
    if eta < 2 or epochs not in rungs(1, eta, epochs + 1):
        raise InputError("hyperband", f"{epochs} epochs, eta {eta}", "epochs that eta^s makes")
    return tuple(
        Wave(trials, each, fresh=rung == 0)
        for levels in rungs_of(epochs, eta)
        for rung, (trials, each) in enumerate(levels[: max(0, len(levels) - skip_last)])
    )


def class_sizes(
    waves: Sequence[Wave], classes: int, random: np.random.Generator
) -> list[tuple[Wave, tuple[int, ...]]]:
    """Return each wave with its trials by fusion class, all classes as likely.

    Survivors are drawn from the wave before: which class trains better is not known.
    """
    found: list[tuple[Wave, tuple[int, ...]]] = []
    for wave in waves:
        if wave.fresh:
            drawn = random.multinomial(wave.trials, [1 / classes] * classes)
        else:
            drawn = random.multivariate_hypergeometric(found[-1][1], wave.trials)
        found.append((wave, tuple(int(n) for n in drawn)))
    return found


def wave_s(sizes: Sequence[int], sharing: Sharing, most: int) -> float:
    """Return the seconds of GPU in which a wave takes one step of every trial.

    `sizes` has the trials of each fusion class, `most` is k_max. Fused, each class is cut by
    `first_fit`, and arrays run one after another. In other modes classes do not matter: as many
    trials as fit run side by side.
    """
    groups = sizes if sharing.mode == "fused" else [sum(sizes)]
    widths = (len(array) for n in groups for array in first_fit(range(n), most))
    return sum(step_s(sharing.time, width) for width in widths)


def best_wave_s(
    sizes: Sequence[int], sharings: Mapping[Mode, Sharing], most: Mapping[Mode, int]
) -> float:
    """Return the least seconds of GPU in which a wave takes one step of every trial.

    Of each class some trials are fused in arrays of any size and the others join a pool, in which
    trials of all classes run alone or side by side. Which is a shortest path over the trials in the
    pool, class by class; so is the number of arrays.
    """
    trials = sum(sizes)
    fused = _least({m: s for m, s in sharings.items() if m == "fused"}, most, trials)
    pooled = _least({m: s for m, s in sharings.items() if m != "fused"}, most, trials)
    by_pool = {0: 0.0}  # trials in the pool -> seconds of the arrays that are fused
    for size in sizes:
        grown: dict[int, float] = {}
        for (known, seconds), into in product(by_pool.items(), range(size + 1)):
            found = seconds + fused[size - into]
            grown[known + into] = min(found, grown.get(known + into, inf))
        by_pool = grown
    return min(seconds + pooled[into] for into, seconds in by_pool.items())


def _least(sharings: Mapping[Mode, Sharing], most: Mapping[Mode, int], trials: int) -> list[float]:
    """Return the least seconds of 0, 1, ... trials in arrays of some modes."""
    arrays = {
        (models, step_s(sharing.time, models))
        for mode, sharing in sharings.items()
        for models in range(1, min(most[mode], trials) + 1)
    }
    found = [0.0]
    for number in range(1, trials + 1):
        ends = (found[number - models] + time_s for models, time_s in arrays if models <= number)
        found.append(min(ends, default=inf))
    return found


def tuning_s(waves: Iterable[tuple[Wave, Sequence[int]]], sharing: Sharing, most: int) -> float:
    """Return the seconds of GPU of a tuning run whose steps are epochs.

    Each wave comes with its trials by fusion class.
    """
    return sum(wave.epochs * wave_s(sizes, sharing, most) for wave, sizes in waves)


@dataclass(frozen=True, slots=True)
class DryRun:
    """How HFHT tries whether a number of models fits: `repeats` tries of `steps` steps."""

    repeats: int
    steps: int


FUSED_DRY_RUN, PROCESSES_DRY_RUN = DryRun(3, 6), DryRun(10, 30)
"""As HFHT's benchmarks: 3 epochs of 2 steps, 3 of 10 (benchmarks/hfht_workflow.sh)."""


def dry_runs(most: int) -> tuple[int, ...]:
    """Return the widths that HFHT tries to find k_max: doubled until one fails, then bisected."""
    if most < 1:
        return (1,)
    tried = [1]
    while tried[-1] <= most:
        tried.append(2 * tried[-1])
    low, high = tried[-2], tried[-1]
    while high - low > 1:
        middle = (low + high) // 2
        tried.append(middle)
        low, high = (middle, high) if middle <= most else (low, middle)
    return tuple(tried)


def profiling_s(sharing: Sharing, most: int, dry_run: DryRun) -> float:
    """Return the seconds in which HFHT finds k_max of one class; tries that fail take no time."""
    tried = (step_s(sharing.time, models) for models in dry_runs(most) if models <= most)
    return dry_run.repeats * dry_run.steps * sum(tried)
