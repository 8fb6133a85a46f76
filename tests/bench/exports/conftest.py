"""Schedules in which jobs wait, stop, go on elsewhere and share GPUs."""

import pytest

from arrays import Told, array, instance
from ronda.horizon.driver import run
from ronda.instances.files.packaged import load


@pytest.fixture(scope="session")
def loads():
    """122 jobs on 64 GPUs under a power cap, some of which are stopped and go on."""
    made = load("philly-energy-small")
    return made, run(made, "srtf")


@pytest.fixture(scope="session")
def shared():
    """Two jobs share a GPU until one ends; the other goes on alone."""
    made = instance([4, 8], gpus=1)
    return made, run(made, Told(lambda r: r.held or array(r, ["j0", "j1"], "fused", 0, "a")))
