"""Readers of published traces of rigid jobs (Helios, Philly and ITP), as used in the literature.

Their columns are in `ronda.instances.traces.columns.NAMED`. A trace with a row that cannot be a job
is refused whatever the filters, as a file with a broken row is broken.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pandas as pd

from ronda.instances.errors import InputError
from ronda.instances.instance import Instance
from ronda.instances.traces.columns import ALL, NAMED, Dropped, Filters
from ronda.instances.traces.mapped import canonical, mapped_onto
from ronda.instances.traces.rigid import (
    A100_NODE,
    P100_NODE,
    V100_NODE,
    Machine,
    rigid_instance,
)
from ronda.instances.traces.table import clean_jobs, refuse
from ronda.instances.traces.text import read_cells


class Published(NamedTuple):
    """The nodes and the source of a trace."""

    machine: Machine
    source: str
    licence: str
    citation: str


PUBLISHED = MappingProxyType(
    {
        "helios": Published(
            machine=V100_NODE,
            source="SenseTime Helios, github.com/S-Lab-System-Group/HeliosData",
            licence="CC-BY-4.0",
            citation=(
                "Hu, Sun, Yan, Wen, Zhang: Characterization and Prediction of Deep Learning "
                "Workloads in Large-Scale GPU Datacenters, SC 2021, doi:10.1145/3458817.3476223"
            ),
        ),
        "philly": Published(
            machine=P100_NODE,
            source=(
                "Microsoft Philly, github.com/msr-fiddle/philly-traces, as listed by petuum/adaptdl"
            ),
            licence="CC-BY-4.0",
            citation=(
                "Jeon, Venkataraman, Phanishayee, Qian, Xiao, Yang: Analysis of Large-Scale "
                "Multi-Tenant GPU Clusters for DNN Training Workloads, USENIX ATC 2019"
            ),
        ),
        "itp": Published(
            machine=A100_NODE,
            source="Microsoft ITP 2021, github.com/microsoft/elasticflow-traces",
            licence="MIT",
            citation=(
                "Gu, Zhao, Zhong, Xiong, Han, Cheng, Yang, Huang, Jin, Liu: ElasticFlow: An "
                "Elastic Serverless Training Platform for Distributed Deep Learning, ASPLOS 2023"
            ),
        ),
    }
)
"""Published traces by name."""

DAY_S = 86_400.0

# Pollux and Sia: jobs of a minute or more and of less than 1,000 GPU-hours. The trace's clock
# counts from 2017-09-04 00:00; its first weeks hold hardly anything but survivors of the start of
# collection, so the dense part begins with 2017-09-25, day 21.
POLLUX_FILTERS = Filters(start_s=21 * DAY_S, min_duration_s=60.0, max_gpu_hours=1000.0)


def read_helios(
    path: str | Path,
    *,
    nodes: int | Mapping[str, int],
    filters: Filters = ALL,
    dropped: Dropped | None = None,
) -> Instance:
    """Read a log of SenseTime Helios, 2020, as rigid jobs of known size on nodes of 8 V100.

    Three formats are understood: HeliosData's own ``cluster_log.csv`` (``submit_time`` as date and
    time; the trace's clock starts at 2020-04-01 00:00), the public slice of two virtual clusters
    (header ``tenant``; microseconds from 2020-09-01 00:00), and the canonical schema
    (``submit_s``).

    The literature uses it as follows. Helios (QSSF) uses only GPU jobs (as here) submitted from
    2020-09-01 to 09-26, and each virtual cluster separately with its own nodes; preempted jobs lose
    7 s (1 GPU), 30 s (2-8) or 60 s (more). Sia uses jobs of Saturn of 60 s or more and less than
    1000 GPU-hours, in windows of 8 hours. Lucid uses all of September.

    Parameters
    ----------
    path
        File of the trace.
    nodes
        Number of nodes of one pool for all jobs, such as 133, or of each virtual cluster, as in
        vcvGl=20,vcvLy=2. In that case only jobs of these virtual clusters are read, each in its own
        partition.
    filters
        Filters that select which rows become jobs.
    dropped
        Counter that receives the number of rows left out, by reason.

    Raises
    ------
    InputError
        If a row cannot be a job, with the file and the row.
    """
    return _instance("helios", path, nodes, filters, dropped)


def read_philly(
    path: str | Path,
    *,
    nodes: int | Mapping[str, int],
    filters: Filters = POLLUX_FILTERS,
    dropped: Dropped | None = None,
) -> Instance:
    """Read Microsoft's Philly trace, 2017, as rigid jobs of known size on nodes of 8 GPUs.

    The schema is the canonical one. ``submit_s`` counts from 2017-09-04 00:00, and days 21 to 97
    are the dense part. The trace does not state the GPU model. P100 is an assumption that affects
    only the watts.

    The literature uses it as follows. Pollux and Sia use jobs from day 21 on of 60 s or more and
    less than 1000 GPU-hours, which is the default here, and 160 of those jobs from an 8-hour
    window. Helios (QSSF) uses October and November, each virtual cluster separately. Gavel uses
    single virtual clusters (ee9e8c, 6214e9, 103959) and run times of 1896 to 600000 s.

    Parameters
    ----------
    nodes
        Number of nodes of one pool for all jobs, such as 321, or of each virtual cluster, as in
        ee9e8c=60,6214e9=40. In that case only jobs of these virtual clusters are read, each in its
        own partition.
    path, filters, dropped
        As of `read_helios`, whose errors are those here.
    """
    return _instance("philly", path, nodes, filters, dropped)


def read_itp(
    path: str | Path,
    *,
    cluster: str,
    nodes: int = 16,
    filters: Filters = ALL,
    dropped: Dropped | None = None,
) -> Instance:
    """Read a cluster of Microsoft's ITP trace, 2021, as rigid jobs of known size.

    Two formats are understood: the canonical schema (``vc`` names the cluster), and the authors'
    annotated copy (``cluster``, ``submission_time``, ``num_gpu``, ``duration``, ``deadline``). The
    copy has no ids, so the line in the file becomes the id. Its deadlines are kept. The source
    holds only jobs of 600 s or more.

    In the literature, ElasticFlow uses the 195-job cut on 16 nodes of 8 A100, and each of cluster01
    to cluster10 separately on 4 to 16 nodes.

    Parameters
    ----------
    cluster
        Name of the cluster, such as 195job or cluster01.
    nodes
        Number of nodes with 8 A100 each, which the trace does not state.
    path, filters, dropped
        As of `read_helios`, whose errors are those here.
    """
    return _instance("itp", path, nodes, filters, dropped, cluster)


def _instance(
    trace: str,
    path: str | Path,
    nodes: int | Mapping[str, int],
    filters: Filters,
    dropped: Dropped | None,
    cluster: str | None = None,
) -> Instance:
    vcs: Iterable[str] | None = None if isinstance(nodes, int) else nodes
    frame = trace_rows(
        trace, path, filters=filters, vcs=vcs if cluster is None else (cluster,), dropped=dropped
    )
    name = trace if cluster is None else f"{trace}-{cluster}"
    return rigid_instance(frame, path=path, name=name, nodes=nodes, **PUBLISHED[trace]._asdict())


def trace_rows(
    trace: str,
    path: str | Path,
    *,
    filters: Filters = ALL,
    vcs: Iterable[str] | None = None,
    dropped: Dropped | None = None,
) -> pd.DataFrame:
    """Return the jobs of a published trace as canonical rows, in order of submission.

    See `ronda.instances.traces.table.clean_jobs` for the other arguments.
    """
    found, columns = read_cells(path), NAMED[trace]
    headers = {*found.columns}
    if trace == "helios" and "tenant" in headers and not {"submit_s", "vc"} & headers:
        columns = NAMED["helios-slice"]
    table = mapped_onto(found, str(path), columns)
    if table.raw.empty:
        raise InputError(str(path), "no rows", "at least one job")
    frame = canonical(table)
    for column, field in (("submit_s", "submit"), ("num_gpus", "gpus"), ("duration_s", "duration")):
        told = frame.assign(**{column: table.raw[table.columns.named[field]]})
        refuse(path, told, frame[column].isna().to_numpy(), column, "a finite number")
    if table.columns.id is None:
        frame["job_id"] = frame.row.astype(str)
    if "deadline" in table.told:
        late, told = ~(frame.due_s > frame.submit_s), frame.assign(due_s=table.told["deadline"])
        refuse(path, told, late.to_numpy(), "due_s", "a time after the submission", "deadline")
    return clean_jobs(path, frame, filters=filters, vcs=vcs, dropped=dropped)
