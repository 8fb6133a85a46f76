"""Rules for when jobs may start: jobs that must come first, job arrays, and nodes that leave."""

from collections.abc import Iterator, Sequence

from ronda.instances.job import Job
from ronda.instances.round import Round
from ronda.instances.rules.jobs import LAST_S, Places, at
from ronda.instances.rules.problem import Problem, one_of, show
from ronda.instances.site import Site


def start_problems(
    jobs: Sequence[Job], places: Places, site: Site, *, whole: bool
) -> Iterator[Problem]:
    """Yield the inconsistencies in when jobs may start.

    Jobs that others wait for, and job arrays, may be gone unless the jobs are the `whole` instance.
    """
    number = {job.id: k for k, job in enumerate(jobs)}
    for k, job in enumerate(jobs):
        for i, after in enumerate(job.after):
            place = at(places, k, f".after[{i}].job", job)
            if after.job == job.id:
                yield Problem(place, f"{show(job.id)}, the job itself", "another job")
            elif whole and after.job not in number:
                yield Problem(place, show(after.job), "the id of a job")
        if job.eligible_s is not None and not job.submit_s <= job.eligible_s <= LAST_S:
            expected = f"its submit_s, {job.submit_s:g}, to {LAST_S:g}"
            yield Problem(at(places, k, ".eligible_s", job), f"{job.eligible_s:g}", expected)
        if job.job_array is not None and job.job_array not in site.job_arrays:
            expected = f"one that site.job_arrays limits, {one_of(list(site.job_arrays))}"
            yield Problem(at(places, k, ".job_array", job), show(job.job_array), expected)
    used = {job.job_array for job in jobs}
    for name in site.job_arrays if whole else ():
        if name not in used:
            yield Problem(f"site.job_arrays[{show(name)}]", "no task", "the job_array of some job")
    if any(job.after for job in jobs):
        yield from _cycles(jobs, number, places)


def _cycles(jobs: Sequence[Job], number: dict[str, int], places: Places) -> Iterator[Problem]:
    """Report each cycle of jobs that wait for each other once."""
    settled: set[int] = set()
    for first in range(len(jobs)):
        path: dict[int, None] = {}  # the jobs from the first one to the present one
        left = [[first]]
        while left:
            if not left[-1]:
                left.pop()
                if path:
                    settled.add(path.popitem()[0])
                continue
            k = left[-1].pop()
            if k in path:
                around = [*path][[*path].index(k) :]
                names = " after ".join(show(jobs[i].id) for i in [*around, k][:8])
                if len(around) > 1:  # otherwise it waits for itself
                    place = at(places, k, ".after", jobs[k])
                    yield Problem(place, f"a cycle: {names}", "jobs that can come one by one")
            elif k not in settled:
                path[k] = None
                left.append([number[a.job] for a in jobs[k].after if a.job in number])


def leaving_problems(round: Round) -> Iterator[Problem]:
    """Yield the inconsistencies in the nodes that leave and come back."""
    nodes, gone = len(round.cluster.topology.node_gpus), dict[int, float]()
    for field, pairs in (("leaving", round.leaving), ("returning", round.returning)):
        seen = set[int]()
        for k, (node, _) in enumerate(pairs):
            if node >= nodes:
                yield Problem(f"{field}[{k}]", f"node {node}", f"a node, 0 to {nodes - 1}")
            if node in seen:
                yield Problem(f"{field}[{k}]", f"node {node} again", "each node once")
            seen.add(node)
    gone |= dict.fromkeys((node for node, _ in round.cluster.out), round.now_s)
    gone |= dict(round.leaving)
    for k, (node, at_s) in enumerate(round.returning):
        if node not in gone and node < nodes:
            found = f"node {node}, which is in service and stays"
            yield Problem(f"returning[{k}]", found, "a node that is out or leaves")
        elif at_s <= gone.get(node, -1.0):
            expected = f"a time after {gone[node]:g} s, when it leaves or now"
            yield Problem(f"returning[{k}]", f"{at_s:g} s", expected)
