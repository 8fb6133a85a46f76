"""Generated sweeps among ordinary jobs: the shares of the study, and who may share GPUs."""

from collections import Counter, defaultdict

import pytest

from ronda.instances.errors import InputError
from ronda.instances.generate import mixed
from ronda.instances.generate.mixtures import GPU, SHARES
from ronda.instances.rules.validate import validate

KINDS = {"s": "sweeps", "m": "several", "o": "other", "i": "isolated"}


def lone_gpu_s(instance, job):
    """Return the GPU-seconds of a job as its user expects it, on one GPU or rigid."""
    model = instance.profiles[job.profile].throughput[GPU.name]
    if not hasattr(model, "beta_c_s"):
        return job.truth.work * job.gpus
    batch = instance.profiles[job.profile].base_batch
    step_s = model.alpha_c_s + model.beta_c_s * batch
    work = job.estimate.work if job.fusible else job.truth.work
    return work * step_s / batch


@pytest.mark.parametrize("seed", [0, 7])
def test_shares_are_those_of_the_study(seed):
    """Each kind brings its part of the GPU-hours, to what one job more or less makes."""
    made = mixed(seed=seed, gpu_hours=240.0)
    validate(made)
    total = Counter()
    for job in made.jobs:
        total[KINDS[job.id[0]]] += lone_gpu_s(made, job) / 3600
    for kind, share in SHARES.items():
        assert total[kind] == pytest.approx(share * 240.0, rel=0.05)


def test_trials_of_a_sweep_come_in_a_burst():
    """A class has one profile and batch; its trials come within minutes, and some stop early."""
    made = mixed(seed=3)
    classes = defaultdict(list)
    for job in made.jobs:
        if job.fusible is not None:
            classes[job.fusible].append(job)
    assert max(map(len, classes.values())) > 4
    for jobs in classes.values():
        assert len({(job.profile, job.batch, job.gpus) for job in jobs}) == 1
        assert jobs[-1].submit_s - jobs[0].submit_s < 3600
    swept = [job for jobs in classes.values() for job in jobs]
    early = sum(job.truth.work < 0.95 * job.estimate.work for job in swept)
    assert 0.1 * len(swept) < early < 0.4 * len(swept)


def test_the_same_seed_gives_the_same_jobs():
    """Another one gives others."""
    assert mixed(seed=1) == mixed(seed=1)
    assert mixed(seed=1).jobs != mixed(seed=2).jobs


@pytest.mark.parametrize("wrong", [{"gpus": 12}, {"gpu_hours": 0.0}, {"load": float("inf")}])
def test_arguments_out_of_range_are_refused(wrong):
    """In one line that names the argument."""
    with pytest.raises(InputError, match=next(iter(wrong))):
        mixed(**wrong)
