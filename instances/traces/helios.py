"""SenseTime Helios (Hu et al., SC 2021; data CC-BY-4.0): jobs of production clusters, 2020."""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from ronda.instances.instance import Instance
from ronda.instances.traces.columns import ALL, Dropped, Filters
from ronda.instances.traces.rigid import V100_NODE, rigid_instance
from ronda.instances.traces.table import read_jobs, refuse, to_number

CITATION = (
    "Hu, Sun, Yan, Wen, Zhang: Characterization and Prediction of Deep Learning Workloads in "
    "Large-Scale GPU Datacenters, SC 2021, doi:10.1145/3458817.3476223"
)
LICENCE = "CC-BY-4.0"

_ALIASES = {
    "submit_s": ("submit_s", "submit_time"),
    "num_gpus": ("num_gpus", "gpu_num", "num_chips"),
    "duration_s": ("duration_s", "duration"),
    "vc": ("vc", "tenant"),
    "name": ("name", "jobname", "job_name"),
    "status": ("status", "state", "final_status"),
}
_EPOCH = pd.Timestamp("2020-04-01 00:00:00")


def read_helios(
    path: str | Path,
    *,
    nodes: int | Mapping[str, int],
    filters: Filters = ALL,
    dropped: Dropped | None = None,
) -> Instance:
    """Read a Helios trace as rigid jobs whose sizes are known (oracle).

    Three forms are understood: HeliosData's own ``cluster_log.csv`` (``submit_time`` as date and
    time; the instance's clock counts from 2020-04-01 00:00), the public slice of two virtual
    clusters (header ``tenant``; microseconds from 2020-09-01 00:00), and the canonical schema
    (``submit_s``). With `nodes` by virtual cluster only their jobs are read, and each becomes a
    partition; a number is one pool of nodes for all jobs.

    How the literature uses it. Helios (QSSF): GPU jobs only (here always), submitted
    2020-09-01 to 09-26, each virtual cluster for itself with its nodes of 8 GPUs;
    preempted jobs lose 7 s (1 GPU), 30 s (2-8) or 60 s (more). Sia: Saturn,
    ``min_duration_s=60, max_gpu_hours=1000`` and windows of 8 hours. Lucid: all of September.

    `dropped` gets how many rows are left out, by reason.

    Raises
    ------
    InputError
        Naming file and row, for anything that cannot be a job.
    """
    return rigid_instance(
        helios_rows(path),
        path=path,
        filters=filters,
        name="helios",
        machine=V100_NODE,
        nodes=nodes,
        dropped=dropped,
        source="SenseTime Helios, github.com/S-Lab-System-Group/HeliosData",
        licence=LICENCE,
        citation=CITATION,
    )


def helios_rows(path: str | Path) -> pd.DataFrame:
    """Return the canonical columns of a trace, and ``name_``, what users called their jobs.

    The three forms are those of `read_helios`; names are empty text where there are none.
    """
    frame = read_jobs(path, _ALIASES | {"name_": ("name", "job_name")}, ("name_",))
    if frame.attrs["headers"]["submit_s"] == "submit_time":
        if frame.attrs["headers"].get("vc") == "tenant":
            frame["submit_s"] = to_number(path, frame, "submit_s") / 1e6
        else:
            frame["submit_s"] = _seconds(path, frame)
    return frame


def _seconds(path: str | Path, frame: pd.DataFrame) -> pd.Series:
    """Return dates and times as seconds since 2020-04-01 00:00."""
    times = pd.to_datetime(frame.submit_s, format="%Y-%m-%d %H:%M:%S", errors="coerce")
    refuse(path, frame, times.isna().to_numpy(), "submit_s", "a time like 2020-09-01 00:00:00")
    return (times - _EPOCH).dt.total_seconds()
