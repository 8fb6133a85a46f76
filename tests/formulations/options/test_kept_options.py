"""Options that are kept from round to round: which, why not, and that they are the same as new."""

import msgspec
import numpy as np
import pytest

from ronda.formulations.options.kept_options import in_words, kept_options
from ronda.formulations.options.table import build, option
from ronda.instances import generate
from ronda.instances.job import Allocation
from ronda.instances.profile import NoiseScale

COLUMNS = ("start", "pool", "gpus", "span", "clock", "batch", "width", "rate", "power_w", "current")


@pytest.fixture
def round_():
    """A round of twelve jobs, none of them running, with a cluster of its own."""
    made = generate.round(12, None, "balanced", 0)
    waiting = tuple(msgspec.structs.replace(s, allocation=None) for s in made.jobs)
    return msgspec.structs.replace(made, running=(), waiting=waiting)


def changed(round, j, **fields):
    """Return the round with one job state changed; a job that runs stays in its place."""
    states = list(round.waiting)
    states[j] = msgspec.structs.replace(states[j], **fields)
    return msgspec.structs.replace(round, waiting=tuple(states))


def cold(round):
    """Return the table of a process that has nothing to remember."""
    own = msgspec.structs.replace(round.cluster)
    return build(msgspec.structs.replace(round, cluster=own))


def same(table, other):
    """Assert that two tables have the same rows, to the last bit."""
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(table, name), getattr(other, name))


def test_nothing_changed_nothing_built(round_):
    """Later, with all else equal, all rows are kept."""
    assert build(round_).changes == {"new": 12}
    later = msgspec.structs.replace(round_, now_s=round_.now_s + 60.0)
    table = build(later)
    assert table.changes == {"reused": 12}
    same(table, cold(later))


def test_only_what_changed_is_built(round_):
    """A job starts, another has its noise measured, a third leaves and a fourth is new."""
    first = build(round_)
    held = Allocation(option=option(first, 0), placement=((0, int(first.gpus[0])),))
    later = changed(round_, 0, allocation=held)
    later = changed(later, 1, noise=NoiseScale(batches=(1.0,), scale=(123.0,)))
    states = later.waiting
    new = msgspec.structs.replace(
        states[3], job=msgspec.structs.replace(states[3].job, id="another")
    )
    later = msgspec.structs.replace(later, waiting=(*states[:2], *states[3:], new))
    table = build(later)
    assert table.changes == {
        "reused": 9,
        "allocation changed": 1,
        "noise measured anew": 1,
        "new": 1,
    }
    same(table, cold(later))
    assert in_words(table.changes) == (
        "options of 9 jobs kept, of 3 built (1 allocation changed, 1 new, 1 noise measured anew)"
    )


def test_what_a_job_may_choose_from_outlives_its_allocation(round_):
    """Of jobs that start, move and stop only the current row is looked for anew."""
    first = build(round_)
    kept = kept_options(round_.cluster, elastic=True, prune=True)
    key = round_.waiting[0].job.id
    offers, before = kept.jobs[key].offers, round_
    for held in (
        Allocation(option=option(first, 1), placement=((0, int(first.gpus[1])),)),
        Allocation(option=option(first, 0), placement=((1, int(first.gpus[0])),)),
        None,
    ):
        before = changed(before, 0, allocation=held)
        table = build(before)
        assert table.changes == {"reused": 11, "allocation changed": 1}
        assert kept.jobs[key].offers is offers
        assert table.current.sum() == (held is not None)
        same(table, cold(before))


def test_a_job_that_must_run_on_may_choose_no_more(round_):
    """It loses its other rows when it starts."""
    fixed = msgspec.structs.replace(round_.waiting[0].job, preemptible=False)
    waits = changed(round_, 0, job=fixed)
    first = build(waits)
    assert first.start[1] > 1
    held = Allocation(option=option(first, 0), placement=((0, int(first.gpus[0])),))
    runs = changed(waits, 0, allocation=held)
    table = build(runs)
    assert (table.start[1], table.must_run[0], table.current[0]) == (1, True, True)
    same(table, cold(runs))
    same(build(waits), first)


def test_noise_and_allocation_may_change_at_once(round_):
    """The noise counts although the allocation is what is named as the reason."""
    first = build(round_)
    held = Allocation(option=option(first, 0), placement=((0, int(first.gpus[0])),))
    noise = NoiseScale(batches=(1.0,), scale=(123.0,))
    later = changed(round_, 0, allocation=held, noise=noise)
    table = build(later)
    assert table.changes == {"reused": 11, "allocation changed": 1}
    same(table, cold(later))


def test_changed_job_and_profile_are_seen(round_):
    """The limits of a job and the numbers of its profile go into its rows."""
    build(round_)
    job = round_.waiting[0].job
    fewer = msgspec.structs.replace(job, min_gpus=None, max_gpus=None)
    profile = round_.waiting[1].job.profile
    others = sum(s.job.profile == profile for s in round_.waiting[1:])
    copied = round_.profiles | {profile: msgspec.structs.replace(round_.profiles[profile])}
    later = msgspec.structs.replace(changed(round_, 0, job=fewer), profiles=copied)
    table = build(later)
    assert table.changes["job changed"] == 1
    assert table.changes["profile changed"] == others
    same(table, cold(later))


def test_all_are_built_when_watts_begin_to_matter(round_):
    """Without a limit on power rows that only save watts are left out."""
    free = msgspec.structs.replace(round_, energy_j=None, power_cap_w=None)
    capped = msgspec.structs.replace(free, power_cap_w=1e5)
    build(free)
    table = build(capped)
    assert table.changes == {"power began or ceased to matter": 12}
    same(table, cold(capped))
    other = msgspec.structs.replace(capped, power_cap_w=2e5)  # another limit, the same rows
    assert build(other).changes == {"reused": 12}


def test_kinds_of_tables_are_kept_apart(round_):
    """Rigid and elastic tables of one cluster do not take each other's rows."""
    build(round_)
    assert build(round_, elastic=False).changes == {"new": 12}
    assert build(round_).changes == {"reused": 12}


def test_words_without_anything_to_say():
    """A table that was not built from a round says nothing; all kept gives no reasons."""
    assert in_words({}) == ""
    assert in_words({"reused": 3}) == "options of 3 jobs kept"


def test_tables_of_the_same_rows_share_what_follows_from_them(round_):
    """Only what runs differs: columns and what is derived from them are made once."""
    first = build(round_)
    first.derive("a test", lambda table: table.gpus.sum())
    held = Allocation(option=option(first, 0), placement=((0, int(first.gpus[0])),))
    runs = build(changed(round_, 0, allocation=held))
    assert runs.rate is first.rate
    assert runs.current.tolist() == [True] + [False] * (len(first) - 1)
    assert runs.derive("a test", lambda table: -1) == first.gpus.sum()
    turned = msgspec.structs.replace(round_, waiting=round_.waiting[::-1])
    table = build(turned)
    assert table.derive("a test", lambda table: -1) == -1
    same(table, cold(turned))
