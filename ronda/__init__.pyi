from .bench.suites.compared import compare
from .formulations.clock import Deadline
from .formulations.options.own import Limit, Term
from .formulations.options.table import OptionTable
from .instances.check.answer import check
from .instances.cluster import Cluster, GpuType, NodeGroup, uniform_cluster
from .instances.errors import InputError
from .instances.files.catalogue import load
from .instances.files.json import read, write
from .instances.instance import Instance
from .instances.job import Costs, Job, JobState
from .instances.outcome.metrics import summarise
from .instances.plan import Plan, PlanMemory
from .instances.profile import Profile
from .instances.round import Round
from .instances.schedule import Schedule
from .solvers.alternatives import alternatives
from .solvers.consolidate import consolidate
from .solvers.contract import Policy
from .solvers.embedding.changes import Changes, Place
from .solvers.embedding.decided import DecisionRecord
from .solvers.embedding.embedded import Embedded
from .solvers.embedding.rates import rates_from
from .solvers.embedding.records import StepTime
from .solvers.embedding.refusals import Refusal
from .solvers.embedding.round import make_round
from .solvers.embedding.unmeasured import unmeasured_profile
from .solvers.horizon.driver import run
from .solvers.isolated import Isolated
from .solvers.registry import policy
from .solvers.ruled import broken_rules, option_table
from .solvers.solve import solve
from .solvers.warm_up import warm_up
from .solvers.whatif.answer import whatif

__version__: str
__all__ = [
    "Changes",
    "Cluster",
    "Costs",
    "Deadline",
    "DecisionRecord",
    "Embedded",
    "GpuType",
    "InputError",
    "Instance",
    "Isolated",
    "Job",
    "JobState",
    "Limit",
    "NodeGroup",
    "OptionTable",
    "Place",
    "Plan",
    "PlanMemory",
    "Policy",
    "Profile",
    "Refusal",
    "Round",
    "Schedule",
    "StepTime",
    "Term",
    "alternatives",
    "broken_rules",
    "check",
    "compare",
    "consolidate",
    "load",
    "make_round",
    "option_table",
    "policy",
    "rates_from",
    "read",
    "run",
    "solve",
    "summarise",
    "uniform_cluster",
    "unmeasured_profile",
    "warm_up",
    "whatif",
    "write",
]
