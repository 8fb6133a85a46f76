"""A plan carried out, as a run carries it out: who holds what from now on, and progresses when."""

from collections.abc import Mapping

from msgspec.structs import replace

from ronda.horizon.journal import change_of
from ronda.hosts.embedding.live import Tracked, begun, stopped
from ronda.hosts.embedding.records import Settings, State
from ronda.instances.job import Allocation, Costs
from ronda.instances.models.sharing import ready_together
from ronda.instances.plan import Plan


def carried_out(
    state: State, settings: Settings, held: Mapping[str, Allocation], plan: Plan
) -> State:
    """Return the state once a plan is carried out."""
    now_s, jobs, wake_s = state.now_s, dict(state.jobs), settings.cluster.topology.wake_s
    change = change_of(held, plan, state.asleep)
    ready = {n: state.ready_s[n] for n in state.waking if n not in change.asleep}
    for node in {*state.asleep} - {*change.asleep}:
        ready[node] = now_s + float(wake_s[node])
    for job in change.stopped:
        jobs[job] = stopped(jobs[job], now_s)
    begin = dict[str, Allocation]()
    for job, given in plan.allocations.items():
        of, before = jobs[job], held.get(job)
        if job not in change.held:  # goes on: only what is expected of it may have changed
            jobs[job] = replace(of, state=replace(of.state, allocation=given))
        elif before is not None and before.narrows_to(given):
            narrow = of.state.narrowed(given, now_s, of.state.done_at(now_s))
            jobs[job] = begun(of, narrow)
        else:
            begin[job] = given
    pause_s = {i: _pause_s(jobs[i], a, settings.costs, now_s) for i, a in begin.items()}
    awake_s = {i: max(ready.get(n, now_s) for n, _ in a.placement) for i, a in begin.items()}
    together_s = ready_together(begin, {i: awake_s[i] + pause_s[i] for i in begin})
    for job, given in begin.items():
        then_s = awake_s[job], together_s.get(given.array, 0.0)
        of = stopped(jobs[job], now_s)
        jobs[job] = begun(of, of.state.holding(given, now_s, pause_s[job], *then_s))
    for job, of in jobs.items():
        if of.leaves is not None:
            jobs[job] = replace(of, leaves=None)
    return replace(state, jobs=jobs, plan=plan, asleep=change.asleep, ready_s=ready)


def _pause_s(of: Tracked, given: Allocation, usual: Costs, now_s: float) -> float:
    """Return the pause of a job that begins; one that leaves what it runs on changes it."""
    state, costs = of.state, of.state.job.costs or usual
    if of.leaves is not None and of.leaves.goes_on(given):
        return state.owed_at(now_s)
    running = state.allocation is not None or of.leaves is not None
    pause_s = costs.pause(given.option.gpus, started=state.started, running=running)
    return pause_s + state.owed_at(now_s)
