"""``--dask``: whole runs on workers, and errors before any work."""

import json
import socket

import distributed  # noqa: F401  (so that no test pays for its import)
import pytest

from ronda.bench.runs import on_dask
from ronda.instances.errors import InputError


def summary(done):
    """Return what a command told programs, without times."""
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout.splitlines()[-1])
    (instance,) = told["instances"]
    means = [{k: v for k, v in p.items() if "_s" not in k} for p in instance.get("policies", ())]
    return told["statuses"], means or instance["curves"]


@pytest.fixture(scope="module")
def address():
    """Return the address of a scheduler with a worker."""
    with on_dask.connect(workers=1) as client:
        yield client.scheduler.address


@pytest.mark.parametrize("command", ["compare", "frontier --budgets 1"])
def test_workers_give_the_same_results(command, address, folder, ronda, runs_here, few_steps):
    """Those of runs in this process; a second time nothing runs."""
    words = (*command.split(), "two-nodes.json", "--policies", "srtf", "--no-figures", "--json")
    here = ronda(*words, "--out", "here")
    there = ronda(*words, "--out", "there", "--dask", address)
    assert summary(here) == summary(there)
    again = ronda(*words, "--out", "there", "--dask", address)
    assert "1 of 1 runs are in there already" in again.stderr


@pytest.mark.parametrize("words", ["", "local"])
def test_without_an_address_workers_are_started_here(words, folder, ronda, monkeypatch):
    """As many as runs side by side."""
    asked = []

    def connect(address, workers):
        asked.append((address, workers))
        raise InputError("workers", "enough", "no more")

    monkeypatch.setattr(on_dask, "connect", connect)
    done = ronda("compare", "two-nodes.json", "--policies", "fifo", "--jobs", 3, "--dask", words)
    assert done.exit_code == 2
    assert asked == [("local", 3)]


@pytest.mark.parametrize("command", ["compare", "frontier"])
def test_unreachable_address_is_one_line_and_code_2(command, folder, ronda, monkeypatch):
    """Nobody listens at a port that was just given back."""
    monkeypatch.setattr(on_dask, "CONNECT_S", 0.3)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
    done = ronda(command, "two-nodes.json", "--policies", "fifo", "--dask", address)
    assert done.exit_code == 2
    assert done.output.count("\n") == 1
    assert f"Dask scheduler {address}" in done.output
    assert not (folder / f"{command}-out").exists()


def test_what_is_no_address(folder, ronda):
    """Said in a line."""
    done = ronda("compare", "two-nodes.json", "--policies", "fifo", "--dask", "here")
    assert done.exit_code == 2
    assert done.output.count("\n") == 1
    assert "Dask scheduler here: found no address; expected one like tcp://" in done.output
