"""Arrays as single jobs, for policies that do not choose which jobs share GPUs.

Such a policy sees an array as one job. The array holds one GPU and draws the power of that GPU
until its last member ends. It is kept, stopped, moved or set to another clock as a whole. It may
not be stopped if one of its members may not. No other job joins it.
"""

from collections.abc import Callable

from msgspec.structs import replace

from ronda.formulations.options.application import application_of
from ronda.instances.job import Allocation, Estimate, JobState, Option
from ronda.instances.models.sharing import any_array, may_stop, member, together
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability

Members = tuple[JobState, ...]


def seen_by(capabilities: Capability, round: Round) -> "AsOne":
    """Return a round as a policy sees it: unchanged if the policy decides which jobs share GPUs."""
    if Capability.ARRAYS in capabilities:
        return AsOne(round, lambda members: False)
    return AsOne(round)


class AsOne:
    """A round in which the member that is expected to end last stands for its array.

    Parameters
    ----------
    joins
        Function that returns whether an array with the given members becomes one job. None: every
        array does.

    Attributes
    ----------
    round
        The round that the policy sees.
    names
        The names of the arrays that became jobs.
    """

    def __init__(self, round: Round, joins: Callable[[Members], bool] | None = None) -> None:
        self.names = set[str]()
        self._members: dict[str, Members] = {}  # keyed by the job that stands for their array
        shown: dict[str, JobState | None] = {}
        for members in together(round.running) if any_array(round.running) else ():
            held = members[0].allocation
            if held is None or held.array is None:
                continue
            if joins is None or joins(members):
                self.names.add(held.array)
                one = _one(round, members)
                self._members[one.job.id] = members
                shown |= dict.fromkeys(state.job.id for state in members)
                shown[members[0].job.id] = one
        self.round = round
        if shown:
            running = (shown.get(state.job.id, state) for state in round.running)
            self.round = replace(round, running=tuple(s for s in running if s is not None))
        self._held = self.round.held if shown else {}

    def stands_for(self, job_id: str) -> str:
        """Return the job that stands for the array of a job, or that job itself."""
        for one, members in self._members.items():
            if any(state.job.id == job_id for state in members):
                return one
        return job_id

    def shown(self, plan: Plan) -> Plan:
        """Translate a plan for the original round into one for the round that the policy sees."""
        if not self._members:
            return plan
        hidden = {state.job.id for members in self._members.values() for state in members}
        found = {i: a for i, a in plan.allocations.items() if i not in hidden}
        for job_id, members in self._members.items():
            given = plan.allocations.get(job_id)
            (held,) = (s.allocation for s in members if s.job.id == job_id)
            if given is None or held is None or given.array != held.array:
                continue
            found[job_id] = self._held[job_id]
            if not held.goes_on(given):
                option = _alone(self.round, members[0], given.option)
                found[job_id] = Allocation(option=option, placement=given.placement)
        return replace(plan, allocations=found)

    def told(self, plan: Plan) -> Plan:
        """Translate a plan for the round that the policy sees into one for the original round."""
        if not self._members:
            return plan
        found: dict[str, Allocation] = {}
        for job_id, given in plan.allocations.items():
            if job_id in self._members:
                found |= {s.job.id: self._of(s, job_id, given) for s in self._members[job_id]}
            else:
                found[job_id] = given
        return replace(plan, allocations=found)

    def _of(self, state: JobState, job_id: str, given: Allocation) -> Allocation:
        """Return a member's allocation if the job that stands for its array has the given one."""
        one, held = self._held[job_id], state.allocation
        assert held is not None
        if one.goes_on(given):
            return held
        option = held.option
        if not one.option.same_way(given.option):
            option = _in_array(self.round, state, given.option)
        return replace(held, option=option, placement=given.placement)


def _one(round: Round, members: Members) -> JobState:
    """Return an array as one job, which holds its GPU until its last member ends.

    Its work is scaled to the rate that the last member would have alone. Its size is known if the
    sizes of all members are.
    """
    lasts_s = [_lasts_s(round, state) for state in members]
    last = members[lasts_s.index(max(lasts_s))]
    held, estimate = last.allocation, last.job.estimate
    assert held is not None
    option = _alone(round, last, held.option)
    more = option.rate / held.option.rate
    jobs = [state.job for state in members]
    if estimate is not None:
        estimate = Estimate(
            work=more * estimate.work,
            sd=more * estimate.sd,
            quantiles=tuple(more * work for work in estimate.quantiles),
        )
    due = [job.deadline_s for job in jobs if job.deadline_s is not None]
    job = replace(
        last.job,
        submit_s=min(job.submit_s for job in jobs),
        gpus=1,
        min_gpus=None,
        max_gpus=None,
        batch=option.batch,
        gpu_types=(round.cluster.topology.pools[option.pool].gpu_type.name,),
        preemptible=may_stop(members),
        weight=sum(job.weight for job in jobs),
        deadline_s=min(due, default=None),
        sweep=last.job.sweep if len({job.sweep for job in jobs}) == 1 else None,
        estimate=estimate if all(job.estimate is not None for job in jobs) else None,
        costs=max(
            (job.costs or round.costs for job in jobs),
            key=lambda costs: costs.pause(1, running=True),
        ),
        fusible=None,
    )
    return replace(
        last,
        job=job,
        since_s=max(round.now_s, *(state.since_s for state in members)),
        done=more * last.done_at(round.now_s),
        gpu_s=sum(state.gpu_s for state in members),
        restarts=max(state.restarts for state in members),
        allocation=replace(held, option=option, array=None),
        noise=None,
    )


def _lasts_s(round: Round, state: JobState) -> float:
    """Return the seconds of progress that a member has left in its array, or 0 if unknown."""
    work, held = state.remaining_at(round.now_s), state.allocation
    return 0.0 if work is None or held is None else work / held.option.rate


def _alone(round: Round, state: JobState, option: Option) -> Option:
    """Return the option of a member as if it had the GPU to itself and drew all of its power."""
    of = application_of(round, state, option.pool)
    assert of is not None, "the profile of a job that runs knows its GPU"
    alone = of.option(1, option.batch, None, clock=option.clock)
    assert alone is not None
    power_w = option.power_w * option.width
    return replace(alone, power_w=power_w, teardown_s=option.teardown_s)


def _in_array(round: Round, state: JobState, alone: Option) -> Option:
    """Return the option of a member whose array gets the option `alone` as a single job."""
    of, held = application_of(round, state, alone.pool), state.allocation
    assert of is not None
    assert held is not None
    own = of.option(1, alone.batch, state.noise, clock=alone.clock)
    assert own is not None
    name, (mode, width) = of.shape.pool.gpu_type.name, (held.option.mode, held.option.width)
    option = member(own, of.profile, name, mode, width)
    return replace(option, teardown_s=alone.teardown_s)
