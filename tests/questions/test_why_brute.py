"""Earliest starts and least changes on tiny clusters, against every start and every placement."""

import os
from dataclasses import replace as with_fields
from itertools import combinations

import pytest
from msgspec.structs import replace

from brute_changes import every_change
from brute_start import brute_start, tiny_cluster
from ronda.questions.why.earliest import WaitingJob
from ronda.questions.why.help.actions import remedies
from ronda.questions.why.help.changes import easings
from ronda.questions.why.outlook import FreeRoom

CASES = range(int(os.environ.get("SOAK", 0)) or 100)


@pytest.mark.parametrize("seed", CASES)
def test_the_earliest_start_is_that_of_every_placement(seed):
    """Pieces, limits, outages, licences, slices, exclusive and own nodes."""
    seen, job = tiny_cluster(seed)
    assert WaitingJob(FreeRoom(seen), job).start() == pytest.approx(
        brute_start(seen, job), abs=1e-3
    )


@pytest.mark.parametrize("seed", CASES)
def test_the_cheapest_change_is_that_of_all_values(seed):
    """The first change has the cost and the start of the best one, and no less would do."""
    seen, job = tiny_cluster(seed)
    waiting = WaitingJob(FreeRoom(seen), job)
    found = easings(waiting)
    for one in found:
        assert one.start_s == pytest.approx(brute_start(seen, one.job), abs=1e-3)
        assert one.start_s < waiting.start()
    if waiting.start() == 0:
        assert not found
        return
    every = [(cost, brute_start(seen, one)) for cost, one in every_change(job, seen)]
    for one in found:
        if one.kinds == ("limit",):
            every.append((one.cost, one.start_s))
            longer = replace(one.job, limit_s=one.job.limit_s + 60)
            assert brute_start(seen, longer) > one.start_s
    helps = [(start_s > 0, cost, start_s) for cost, start_s in every if start_s < waiting.start()]
    if helps:
        first = found[0]
        assert (first.start_s > 0, first.cost, first.start_s) == pytest.approx(min(helps))
    assert bool(helps) == any(len(one.kinds) == 1 for one in found)


def _raised(seen, row, more):
    """Return a cluster in which one limit is higher."""
    kind, name = row.removesuffix("]").split("[")
    if kind == "licence":
        return with_fields(seen, licences={name: seen.licences[name] + more})
    name, _, of = name.partition(",")
    groups = []
    for group in seen.groups:
        if group.name == name.partition("/")[0]:
            if kind == "jobs":
                group = replace(group, max_jobs=int(group.max_jobs + more))
            elif kind == "run":
                group = replace(group, max_gpu_s=group.max_gpu_s + more)
            else:
                group = replace(group, most={of: group.most[of] + more})
        groups.append(group)
    return with_fields(seen, groups=tuple(groups))


def _with_nodes(seen, edit):
    return with_fields(seen, nodes=tuple(map(edit, seen.nodes)))


@pytest.mark.parametrize("seed", CASES)
def test_no_less_of_what_an_operator_does_gives_the_start(seed):
    """Limits, nodes and outages: the start is that of every placement, and later for any less."""
    seen, job = tiny_cluster(seed)
    for one in remedies(WaitingJob(FreeRoom(seen), job)):
        if one.kind == "limit":
            higher = lower = seen
            for row, more in one.amounts.items():
                higher = _raised(higher, row, more)
                less = more - (1 if more == int(more) else 1e-3 * more)
                lower = _raised(lower, row, less)
        elif one.kind == "nodes":
            out = [node.name for node in seen.nodes if node.out is not None]
            higher = _back(seen, one.amounts)
            fewer = [_back(seen, some) for some in combinations(out, len(one.amounts) - 1)]
            lower = min(fewer, key=lambda each: brute_start(each, job))
        elif one.kind == "outage":
            higher = _later(seen, one.amounts)
            lower = _later(seen, {node.name: max(one.amounts.values()) - 1 for node in seen.nodes})
        else:
            continue
        assert brute_start(higher, job) == pytest.approx(one.start_s, abs=1e-3)
        assert brute_start(lower, job) > one.start_s + 1e-3


def _back(seen, names):
    def edit(node):
        return replace(node, out=None, back_s=None) if node.name in names else node

    return _with_nodes(seen, edit)


def _later(seen, by_s):
    def edit(node):
        if node.leaves_s is None or node.name not in by_s:
            return node
        leaves_s = node.leaves_s + by_s[node.name]
        return replace(node, leaves_s=leaves_s)

    return _with_nodes(seen, edit)
