"""Real Slurm clusters for tests; where none can run, a test that asks for one is skipped.

``toy`` is a cluster of 4 nodes of 8 GPUs that the tests of a process share: each finds it without
jobs, all nodes awake and idle. A test must not change its settings or leave a daemon stopped.
``fresh_toy(nodes=2, SlurmdTimeout=5)`` starts one of the test's own, with the arguments of
`tools.toy_slurm.toy_slurm`, in half a second; tests that stop daemons or need other settings take
it. Both give a `tools.toy_slurm.ToySlurm`. A program under test is run with ``env=toy.env``.
"""

from contextlib import ExitStack

import pytest

from ronda.hosts.slurm.guard import SETTLES_S
from tools.toy_slurm import missing, toy_slurm


def _skip_without_slurm():
    """Skip the test, with the reason, where no cluster can run."""
    if (reason := missing()) is not None:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def _shared_toy(tmp_path_factory):
    """A cluster for all tests of a process."""
    _skip_without_slurm()
    with toy_slurm(tmp_path_factory.mktemp("slurm")) as toy:
        yield toy


@pytest.fixture
def toy(_shared_toy):
    """The shared cluster: 4 nodes of 8 GPUs, and no job."""
    yield _shared_toy
    _shared_toy.run("scancel", "--user=root")
    _shared_toy.wait(lambda: not _shared_toy.run("squeue", "--noheader").stdout)


@pytest.fixture
def settled_toy(toy):
    """The shared cluster, once its slurmctld has run for long enough that ronda stops jobs."""
    toy.settle(SETTLES_S)
    return toy


@pytest.fixture
def fresh_toy(tmp_path_factory):
    """A function that starts a cluster of the test's own."""
    _skip_without_slurm()
    with ExitStack() as stack:
        yield lambda **given: stack.enter_context(
            toy_slurm(tmp_path_factory.mktemp("slurm"), **given)
        )
