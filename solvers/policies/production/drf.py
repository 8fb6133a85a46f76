"""Dominant resource fairness: the tenant with the least dominant share goes next."""

import math
from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from typing import ClassVar

from ronda.formulations.sleeping import rest
from ronda.instances.clock import Deadline, checkpoint
from ronda.instances.job import JobState
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.site import GPUS
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.policy import TimelyPolicy
from ronda.solvers.greedy.room import Room
from ronda.solvers.policies.production.floor import amounts, capacity


@dataclass(frozen=True)
class Drf(TimelyPolicy):
    """Start the first job of the tenant with the least dominant share, again and again.

    The rule is that of Ghodsi et al., *Dominant Resource Fairness* (NSDI 2011), for jobs that are
    never stopped. A tenant's dominant share is the largest share that it holds of any resource,
    divided by its weight (`Tenant.weight`). Resources are GPUs and what hosts have. A tenant's jobs
    start in order of submission.

    Parameters
    ----------
    by_type
        Whether each GPU type is a resource. Otherwise all GPUs are one.
    skip
        Whether a job without room is left out, and the decision goes on. Otherwise, as in the
        paper, the decision ends.
    """

    by_type: bool = False
    skip: bool = True

    name: ClassVar[str] = "drf"
    capabilities: ClassVar[Capability] = Capability.SLEEPS

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Start jobs by dominant shares."""
        room, totals, allocations = Room(round, round.running), capacity(round), dict(round.held)
        weights = {tenant.name: tenant.weight for tenant in round.site.tenants}
        unused = {GPUS} if self.by_type else {each.name for each in round.cluster.gpu_types}
        held = defaultdict[str, Counter[str]](Counter)

        def share(tenant: str) -> float:
            """Return a tenant's dominant share."""
            own, weight = held[tenant], weights.get(tenant, 1.0)
            shares = [own[of] / totals[of] for of in own.keys() - unused if totals.get(of)]
            most = max(shares, default=0.0)
            return most / weight if weight else math.inf

        for state in round.running:
            given = allocations[state.job.id]
            held[state.job.tenant or ""].update(amounts(round, state.job, given.option))
        queues = dict[str, deque[JobState]]()
        for state in round.waiting:
            queues.setdefault(state.job.tenant or "", deque()).append(state)
        while queues:
            checkpoint()
            tenant = min(queues, key=lambda each: (share(each), each))
            state = queues[tenant].popleft()
            started = room.fit(state)
            if started is not None:
                allocations[state.job.id] = started
                held[tenant].update(amounts(round, state.job, started.option))
            elif not self.skip:
                break
            if not queues[tenant]:
                del queues[tenant]
        return rest(round, Plan(policy=self.name, allocations=allocations), initial)
