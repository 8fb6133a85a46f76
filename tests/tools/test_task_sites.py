"""The packaged sites of tasks are those that the tool makes of public data."""

import sys
from pathlib import Path

import numpy as np
import pytest

from ronda.instances.tasks.files import read_tasks
from tools.task_sites import main

ROOT = Path(__file__).resolve().parents[2]
PACKAGED = ROOT / "instances" / "data"


def test_the_packaged_files_are_made_again(tmp_path, monkeypatch):
    """The same data give the same arrays; how they are compressed depends on the library."""
    words = ["task_sites", "--source", str(ROOT / "tests" / "data"), "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", words)
    assert main() == 0
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {path.name for path in PACKAGED.glob("tasks-*")}
    for name in names:
        with np.load(tmp_path / name) as made, np.load(PACKAGED / name) as old:
            assert made.keys() == old.keys()
            assert all((made[part] == old[part]).all() for part in made)


def test_openb_is_what_its_tables_say():
    """1,523 nodes and 8,152 pods; 7 gangs and 8 elastic jobs of 3 ways are added."""
    site = read_tasks(PACKAGED / "tasks-openb.npz")
    assert site.nodes == 1523
    assert site.tasks == 8152 + 7 + 24
    assert site.count[site.kinds.index("T4x2-104c-512g")] == 387
    # The first pod asks for 12 cores, 16 GiB and a GPU; a core is worth 0.03, a GiB 0.004.
    first = (site.use == [12_000, 16_384, 64]).all(axis=1)
    assert site.value[first[site.shape]] == pytest.approx(0.36 + 16 * 0.004 + 1)


def test_missing_data_are_named_in_one_line(tmp_path, monkeypatch, capsys):
    """Exit code 2, and nothing is written."""
    words = ["task_sites", "--source", str(tmp_path), "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", words)
    assert main() == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "openb_node_list_all_node.csv.gz: found No such file" in error
    assert list(tmp_path.iterdir()) == []
