"""What nodes draw with and without jobs, and what is left for more.

Here stand the power of hosts and idle GPUs, of waking, and of racks. What a job draws is in
`ronda.formulations.models.power`; which idle nodes sleep, in `ronda.formulations.sleeping`.
"""

from ronda.formulations.watts.nodes import (
    NodeClass,
    RackCap,
    awake_for,
    by_pool,
    least_node_w,
    may_sleep,
    node_classes,
    node_w,
    rack_caps,
)
from ronda.formulations.watts.racks import RackPower, capped

__all__ = [
    "NodeClass",
    "RackCap",
    "RackPower",
    "awake_for",
    "by_pool",
    "capped",
    "least_node_w",
    "may_sleep",
    "node_classes",
    "node_w",
    "rack_caps",
]
