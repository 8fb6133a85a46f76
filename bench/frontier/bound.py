"""The clairvoyant frontier: a mean JCT that no schedule with a given energy can beat.

The E joules of a schedule include the energy of the cheapest idling until the earliest possible
end, which cannot serve jobs. The bounds of `ronda.formulations.bounds.clairvoyant` for a budget of
the remaining joules, all available from the start, therefore hold for the schedule. The bounds of a
sweep's loosest budget hold for every run of the sweep.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from ronda.bench.runs.folder import load_record, store_record
from ronda.formulations.bounds.clairvoyant import bounds
from ronda.formulations.bounds.least_needs import needs
from ronda.instances.budget import EnergyBudget
from ronda.instances.errors import InputError
from ronda.instances.files.json import fingerprint
from ronda.instances.instance import Instance

Steps = tuple[tuple[float, float], ...]
"""Pairs (joules, seconds) that ascend in joules and do not ascend in seconds. No schedule that uses
at most these joules, but more than the previous pair's, has a mean JCT below these seconds. With
less than the first pair's joules, no schedule completes all jobs."""


def bound_steps(
    instance: Instance, watch: Callable[[float], None] | None = None, count: int = 12
) -> Steps:
    """Return the clairvoyant frontier of an instance; it is empty if no schedule keeps the budget.

    The instance has the loosest budget of the sweep. `count` energies range from the least that
    completes all jobs to twice as much. `watch` is called with the share that is done.
    """
    need = needs(instance)
    try:
        loosest = bounds(instance, need=need)
    except InputError:  # no schedule keeps even the loosest budget
        return ()
    least_j = loosest.energy_j
    found = [(least_j, loosest.mean_jct_s)]
    for k, energy_j in enumerate(np.geomspace(1.001 * least_j, 2.0 * least_j, count).tolist()):
        if watch is not None:
            watch(k / count)
        spent = EnergyBudget(
            joules=1e-6,
            horizon_s=1.0,  # almost nothing accrues: the credit is available from the start
            credit_j=energy_j - need.idle_w * loosest.end_s,
        )
        limited = replace(instance, budget=replace(instance.budget, energy=spent))
        try:
            found.append((energy_j, bounds(limited, need=need).mean_jct_s))
        except InputError:  # too little energy for all jobs
            found.append((energy_j, np.inf))
    seconds = np.maximum(np.array([jct for _, jct in found]), loosest.mean_jct_s)
    # A mean JCT that is out of reach with more energy is also out of reach with less.
    highest = np.maximum.accumulate(seconds[::-1])[::-1]
    pairs = zip((energy for energy, _ in found), highest.tolist(), strict=True)
    return tuple(pair for pair in pairs if np.isfinite(pair[1]))


def kept_steps(
    instance: Instance, path: Path, watch: Callable[[float], None] | None = None
) -> Steps:
    """Return `bound_steps` from a JSON file of earlier results by fingerprint, or add it there."""
    kept: dict[str, Steps] = {}
    if path.exists():
        kept = load_record(path, dict[str, Steps])
    key = fingerprint(instance)
    if key not in kept:
        kept[key] = bound_steps(instance, watch)
        store_record(path, kept)
    return kept[key]
