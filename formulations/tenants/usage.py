"""What tenants have held in the past, with old use forgotten by half in each half-life.

The mean is ū ← 2^(−Δ/h) ū + (1 − 2^(−Δ/h)) held, in GPUs. It is exact for what is held, so that it
depends neither on the length of rounds nor on how often it is read: what has ended is kept as one
number for each tenant, and what runs is added at the time of reading.
"""

from collections.abc import Iterable, Sequence

from ronda.formulations.tenants.amounts import held
from ronda.instances.cluster import Pool
from ronda.instances.job import Job, JobState, Option
from ronda.instances.site import GPUS

Past = dict[str, tuple[float, float]]
"""The use of each tenant that has ended, in GPUs, and the time to which it is decayed."""


def ended(
    past: Past,
    pools: Sequence[Pool],
    job: Job,
    option: Option,
    start_s: float,
    end_s: float,
    h: float,
) -> None:
    """Add what a job has held from `start_s` to `end_s`, with a half-life of `h` seconds."""
    if job.tenant is not None:
        amount, at_s = past.get(job.tenant, (0.0, end_s))
        gpus = held(pools[option.pool], job, option, GPUS)
        before = amount * 2.0 ** ((at_s - end_s) / h)
        past[job.tenant] = before + gpus * _filled(end_s - start_s, h), end_s


def used_by(
    past: Past,
    pools: Sequence[Pool],
    running: Iterable[JobState],
    now_s: float,
    half_life_s: float | None,
) -> dict[str, float]:
    """Return the GPUs that each tenant has held, with what runs now; none without a half-life."""
    if half_life_s is None:
        return {}
    found = {n: amount * 2.0 ** ((at - now_s) / half_life_s) for n, (amount, at) in past.items()}
    for state in running:
        tenant, given = state.job.tenant, state.allocation
        if tenant is not None and given is not None:
            gpus = held(pools[given.option.pool], state.job, given.option, GPUS)
            more = gpus * _filled(now_s - state.held_s, half_life_s)
            found[tenant] = found.get(tenant, 0.0) + more
    return found


def _filled(seconds: float, half_life_s: float) -> float:
    """Return the weight of the last seconds in the mean."""
    return 1.0 - float(2.0 ** (-max(0.0, seconds) / half_life_s))
