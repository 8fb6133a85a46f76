"""The workload of ONES, and its traces."""

from collections import Counter

import numpy as np
import pytest

from ronda.instances.errors import InputError
from ronda.instances.rules.validate import problems
from ronda.systems.ones.trace import ones_workload, read_ones

HEADER = "time,model,task,epoch_size,patience,batch_size,lr,max_lr,target_acc,num_gpus"


def test_ones_workload_has_the_pattern_of_trace_1():
    """400 jobs: 40 of each pair, GPU requests 16:160, 4:120, 2:80, 8:40, gaps 0 to 60 s."""
    instance = ones_workload(400, seed=3)
    assert Counter(j.gpus for j in instance.jobs) == {16: 160, 4: 120, 2: 80, 8: 40}
    assert set(Counter(j.profile for j in instance.jobs).values()) == {40}
    gaps = np.diff([j.submit_s for j in instance.jobs])
    assert gaps.min() >= 0
    assert gaps.max() <= 60
    # Uniform on 0..60: mean 30, standard deviation 17.6; 399 gaps: 4 standard errors are 3.5.
    assert abs(gaps.mean() - 30) < 3.5
    assert instance == ones_workload(400, seed=3)
    assert instance != ones_workload(400, seed=4)
    assert list(problems(instance)) == []


def test_ones_trace_of_the_artifact_s_form(write):
    """A BERT job of 2 GPUs: batch 16 x 2, at most 4 x 16 (max_lr / lr = 4) on at most 8 GPUs."""
    path = write(
        HEADER,
        "30,resnet50,imagenet,10000,10,32,5e-4,0.008,0.55,16",
        "0,bert,cola,8000,5,16,5e-06,2e-5,0.8,2",
    )
    instance = read_ones(path)
    bert, resnet = instance.jobs
    assert (bert.batch, bert.gpus, bert.max_gpus) == (32, 2, 8)
    assert instance.profiles[bert.profile].batches == (16, 32, 48, 64)
    assert bert.truth.work in (5 * 8000, 6 * 8000)
    assert (bert.estimate.work, bert.estimate.sd) == (5.5 * 8000, 0.5 * 8000)
    assert (resnet.submit_s, resnet.batch, resnet.max_gpus) == (30, 512, 64)
    assert 11 * 10_000 <= resnet.truth.work <= 50 * 10_000
    assert list(problems(instance)) == []


@pytest.mark.parametrize(
    ("row", "largest"),
    [
        ("resnet18,cifar,20000,10,256,0.005,0.08", 4096),  # max_lr / lr = 16
        ("vgg16,cifar,20000,10,128,0.001,0.016", 2048),
        ("resnet50,imagenet,10000,10,32,5e-4,0.008", 512),
        ("alexnet,imagenet,10000,10,64,2.5e-4,0.004", 1024),
        ("bert,sst2,10000,5,32,2.5e-6,2e-5", 256),  # 8
        ("bert,cola,8000,5,16,5e-6,2e-5", 64),  # 4
    ],
)
def test_largest_global_batches(write, row, largest):
    """The base batch times max_lr / lr, whatever that division leaves in the last digit."""
    instance = read_ones(write(HEADER, f"0,{row},0.8,2"))
    assert instance.profiles[instance.jobs[0].profile].batches[-1] == largest


@pytest.mark.parametrize(
    ("row", "place"),
    [
        ("0,bart,cola,8000,5,16,5e-06,2e-5,0.8,2", "row 2, model"),
        ("-1,bert,cola,8000,5,16,5e-06,2e-5,0.8,2", "row 2, time"),
        ("0,bert,cola,0,5,16,5e-06,2e-5,0.8,2", "row 2, epoch_size"),
        ("0,bert,cola,8000,5,16,0,2e-5,0.8,2", "row 2, lr"),
    ],
)
def test_bad_ones_rows(write, row, place):
    """File and row, as everywhere."""
    with pytest.raises(InputError, match=place):
        read_ones(write(HEADER, row))


def test_ones_without_jobs():
    """No workload of nothing."""
    with pytest.raises(InputError, match="at least one job"):
        ones_workload(0)


def test_ones_users_ask_for_the_batch_of_one_gpu_or_of_all():
    """The same jobs: BERT on 2 GPUs with 16 x 2 or 16, all else equal."""
    scaled, base = (ones_workload(20, 1, batch=batch) for batch in ("scaled", "base"))
    for one, other in zip(scaled.jobs, base.jobs, strict=True):
        profile = scaled.profiles[one.profile]
        assert other.batch == profile.base_batch
        assert one.batch == min(one.gpus * profile.base_batch, profile.batches[-1])
        assert one.truth == other.truth


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"nodes": 3}, "nodes: found 12 GPUs; expected 16"),
        ({"batch": "big"}, "batch: found 'big'"),
    ],
)
def test_ones_workloads_that_cannot_be(fields, place):
    """The requests must fit into the cluster, and the batch must be a known one."""
    with pytest.raises(InputError, match=place):
        ones_workload(20, **fields)
