"""What running jobs claim of their batch, speed and power: completed, or found wrong."""

from collections.abc import Iterator

from msgspec.structs import replace

from ronda.instances.check.option import Examiner
from ronda.instances.job import JobState, Option
from ronda.instances.profile import Profile, Rated, Rigid
from ronda.instances.round import Round
from ronda.instances.violation import Fault, exceeds

_ABSENT = Option(pool=0, gpus=1)  # a field that is left out has its default


def completed(round: Round) -> Round:
    """Return the round with batch, rate and power of what runs, where they were left out.

    A field with its default counts as left out if the profile forbids that value. The batch is
    then the job's own, the rate that of its noise scale now, the power that of its profile. What
    is faulty otherwise stays as it is; the cluster and the profiles must be consistent.
    """
    if not any(s.allocation and _may_lack(s.allocation.option) for s in round.running):
        return round
    examiner = Examiner(round.cluster, round.profiles)
    running = tuple(_completed(examiner, state) for state in round.running)
    same = all(a is b for a, b in zip(running, round.running, strict=True))
    return round if same else replace(round, running=running)


def claim_faults(examiner: Examiner, state: JobState) -> Iterator[tuple[str, Fault]]:
    """Yield what is wrong with what a running job holds: a field of its option ("": all of it).

    What was measured when it began, or since, may have been fitted again: a rate is held only
    against a rigid profile, and watts not against a table that was handed over.
    """
    held = state.allocation
    assert held is not None
    faults = examiner.placement(held.option, held.placement)
    verdict = examiner.verdict(state.job, held.option, None if faults else held.placement)
    for fault in [*faults, *verdict.faults]:
        yield "", fault
    if verdict.claimed is None:
        return
    model = examiner.physics(state.job, held.option).model
    if not isinstance(model, Rated):
        for fault in examiner.option_power(held.option, verdict):
            yield "power_w", fault
    if isinstance(model, Rigid):
        for fault in examiner.rate(state, held.option, verdict):
            yield "rate", fault


def own_batch(state: JobState, profile: Profile) -> float:
    """Return the global batch that the job's user chose."""
    return profile.base_batch if state.job.batch is None else state.job.batch


def _may_lack(option: Option) -> bool:
    return (
        option.rate == _ABSENT.rate
        or option.power_w == _ABSENT.power_w
        or option.batch == _ABSENT.batch
    )


def _completed(examiner: Examiner, state: JobState) -> JobState:
    """Return the state with a complete option, or the very same."""
    held, profile = state.allocation, examiner.profiles.get(state.job.profile)
    if held is None or profile is None or not _may_lack(held.option):
        return state
    option, own = held.option, own_batch(state, profile)
    if option.batch == _ABSENT.batch and option.batch not in (own, *profile.batches):
        option = replace(option, batch=own)
    verdict = examiner.verdict(state.job, option, None)
    if verdict.claimed is None:
        return state
    power_w, rate = option.power_w, option.rate
    if power_w == _ABSENT.power_w:
        power_w = verdict.power_w
    if rate == _ABSENT.rate:
        least, most = _rates(examiner, state, option, verdict.claimed.samples_per_s)
        if exceeds(least, rate) or exceeds(rate, most):
            rate = examiner.expected_rate(state, option, verdict.claimed)
    if (option, power_w, rate) == (held.option, option.power_w, option.rate):
        return state
    option = replace(option, power_w=power_w, rate=rate)
    return replace(state, allocation=replace(held, option=option))


def _rates(
    examiner: Examiner, state: JobState, option: Option, samples_per_s: float
) -> tuple[float, float]:
    """Return the least and the greatest rate, over all noise scales: efficiency B0/B to 1."""
    physics = examiner.physics(state.job, option)
    worst = physics.efficiency(option.batch, (option.batch,), (0.0,))
    return samples_per_s * min(1.0, worst), samples_per_s * max(1.0, worst)
