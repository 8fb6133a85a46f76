"""One partition of a round by itself."""

import numpy as np
from msgspec.structs import replace

from ronda.instances.job import Allocation, JobState
from ronda.instances.round import Round


def alone(round: Round, partition: str) -> Round:
    """Return the round of one partition's jobs and nodes."""
    cluster, topology = round.cluster, round.cluster.topology
    own = replace(
        cluster,
        node_groups=tuple(g for g in cluster.node_groups if g.partition == partition),
        partitions=tuple(p for p in cluster.partitions if p.name == partition),
    )
    kept = [p.partition == partition for p in topology.pools]
    node = np.cumsum(np.array(kept)[topology.node_pool]) - 1
    pool = np.cumsum(kept) - 1

    def there(held: Allocation) -> Allocation:
        return replace(
            held,
            option=replace(held.option, pool=int(pool[held.option.pool])),
            placement=tuple((int(node[n]), gpus) for n, gpus in held.placement),
        )

    def mine(states: tuple[JobState, ...]) -> tuple[JobState, ...]:
        own = (state for state in states if state.job.partition == partition)
        return tuple(replace(s, allocation=s.allocation and there(s.allocation)) for s in own)

    return replace(round, cluster=own, waiting=mine(round.waiting), running=mine(round.running))
