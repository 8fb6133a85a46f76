"""Rules for priority classes, and for the jobs that name them."""

from collections import Counter
from collections.abc import Iterator, Sequence

from ronda.instances.job import Job
from ronda.instances.rules.jobs import Places, at
from ronda.instances.rules.problem import Problem, one_of, show
from ronda.instances.site import Site

MOST_STRICT = 3
"""The most ranks of strict classes; each takes a solution of its own in every round."""


def class_problems(site: Site) -> Iterator[Problem]:
    """Yield the classes that are named twice, and strict ranks beyond the most."""
    times = Counter(c.name for c in site.classes)
    for k, c in enumerate(site.classes):
        if times.pop(c.name, 1) > 1:
            yield Problem(f"site.classes[{k}].name", f"{show(c.name)} more than once", "each once")
    ranks = sorted({c.rank for c in site.classes if c.strict})
    if len(ranks) > MOST_STRICT:
        found = f"strict classes of {len(ranks)} ranks ({', '.join(map(str, ranks))})"
        yield Problem("site.classes", found, f"at most {MOST_STRICT} ranks")


def priority_problems(jobs: Sequence[Job], places: Places, site: Site) -> Iterator[Problem]:
    """Yield the jobs whose priority class does not exist."""
    known = {c.name for c in site.classes}
    for k, job in enumerate(jobs):
        if job.priority is not None and job.priority not in known:
            place = at(places, k, ".priority", job)
            yield Problem(place, show(job.priority), one_of(known, job.priority))
