"""Nodes in use on Helios's Earth in September 2020, and in May, to learn from."""

from pathlib import Path

import numpy as np
from msgspec import structs

from ronda.instances.demand import Demand
from ronda.instances.traces.table import read_columns, to_number
from ronda.systems.helios.trace import read_demand
from tools.recipes.item import Item

_WORDS = (
    "Helios Earth, 1-21 September 2020: nodes in use, every 10 minutes, with the forecast and the "
    "active nodes of its controller CES\n"
    "Read from the vector figure of the artifact (Fig. 14 of the paper), to the node. In 6 of "
    "3,024 steps the figure's path is simplified; there the nodes in use were chosen so that the "
    "published controller gives the published active nodes. The forecast is rounded down, and not "
    "causal beyond six steps: features of later steps have seen later demand. "
    "Nodes in use count those with at least one GPU in use, the most in each step. Watts, and how "
    "long a node takes to wake, are not published."
)
_CITATION = (
    "Hu, Sun, Yan, Wen, Zhang: Characterization and Prediction of Deep Learning Workloads in "
    "Large-Scale GPU Datacenters, SC 2021"
)
_REFERENCE = {
    "ces": {
        "mean_sleeping_nodes": 20.49,
        "wakeups_per_day": 1.33,
        "nodes_per_wakeup": 6.68,
        "changes_per_day": 2.62,
        "mean_change_nodes": 6.64,
        "utilisation_before": 0.8213,
        "utilisation_after": 0.9506,
        "lack_intervals": 28.0,
        "lack_node_intervals": 47.0,
    },
    "oracle": {"wakeups_per_day": 1.38, "mean_sleeping_nodes": 24.7},
}


_MAY_WORDS = (
    "Helios Earth, May 2020: nodes that ten of its virtual clusters needed, every 10 minutes\n"
    "For forecasters that learn from what precedes `earth-2020-09`. Of each virtual cluster the "
    "GPUs in use every fifth minute are published, not the nodes: needed are as few nodes of "
    "8 GPUs as hold them, the most of two samples. Jobs that are spread out need more. The "
    "ten clusters have 77 of Earth's 143 nodes."
)


def earth_may(source: Path) -> Item:
    """Return the series of May."""
    path = source / "helios_venus" / "earth_16vc_may2020_5min.csv.gz"
    wanted = {name: (name,) for name in ("vc", "minute", "total_gpu", "running_gpu")}
    frame = read_columns(path, wanted, kind="sample")
    for name in ("minute", "total_gpu", "running_gpu"):
        frame[name] = to_number(path, frame, name)
    frame["needed"], frame["total"] = np.ceil(frame.running_gpu / 8), frame.total_gpu // 8
    samples = frame.groupby("minute")[["needed", "total"]].sum()
    steps = samples.groupby(samples.index // 10).max().astype(int)
    made = Demand(
        name="earth-2020-05",
        start="2020-05-01T00:00:00",
        step_s=600.0,
        needed=tuple(steps.needed.tolist()),
        total=tuple(steps.total.tolist()),
        description=_MAY_WORDS,
        source="SenseTime Helios, github.com/S-Lab-System-Group/HeliosArtifact, Earth_vcs",
        licence="MIT",
        citation=_CITATION,
        made={"recipe": "earth_may"},
    )
    return Item(obj=made)


def earth(source: Path) -> Item:
    """Return the series."""
    plain = read_demand(
        source / "helios" / "earth_ces_sept2020_10min_from_fig14.csv", name="earth-2020-09"
    )
    made = structs.replace(
        plain,
        description=_WORDS,
        source="SenseTime Helios, github.com/S-Lab-System-Group/HeliosArtifact, helios_ces.pdf",
        licence="MIT",
        citation=_CITATION,
        reference=_REFERENCE,
        made={"recipe": "earth"},
    )
    return Item(obj=made)
