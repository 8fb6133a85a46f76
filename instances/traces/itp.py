"""Microsoft ITP 2021, the ElasticFlow trace (Gu et al., ASPLOS 2023; MIT): ten clusters."""

from pathlib import Path

from ronda.instances.errors import InputError
from ronda.instances.instance import Instance
from ronda.instances.traces.columns import ALL, Dropped, Filters
from ronda.instances.traces.rigid import A100_NODE, rigid_instance
from ronda.instances.traces.table import read_jobs, refuse, to_number

CITATION = (
    "Gu, Zhao, Zhong, Xiong, Han, Cheng, Yang, Huang, Jin, Liu: ElasticFlow: An Elastic "
    "Serverless Training Platform for Distributed Deep Learning, ASPLOS 2023"
)
LICENCE = "MIT"

_ALIASES = {
    "submit_s": ("submit_s", "submission_time"),
    "num_gpus": ("num_gpus", "num_gpu"),
    "duration_s": ("duration_s", "duration"),
    "vc": ("vc", "cluster"),
    "deadline_s": ("deadline",),
}


def read_itp(
    path: str | Path,
    *,
    cluster: str,
    nodes: int = 16,
    filters: Filters = ALL,
    dropped: Dropped | None = None,
) -> Instance:
    """Read one cluster of the ITP trace as rigid jobs whose sizes are known (oracle).

    Two forms are understood: the canonical schema (``vc`` names the cluster), and the authors'
    annotated copy (``cluster``, ``submission_time``, ``num_gpu``, ``duration``, ``deadline``; no
    ids, so the line in the file becomes the id), whose deadlines are kept. The trace does not tell
    the number of nodes. The instance is called ``itp-`` and the cluster.

    How the literature uses it. ElasticFlow: the 195-job cut (``cluster="195job"``) on 128 A100
    (``nodes=16``), and each of ``cluster01`` to ``cluster10`` for itself on 32 to 128 GPUs
    (``nodes=4``, 8 or 16). The source holds jobs of 600 s and more only.

    `dropped` gets how many rows are left out, by reason.

    Raises
    ------
    InputError
        Naming file and row, for anything that cannot be a job.
    """
    frame = read_jobs(path, _ALIASES, ("job_id", "deadline_s"))
    headers = frame.attrs["headers"]
    if "job_id" not in headers:
        frame["job_id"] = frame.row.astype(str)
    if "vc" not in headers:
        found = ", ".join(headers.values())
        raise InputError(f"{path}, header", found, "a column 'vc' or 'cluster'")
    if "deadline_s" in headers:  # from submission on, as the clock is yet to be set
        submit_s = to_number(path, frame, "submit_s")
        frame["due_in_s"] = to_number(path, frame, "deadline_s") - submit_s
        late = (frame.due_in_s <= 0).to_numpy()
        refuse(path, frame, late, "deadline_s", "a time after the submission", "deadline")
    return rigid_instance(
        frame,
        path=path,
        filters=filters,
        vcs=(cluster,),
        name=f"itp-{cluster}",
        machine=A100_NODE,
        nodes=nodes,
        dropped=dropped,
        source="Microsoft ITP 2021, github.com/microsoft/elasticflow-traces",
        licence=LICENCE,
        citation=CITATION,
    )
