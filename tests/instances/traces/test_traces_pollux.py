"""The measurements and workloads of Pollux: steps, batches, noise, jobs."""

import gzip
import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.instances.errors import InputError
from ronda.instances.rules.validate import problems
from ronda.instances.traces.pollux import batch_grid, noise_curve, read_pollux, tabular


def steps(*rows):
    """Return a frame of steps: gpus, nodes, local batch, step, sync."""
    columns = ["gpus", "nodes", "local_bsz", "step_time", "sync_time"]
    return pd.DataFrame(rows, columns=columns)


def test_nodes_between_measured_ones_are_interpolated():
    """8 GPUs on 2 and 4 nodes take 1 and 2 s: on 3 nodes 1.5 s, of which 0.4 s synchronise."""
    table = tabular(steps((8, 4, 16, 2.0, 0.6), (8, 2, 16, 1.0, 0.2), (8, 2, 32, 3.0, 0.3)))
    rows = list(zip(table.gpus, table.nodes, table.local_batch, strict=True))
    assert rows == [(8, 2, 16), (8, 2, 32), (8, 3, 16), (8, 4, 16)]
    assert table.step_s == (1.0, 3.0, 1.5, 2.0)
    assert table.sync_s == (0.2, 0.3, 0.4, 0.6)


@given(doublings=st.integers(0, 9), low=st.integers(4, 500))
def test_batch_grid_holds_all_validated_sizes_and_ascends(doublings, low):
    """Validated sizes double; the grid has three sizes to a doubling and both ends."""
    sizes = [float(low * 2**k) for k in range(doublings + 1)]
    grid = batch_grid(np.array(sizes))
    assert set(sizes) <= set(grid)
    assert len(grid) == 3 * doublings + 1
    assert all(a < b for a, b in pairwise(grid))


def test_noise_scale_and_stages_by_hand():
    """B0 = 10. Epoch 1: scale 10 x 6/2 = 30 at B0, 10 x 8/1 = 80 at 20; least progress 100 steps.

    At 13 (three to a doubling: 10, 13, 16, 20) grad_var = 6.6 and grad_sqr = 1.7: 38.8235.
    Epoch 2 at B0 has grad_sqr = 0: the scale is the largest allowed.
    """
    runs = pd.DataFrame(
        [
            (10.0, 1.0, 100.0, 2.0, 6.0),
            (20.0, 1.0, 105.0, 1.0, 8.0),
            (10.0, 2.0, 210.0, 0.0, 6.0),
            (20.0, 2.0, 200.0, 1.0, 4.0),
        ],
        columns=["global_bsz", "epoch", "progress", "grad_sqr", "grad_var"],
    )
    runs["app"] = "app"
    curve = noise_curve(runs, 2)
    assert curve.batches == (10, 13, 16, 20)
    assert curve.until == (1000, 2000)
    assert curve.scale[0] == (30.0, 38.8235, pytest.approx(10 * 7.2 / 1.4, rel=1e-5), 80.0)
    assert curve.scale[1][0] == 1e9
    assert curve.scale[1][3] == 40.0
    with pytest.raises(InputError, match="3 at every batch size"):
        noise_curve(runs, 3)


@pytest.fixture
def pollux_folder(write):
    """Write a data folder with one application, measured on 1, 2 and 4 GPUs."""
    gz = "app,placement,local_bsz,step_time,sync_time"
    near = [f"ncf,{p},{b},{t},0" for p, t in (("1", 4), ("2", 3), ("11", 5)) for b in (32, 32768)]
    folder = None
    for name, lines in {
        "placements_aws_t4": [gz, *near],
        "scalability_aws_t4": [
            "app,num_nodes,num_replicas,local_bsz,step_time,sync_time",
            "ncf,6,6,32,9,1",
        ],
        "statistical_efficiency": [
            "app,global_bsz,epoch,progress,iteration,metric,grad_sqr,grad_var",
            "ncf,256,1,100,100,0,1,1",
            "ncf,512,1,100,50,0,1,1",
        ],
        "workloads": [
            "set,seed,name,time,application,num_replicas,batch_size",
            "workloads,1,late,50,ncf,1,32768",
            "workloads,1,early,5,ncf,1,32768",
            "workloads,2,other,5,ncf,1,32768",
        ],
    }.items():
        plain = write(*lines, name=f"{name}.csv")
        folder = plain.parent
        (folder / f"{name}.csv.gz").write_bytes(gzip.compress(plain.read_bytes()))
    (folder / "app_constants.json").write_text(json.dumps({"ncf": {"max_epochs": 1}, "_": "note"}))
    return folder


def test_pollux_jobs_of_a_tiny_folder(pollux_folder, jobs_of):
    """Work = 100 steps x B0 = 256 samples; ncf stays on one GPU with its batch; 30-s restarts."""
    instance = read_pollux(pollux_folder, seed=1)
    assert jobs_of(instance) == [("early", 5, 1, 25_600), ("late", 50, 1, 25_600)]
    job, profile = instance.jobs[0], instance.profiles["ncf"]
    assert (job.min_gpus, job.max_gpus, job.batch) == (1, 1, 32_768)
    assert profile.batches == ()
    assert (profile.base_batch, profile.max_local_batch) == (256, 16_384)
    assert instance.curves["ncf"].scale == ((256.0,) * 4,)
    assert (instance.costs.start_s, instance.costs.restart_s) == (30, 30)
    assert (instance.cadence.period_s, instance.cadence.on_event) == (60, True)
    assert list(problems(instance)) == []


def test_pollux_workloads_that_are_not_there(pollux_folder):
    """The error lists those that are."""
    with pytest.raises(InputError, match="workloads/1, workloads/2"):
        read_pollux(pollux_folder, seed=9)


def test_pollux_files_that_are_broken(pollux_folder):
    """A bad placement, an application without measurements, and no constants."""
    path = pollux_folder / "placements_aws_t4.csv.gz"
    good = path.read_bytes()
    path.write_bytes(gzip.compress(gzip.decompress(good).replace(b"ncf,11,", b"ncf,1x,")))
    with pytest.raises(InputError, match="row 6, placement"):
        read_pollux(pollux_folder)
    path.write_bytes(gzip.compress(gzip.decompress(good).replace(b"ncf,", b"bert,")))
    (pollux_folder / "scalability_aws_t4.csv.gz").write_bytes(
        gzip.compress(b"app,num_nodes,num_replicas,local_bsz,step_time,sync_time\nbert,6,6,4,1,0\n")
    )
    with pytest.raises(InputError, match="no measurements of 'ncf'"):
        read_pollux(pollux_folder)
    (pollux_folder / "app_constants.json").write_text("{")
    with pytest.raises(InputError, match=r"app_constants\.json"):
        read_pollux(pollux_folder)
