"""Instances that tests of several folders share."""

import os

import pytest
from hypothesis import settings

import moved

if moved.SEED:
    moved.install()  # before anything of ronda is there

from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.instance import Instance
from ronda.instances.job import Costs, Estimate, Job, Truth
from ronda.instances.profile import PowerCurve, Profile, Rigid

# The fixtures of `small` are there for all folders.
from small import (  # noqa: F401
    _elastic_round,
    _live_job,
    _make_clocked,
    _make_instance,
    processor_time,
)
from tests.helpers.run_here import run_here

# Its assertions explain themselves like those of a test file.
pytest.register_assert_rewrite("spoilt")

# How fast an example runs says more about the machine than about the code. CI repeats the same
# examples, so that what it finds is due to the change.
settings.register_profile(
    "ronda",
    deadline=None,
    max_examples=500 if os.environ.get("SOAK") else 20,
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("ronda")


def pytest_collection_modifyitems(config, items):
    """Leave soaks out unless they are asked for by name."""
    if "soak" not in config.option.markexpr:
        soaks = [item for item in items if item.get_closest_marker("soak") is not None]
        config.hook.pytest_deselected(items=soaks)
        items[:] = [item for item in items if item.get_closest_marker("soak") is None]


def rigid_job(name, submit_s, gpus, work):
    """Return a rigid job of known size."""
    return Job(
        id=name,
        submit_s=submit_s,
        profile="rigid",
        gpus=gpus,
        estimate=Estimate(work=work),
        truth=Truth(work=work),
    )


@pytest.fixture(scope="session")
def two_nodes():
    """Three rigid jobs on two nodes of 4 GPUs: 100 W a host, 10 W an idle GPU, 60 W a busy one."""
    return Instance(
        name="two-nodes",
        cluster=Cluster(
            gpu_types=(GpuType(name="G", memory_gib=16.0, idle_w=10.0),),
            node_groups=(
                NodeGroup(
                    name="n", count=2, gpus_per_node=4, gpu_type="G", host_idle_w=100.0, sleep_w=5.0
                ),
            ),
        ),
        profiles={
            "rigid": Profile(
                name="rigid",
                throughput={"G": Rigid()},
                power={"G": PowerCurve(a_w=10.0, b_w=50.0)},
            )
        },
        jobs=(
            rigid_job("a", 0.0, 2, 100.0),
            rigid_job("b", 0.0, 8, 50.0),
            rigid_job("c", 10.0, 1, 10.0),
        ),
        costs=Costs(restart_s=5.0),
    )


@pytest.fixture
def runs_here(monkeypatch):
    """Carry out the runs of comparisons in this process (`run_here`)."""
    run_here(monkeypatch)


@pytest.fixture
def write(tmp_path):
    """Return a function that writes lines to a file and returns its path."""

    def writer(*lines, name="trace.csv"):
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return writer
