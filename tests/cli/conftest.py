"""What the tests of the command line share."""

import pytest
from click.testing import CliRunner

from ronda.bench.frontier.bound import bound_steps
from ronda.cli.app import cli
from ronda.instances import generate
from ronda.instances.files.json import write


@pytest.fixture
def folder(tmp_path, two_nodes, monkeypatch):
    """A working directory with an instance, a round, and nothing else."""
    monkeypatch.chdir(tmp_path)
    write(two_nodes, tmp_path / "two-nodes.json")
    write(generate.round(12, None, "balanced", 0), tmp_path / "round.json")
    return tmp_path


@pytest.fixture
def ronda(monkeypatch):
    """Run the command line in this process, on a wide terminal."""
    monkeypatch.setenv("COLUMNS", "200")

    def call(*words, **options):
        return CliRunner().invoke(cli, [str(word) for word in words], prog_name="ronda", **options)

    return call


@pytest.fixture
def few_steps(monkeypatch):
    """Compute the clairvoyant frontier at 3 energies: each takes a tenth of a second."""
    monkeypatch.setattr(bound_steps, "__defaults__", (None, 3))
