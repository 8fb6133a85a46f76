"""Microsoft Philly (Jeon et al., USENIX ATC 2019; CC-BY-4.0): jobs of 2017."""

from collections.abc import Mapping
from pathlib import Path

from ronda.instances.instance import Instance
from ronda.instances.traces.columns import Dropped, Filters
from ronda.instances.traces.rigid import P100_NODE, rigid_instance
from ronda.instances.traces.table import read_jobs

CITATION = (
    "Jeon, Venkataraman, Phanishayee, Qian, Xiao, Yang: Analysis of Large-Scale Multi-Tenant GPU "
    "Clusters for DNN Training Workloads, USENIX ATC 2019"
)
LICENCE = "CC-BY-4.0"
SOURCE = "Microsoft Philly, github.com/msr-fiddle/philly-traces, as listed by petuum/adaptdl"
DAY_S = 86_400.0

# Pollux and Sia: jobs of a minute or more and of less than 1,000 GPU-hours. The trace's clock
# counts from 2017-09-04 00:00; its first weeks hold hardly anything but survivors of the start of
# collection, so the dense part begins with 2017-09-25, day 21.
POLLUX_FILTERS = Filters(start_s=21 * DAY_S, min_duration_s=60.0, max_gpu_hours=1000.0)


def read_philly(
    path: str | Path,
    *,
    nodes: int | Mapping[str, int],
    filters: Filters = POLLUX_FILTERS,
    dropped: Dropped | None = None,
) -> Instance:
    """Read Philly's jobs (canonical schema) as rigid jobs whose sizes are known (oracle).

    ``submit_s`` counts from 2017-09-04 00:00. With `nodes` by virtual cluster only their jobs are
    read, and each becomes a partition; a number is one pool of nodes for all jobs. The trace does
    not tell the GPU model: 8 P100 a node are an assumption that sets nothing but watts.

    How the literature uses it. Pollux and Sia: `POLLUX_FILTERS`, then 160 jobs out of an 8-hour
    window. Helios (QSSF): 2017-10-01 to 11-30 (``start_s=27 * DAY_S``, ``end_s=88 * DAY_S``),
    each virtual cluster for itself. Gavel: single virtual clusters
    (``ee9e8c``, ``6214e9``, ``103959``) and ``min_duration_s=1896, max_duration_s=600_000``.
    Use days 21 to 97 (2017-09-25 to 12-10); before and after, the trace is thin.

    `dropped` gets how many rows are left out, by reason.

    Raises
    ------
    InputError
        Naming file and row, for anything that cannot be a job.
    """
    return rigid_instance(
        read_jobs(path),
        path=path,
        filters=filters,
        name="philly",
        machine=P100_NODE,
        nodes=nodes,
        dropped=dropped,
        source=SOURCE,
        licence=LICENCE,
        citation=CITATION,
    )
