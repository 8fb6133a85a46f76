"""Sweeps among ordinary jobs, and Hydro's study, under policies that fuse and that do not."""

import pandas as pd
import pytest

from ronda.bench.fusion.cluster import draw, hydro_table, measure, table
from ronda.bench.study.harness import Folder


@pytest.fixture(scope="module")
def lines():
    """Return what two policies make of one generated cluster."""
    found = []
    for policy in ("fifo", "hfht"):
        case = {"part": "cluster-mixed", "policy": policy, "seed": 0}
        found.append(case | measure(**case, gpu_hours=20.0))
    return pd.DataFrame(found)


def test_fusing_takes_fewer_gpu_hours(lines):
    """HFHT's arrays take less of the GPUs, and less energy, than one trial a GPU."""
    fifo, hfht = lines.to_dict("records")
    assert hfht["gpu_hours"] < fifo["gpu_hours"]
    assert hfht["energy_j"] < fifo["energy_j"]
    assert fifo["energy_low_j"] < fifo["energy_j"]
    assert hfht["violations"] == fifo["violations"] == 0


def test_table_and_figure_hold_every_policy(lines, tmp_path):
    """Both are made of whatever policies were run."""
    draw(lines, Folder(tmp_path))
    assert (tmp_path / "cluster-mixed.png").stat().st_size > 5_000
    told = table(lines)
    assert all(f"| {policy} |" in told for policy in ("fifo", "hfht"))


def test_hydro_by_hand():
    """One trial a GPU: 13 of 50 epochs, 6.0978 s each, on the GPUs that have most."""
    found = measure("sweep-hydro", "fifo", 0)
    assert found["makespan_s"] == pytest.approx(13 * 50 * 6.0978)
    assert found["targets_s"] == pytest.approx(50 * 6.0978)
    row = {"part": "sweep-hydro", "policy": "fifo", "seed": 0} | found
    assert "| fifo | 3964 | 1.00 |" in hydro_table(pd.DataFrame([row]))
