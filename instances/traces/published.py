"""Published traces of rigid jobs: Helios, Philly and ITP, as the literature uses them.

Their columns stand in `ronda.instances.traces.columns.NAMED`. A trace with a row that cannot be a
job is refused, whatever the filters: a file with a broken row is broken.
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
    """A trace's nodes, and where it is from."""

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
    """Read a log of SenseTime Helios, 2020: rigid jobs on nodes of 8 V100, their sizes known.

    Three forms are understood: HeliosData's own ``cluster_log.csv`` (``submit_time`` as date and
    time; the trace's clock counts from 2020-04-01 00:00), the public slice of two virtual clusters
    (header ``tenant``; microseconds from 2020-09-01 00:00), and the canonical schema
    (``submit_s``).

    How the literature uses it. Helios (QSSF): GPU jobs only (here always), submitted 2020-09-01 to
    09-26, each virtual cluster for itself with its nodes; preempted jobs lose 7 s (1 GPU), 30 s
    (2-8) or 60 s (more). Sia: Saturn, 60 s or more, less than 1000 GPU-hours, windows of 8 hours.
    Lucid: all of September.

    Parameters
    ----------
    path
        The trace.
    nodes
        Of one pool for all jobs, as in 133; or by virtual cluster, as in vcvGl=20,vcvLy=2: then
        only their jobs are read, each in a partition of its own.
    filters
        Which rows become jobs.
    dropped
        Gets how many rows are left out, by reason.

    Raises
    ------
    InputError
        Naming file and row, for anything that cannot be a job.
    """
    return _instance("helios", path, nodes, filters, dropped)


def read_philly(
    path: str | Path,
    *,
    nodes: int | Mapping[str, int],
    filters: Filters = POLLUX_FILTERS,
    dropped: Dropped | None = None,
) -> Instance:
    """Read Microsoft's Philly trace, 2017: rigid jobs on nodes of 8 GPUs, their sizes known.

    The schema is the canonical one; ``submit_s`` counts from 2017-09-04 00:00, and days 21 to 97
    are the dense part. The trace does not tell the GPU model: P100 are an assumption that sets
    nothing but watts.

    How the literature uses it. Pollux and Sia: from day 21 on, 60 s or more, less than 1000
    GPU-hours, as here without filters, then 160 jobs out of an 8-hour window. Helios (QSSF):
    October and November, each virtual cluster for itself. Gavel: single virtual clusters (ee9e8c,
    6214e9, 103959) and run times of 1896 to 600000 s.

    Parameters
    ----------
    nodes
        Of one pool for all jobs, as in 321; or by virtual cluster, as in ee9e8c=60,6214e9=40: then
        only their jobs are read, each in a partition of its own.
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
    """Read a cluster of Microsoft's ITP trace, 2021: rigid jobs whose sizes are known.

    Two forms are understood: the canonical schema (``vc`` names the cluster), and the authors'
    annotated copy (``cluster``, ``submission_time``, ``num_gpu``, ``duration``, ``deadline``; no
    ids, so the line in the file becomes the id), whose deadlines are kept. The source holds jobs
    of 600 s and more only.

    How the literature uses it. ElasticFlow: the 195-job cut on 16 nodes of 8 A100, and each of
    cluster01 to cluster10 for itself on 4 to 16.

    Parameters
    ----------
    cluster
        Which one, as in 195job or cluster01.
    nodes
        Of 8 A100; the trace does not tell their number.
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
    """Return the jobs of a published trace as canonical rows in order of submission.

    The rest is as in `ronda.instances.traces.table.clean_jobs`.
    """
    found, columns = read_cells(path), NAMED[trace]
    headers = {*found.frame.columns}
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
