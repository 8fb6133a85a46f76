"""``--dask``: the same plan on workers, and errors before any work."""

import socket
import time

import pytest

from ronda.instances import generate
from ronda.instances.files.json import read, write
from ronda.solvers.dask import client as dask_client


@pytest.fixture(autouse=True)
def left_alone():
    """Leave every cluster after the test."""
    yield
    dask_client.close()


def test_two_worker_processes_give_the_same_plan(tmp_path, ronda):
    """5,000 jobs are two blocks: one for each worker. All but the times is equal, bit for bit."""
    source = tmp_path / "round.json"
    write(generate.round(5000, None, "tight", 0), source)
    plans = []
    for more in ((), ("--dask", "local")):
        out = tmp_path / f"plan{len(plans)}.json"
        done = ronda("solve", source, "--policy", "prices", "--out", out, *more)
        assert done.exit_code == 0, done.output
        plans.append(read(out))
    here, there = plans
    assert dask_client.client("local").status == "running"  # it is still the same one
    assert there.allocations == here.allocations
    assert (there.objective, there.bound, there.prices) == (here.objective, here.bound, here.prices)
    assert there.details == here.details


def test_run_takes_it_too(folder, ronda):
    """Small rounds need no worker, but the connection is made; empty stands for local."""
    plain = ronda("run", "two-nodes.json", "--policy", "prices", "--json")
    shared = ronda("run", "two-nodes.json", "--policy", "prices(gap=1e-4)", "--dask", "", "--json")
    assert shared.exit_code == 0, shared.output
    assert '"mean_jct_s"' in shared.output

    def jct(done):
        return done.output.split('"mean_jct_s":')[1].split(",")[0]

    assert jct(shared) == jct(plain)


@pytest.mark.parametrize("command", ["solve", "run"])
def test_unreachable_address_is_one_line_and_code_2(folder, ronda, command):
    """Nobody listens at a port that was just given back. 3 s are for the scheduler to answer."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
    source = {"solve": "round.json", "run": "two-nodes.json"}[command]
    begin = time.monotonic()
    done = ronda(command, source, "--policy", "prices", "--dask", address)
    assert time.monotonic() - begin < 5
    assert done.exit_code == 2
    assert done.output.count("\n") == 1
    assert f"Dask scheduler {address}" in done.output


@pytest.mark.parametrize(
    ("policy", "address", "expected"),
    [
        ("fifo", "local", "found --policy fifo, which cannot share its work; expected one of:"),
        ("prices(dask=local)", "local", "expected one address"),
        ("prices", "here", "Dask scheduler here: found no address; expected one like tcp://"),
        ("nobody", "local", "'nobody'"),
    ],
)
def test_what_cannot_be_meant(folder, ronda, policy, address, expected):
    """Said in a line before anything is read."""
    done = ronda("solve", "missing.json", "--policy", policy, "--dask", address)
    assert done.exit_code == 2
    assert done.output.count("\n") == 1
    assert expected in done.output
