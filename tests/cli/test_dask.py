"""``--dask``: whole runs on workers, and errors before any work."""

import json
import socket

import distributed  # noqa: F401  (so that no test pays for its import)
import pytest

from ronda.bench.runs import cluster


def summary(done):
    """Return what a command told programs, without times."""
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout.splitlines()[-1])
    (instance,) = told["instances"]
    means = [{k: v for k, v in p.items() if "_s" not in k} for p in instance.get("policies", ())]
    return told["statuses"], means or instance["curves"]


@pytest.mark.parametrize("command", ["compare", "frontier --budgets 1"])
def test_workers_give_the_same_results(command, folder, ronda):
    """An empty address stands for workers that are started here."""
    words = (*command.split(), "two-nodes.json", "--policies", "srtf", "--no-figures")
    here = ronda(*words, "--out", "here", "--json")
    there = ronda(*words, "--out", "there", "--json", "--dask", "", "--jobs", 1)
    assert summary(here) == summary(there)
    again = ronda(*words, "--out", "there", "--dask", "local", "--jobs", 1)
    assert "1 of 1 runs are in there already" in again.stderr


@pytest.mark.parametrize("command", ["compare", "frontier"])
def test_unreachable_address_is_one_line_and_code_2(command, folder, ronda, monkeypatch):
    """Nobody listens at a port that was just given back."""
    monkeypatch.setattr(cluster, "CONNECT_S", 0.3)
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
