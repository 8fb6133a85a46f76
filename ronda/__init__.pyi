from .formulations.clock import Deadline
from .instances.check.answer import check
from .instances.cluster import Cluster, GpuType, NodeGroup
from .instances.files.catalogue import load
from .instances.files.json import read, write
from .instances.instance import Instance
from .instances.job import Job, JobState
from .instances.metrics import summarise
from .instances.plan import Plan
from .instances.profile import Profile
from .instances.round import Round
from .instances.schedule import Schedule
from .solvers.contract import Policy
from .solvers.horizon.driver import run
from .solvers.registry import policy
from .solvers.solve import solve

__version__: str
__all__ = [
    "Cluster",
    "Deadline",
    "GpuType",
    "Instance",
    "Job",
    "JobState",
    "NodeGroup",
    "Plan",
    "Policy",
    "Profile",
    "Round",
    "Schedule",
    "check",
    "load",
    "policy",
    "read",
    "run",
    "solve",
    "summarise",
    "write",
]
