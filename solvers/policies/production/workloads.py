"""The jobs of tenants' queues, with what they use of the tenants' quotas."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ronda.instances.clock import checkpoint
from ronda.instances.job import JobState, Option
from ronda.instances.round import Round
from ronda.instances.site import Quota, Tenant
from ronda.solvers.policies.production.floor import Floor, amounts, capacity
from ronda.solvers.policies.production.quota_tree import Amounts, Branch, branches


@dataclass(eq=False)
class Workload:
    """A job in the queue of its tenant.

    Attributes
    ----------
    option, use
        The option that it is admitted with, and what it holds; None and nothing while it waits.
    since_s
        Time of its admission.
    """

    state: JobState
    leaf: Branch
    rank: int
    option: Option | None = None
    use: Amounts = field(default_factory=dict)
    since_s: float = 0.0

    @property
    def id(self) -> str:
        """The job's id."""
        return self.state.job.id

    @property
    def order(self) -> tuple[float, float, str]:
        """The order of its queue: priority, submission, id."""
        return -self.rank, self.state.job.submit_s, self.id


class Books(Floor):
    """The jobs of a round by tenant, while a rule admits and evicts them.

    Attributes
    ----------
    admitted
        The admitted jobs, by id.
    began
        The jobs that the decision admits.
    """

    def __init__(self, round: Round) -> None:
        super().__init__(round)
        self.tree = branches(round.site.tenants, [each.name for each in round.cluster.gpu_types])
        self.admitted: dict[str, Workload] = {}
        self.began = set[str]()
        for state, given in self.runs.values():
            self.admit(self.work(state), given.option, state.held_s)

    def work(self, state: JobState) -> Workload:
        """Return a job in the queue of its tenant, or of its partition if it has no tenant."""
        name = state.job.tenant or f"/{state.job.partition}"
        if name not in self.tree:
            all_of_it = capacity(self.round, state.job.partition)
            quotas = tuple(Quota(of=of, guaranteed=most) for of, most in all_of_it.items())
            self.tree |= branches([Tenant(name=name, quotas=quotas)], ())
        return Workload(state, self.tree[name], self.rank(state))

    def need(self, work: Workload, option: Option) -> Amounts:
        """Return what a job would hold with an option."""
        return amounts(self.round, work.state.job, option)

    def admit(self, work: Workload, option: Option, since_s: float) -> None:
        """Count a job with an option."""
        work.option, work.since_s, work.use = option, since_s, self.need(work, option)
        work.leaf.add(work.use)
        self.admitted[work.id] = work

    def evict(self, victims: Sequence[Workload]) -> None:
        """Stop jobs, and count them no more."""
        self.stop(work.state for work in victims)
        for work in victims:
            work.leaf.remove(work.use)
            del self.admitted[work.id]

    def has_room(self, work: Workload, option: Option, victims: Sequence[Workload]) -> bool:
        """Return whether there are nodes for a job if others stopped."""
        return self.way(work.state, option, [each.state for each in victims]) is not None

    def stoppable(self) -> list[Workload]:
        """Return the jobs that may be evicted: none that this decision admits."""
        return [
            work
            for job, work in self.admitted.items()
            if job not in self.began
            and (work.state.allocation is None or self.may_stop(work.state))
        ]

    def resume(self) -> None:
        """Let evicted jobs go on whose quota and GPUs nobody has taken."""
        for state in self.stopped():
            work, option = self.work(state), self.round.held[state.job.id].option
            known = work.id in self.admitted
            fits = known or work.leaf.fits(self.need(work, option))
            if fits and self.go_on(state) and not known:
                self.admit(work, option, state.held_s)


def fewest(order: Iterable[Workload], fits: Callable[[Sequence[Workload]], bool]) -> list[Workload]:
    """Return the victims of an order that must go; nobody if the head does not fit even so.

    Jobs go one by one until the head fits. Then, the latest first, all but the last come back
    whose return leaves it room. Trees are unchanged afterwards.
    """
    victims, enough = list[Workload](), False
    for each in order:
        checkpoint()
        each.leaf.remove(each.use)
        victims.append(each)
        if enough := fits(victims):
            break
    for each in reversed(victims[:-1] if enough else []):
        each.leaf.add(each.use)
        rest = [one for one in victims if one is not each]
        if fits(rest):
            victims = rest
        else:
            each.leaf.remove(each.use)
    for each in victims:
        each.leaf.add(each.use)
    return victims if enough else []
