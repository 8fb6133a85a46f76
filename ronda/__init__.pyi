from .bench.suites.compared import compare
from .formulations.options.stated_rows import Limit, Term
from .formulations.options.table import OptionTable
from .horizon.driver import run
from .horizon.isolated import Isolated
from .horizon.solve import solve
from .horizon.warm_up import warm_up
from .hosts.embedding.changes import Changes, DecisionRecord, Place
from .hosts.embedding.embedded import Embedded
from .hosts.embedding.rates import rates_from
from .hosts.embedding.reader import Refusal
from .hosts.embedding.records import StepTime
from .hosts.embedding.round import make_round
from .hosts.embedding.unmeasured import unmeasured_profile
from .instances.check.checker import check
from .instances.clock import Deadline
from .instances.cluster import Cluster, GpuType, NodeGroup, uniform_cluster
from .instances.errors import InputError
from .instances.files.json import read, write
from .instances.files.packaged import load
from .instances.instance import Instance
from .instances.job import Costs, Job, JobState
from .instances.outcome.metrics import summarise
from .instances.plan import Plan, PlanMemory
from .instances.profile import Profile
from .instances.round import Round
from .instances.schedule import Schedule
from .instances.tasks.arrays import TaskPlan, TaskRound
from .instances.tasks.check import check_tasks
from .instances.tasks.files import read_task_plan, read_tasks, write_task_plan, write_tasks
from .questions.alternatives import alternatives
from .questions.certificates.certify import certificate
from .questions.consolidate.answer import consolidate
from .questions.curtail.answer import curtail
from .questions.whatif.answer import whatif
from .solvers.applied_rules import broken_rules, option_table
from .solvers.contract import Policy
from .solvers.patterns.answer import solve_tasks
from .solvers.registry import policy

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
    "TaskPlan",
    "TaskRound",
    "Term",
    "alternatives",
    "broken_rules",
    "certificate",
    "check",
    "check_tasks",
    "compare",
    "consolidate",
    "curtail",
    "load",
    "make_round",
    "option_table",
    "policy",
    "rates_from",
    "read",
    "read_task_plan",
    "read_tasks",
    "run",
    "solve",
    "solve_tasks",
    "summarise",
    "uniform_cluster",
    "unmeasured_profile",
    "warm_up",
    "whatif",
    "write",
    "write_task_plan",
    "write_tasks",
]
