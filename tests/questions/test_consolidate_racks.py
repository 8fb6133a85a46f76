"""Racks without jobs, and slices that move, in consolidation."""

import pytest
from msgspec.structs import replace

from ronda.instances.check.checker import check
from ronda.instances.job import Slices
from ronda.instances.plan import SolutionStatus
from ronda.questions.consolidate.answer import consolidate
from ronda.questions.consolidate.report import consolidation_report
from slice_rounds import asked, cluster, job, racks


def ones(*nodes):
    """Return jobs of a node each that run on the given nodes."""
    return [(job(f"x{n}", 1), (n,)) for n in nodes]


def test_racks_without_jobs_count_after_nodes():
    """All nodes in use are full: one move empties a rack, and no node in sum."""
    round_ = asked(cluster(3, 3), [], ones(0, 1, 3))
    assert consolidate(round_).moves == ()
    found = consolidate(round_, save="racks")
    assert check(round_, found.plan) == []
    assert [move.jobs for move in found.moves] == [("x3",)]
    assert (found.emptied_racks, found.filled_racks) == (("r1",), ())
    assert found.plan.objective == found.plan.bound == pytest.approx(1 / 3)
    text = str(consolidation_report(round_, found, "racks"))
    assert "r1" in text
    assert consolidation_report(round_, found, "racks").fields["emptied_racks"] == ("r1",)


def test_a_node_counts_more_than_all_racks():
    """Two halves move onto one node, though a rack would be emptied by another move."""
    halves = [(job(f"h{n}", 1), (n,)) for n in (0, 3)]
    halves = [
        (type(each)(id=each.id, submit_s=0.0, profile="p", gpus=2), on) for each, on in halves
    ]
    round_ = asked(cluster(3, 3), [], halves)
    found = consolidate(round_, save="racks")
    assert (len(found.emptied), len(found.emptied_racks)) == (1, 1)
    assert found.plan.objective == pytest.approx(1 + 1 / 3)


def test_slices_move_as_slices_and_bound_jobs_stay():
    """Two slices of 2 nodes move to one rack each or both to one; one on named nodes stays."""
    where = cluster(4, 4, 4)
    running = [(job("a", 4, 2), (0, 1, 4, 5)), *ones(8, 9)]
    round_ = asked(where, [], running)
    found = consolidate(round_, save="racks")
    assert check(round_, found.plan) == []
    assert len(found.emptied_racks) == 1
    assert all(n % 2 == 0 for n in racks(round_, found.plan, "a"))
    spread = asked(where, [], [(job("a", 4, Slices(nodes=2, spread=True)), (0, 1, 4, 5)), *ones(8)])
    found = consolidate(spread, save="racks")
    assert racks(spread, found.plan, "a") == [2, 2]
    assert len(found.emptied_racks) == 1
    bound = [(job(f"x{n}", 1), (n,)) for n in (0, 1)]
    bound.append((replace(job("b", 1), nodes=(8,)), (8,)))
    found = consolidate(asked(where, [], bound), save="racks")
    assert found.plan.allocations["b"].placement == ((8, 4),)
    assert found.emptied_racks == ("r0",)


def test_no_slice_is_torn_to_empty_a_rack():
    """Two racks have a node left each, and a slice of two nodes does not split."""
    running = [(job("a", 2, 2), (6, 7)), *ones(0, 1, 3, 4)]
    round_ = asked(cluster(3, 3, 2), [], running)
    assert consolidate(round_, save="racks").emptied_racks == ("r2",)  # another job makes room
    found = consolidate(round_, save="racks", moves=1)
    assert found.moves == ()
    assert found.plan.objective == found.plan.bound == 0
    assert found.plan.status is SolutionStatus.OPTIMAL
