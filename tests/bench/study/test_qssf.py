"""The study of queues: one virtual cluster of Philly, as it is and on fewer nodes."""

from itertools import product
from pathlib import Path

import pandas as pd
import pytest

from ronda.bench.study import qssf

TRACE = str(Path(__file__).resolve().parents[2] / "data" / "philly" / "jobs_canonical.csv.gz")


def measured(part, policy, knowledge="declared", load=0.0):
    """Return what a case finds on the virtual cluster of fewest jobs."""
    return qssf.measure(part, TRACE, "e13805", policy, knowledge, 0, load, 6)


def test_crowded_clusters_have_the_same_jobs_on_fewer_nodes():
    """The 252 jobs of 16 nodes, on as few as make the load or hold the widest job."""
    alone, crowded = measured("philly", "fifo"), measured("crowded", "fifo", load=0.95)
    assert (alone["jobs"], alone["nodes"], alone["violations"]) == (252, 16, 0)
    assert crowded["jobs"] == 252
    assert crowded["nodes"] < 16
    assert crowded["mean_queue_s"] > alone["mean_queue_s"]


def test_wrong_sizes_change_the_order():
    """Qssf with the published errors is not qssf with true sizes, and the seed is its own."""
    true = measured("crowded", "qssf", load=0.95)["mean_jct_s"]
    wrong = measured("crowded", "qssf", "errors", 0.95)["mean_jct_s"]
    assert wrong != true
    assert wrong == measured("crowded", "qssf", "errors", 0.95)["mean_jct_s"]


@pytest.mark.parametrize("ratio", ["2.31", "7.26"])
def test_the_table_has_the_published_ratios(ratio):
    """FIFO over QSSF: 86,072 / 37,324 s of JCT, 56,531 / 7,783 s of queueing."""
    rows = [
        {"of": vc, "policy": policy, "jobs": 10, "nodes": 2, "mean_jct_s": 5.0, "mean_queue_s": 1.0}
        for vc, policy in product(qssf.PUBLISHED, qssf.RIVALS)
    ]
    table = qssf.philly_table(pd.DataFrame(rows))
    assert f"| {ratio} |\n" in table
    assert "| 78,659 |" in table
