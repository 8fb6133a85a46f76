"""Refusals of priority classes, in words."""

from msgspec.structs import replace

from ronda.instances.rules.validate import problems
from ronda.instances.site import PriorityClass, Site
from site_cases import rigid, round_of
from small import make_instance


def of(*names, strict=False):
    """Return a site with classes of falling ranks."""
    classes = (PriorityClass(name=n, rank=-k, strict=strict) for k, n in enumerate(names))
    return Site(classes=tuple(classes))


def test_a_class_is_named_once():
    """The first of two is named."""
    found = problems(round_of(rigid("a", 1), site=of("x", "y", "x")))
    assert found == ['site.classes[0].name: found "x" more than once, expected each once']


def test_at_most_three_ranks_are_strict():
    """Classes of one rank share it; others are not counted."""
    three = of("a", "b", "c", strict=True)
    shared = replace(three.classes[0], name="d")
    assert problems(round_of(site=replace(three, classes=(*three.classes, shared)))) == []
    (found,) = problems(round_of(site=of("a", "b", "c", "d", strict=True)))
    words = "found strict classes of 4 ranks (-3, -2, -1, 0), expected at most 3 ranks"
    assert found == f"site.classes: {words}"
    assert problems(round_of(site=of("a", "b", "c", "d"))) == []


def test_the_class_of_a_job_exists():
    """In rounds and instances, with the nearest name."""
    made = round_of(rigid("a", 1, priority="prood"), site=of("prod", "batch"))
    (found,) = problems(made)
    assert found == (
        'waiting[0].job.priority (id "a"): found "prood", '
        'expected one of "batch", "prod" (did you mean "prod"?)'
    )
    instance = make_instance([("a", 0.0, 1, 10.0)])
    jobs = tuple(replace(job, priority="x") for job in instance.jobs)
    (found,) = problems(replace(instance, jobs=jobs))
    assert found.place == 'jobs[0].priority (id "a")'
    assert found.expected == "none (there are no such entries)"
