"""Parts of GPUs in plans: sound ones pass, and every rule is broken by hand."""

from itertools import product

import pytest
from msgspec.structs import replace

from ronda.instances.check.checker import check
from ronda.instances.cluster import BUILT_IN
from ronda.instances.models.parts import arranged, bits, room
from ronda.instances.plan import Plan
from tests.helpers.cut_gpus import PARTS, asking, cut_cluster, cut_round, on

SMALL = BUILT_IN["A100-40"]


def planned(round, **at):
    """Return a plan with jobs of a round at (node, GPU, start), or as they run."""
    states = {state.job.id: state for state in round.jobs}
    given = {
        job: states[job].allocation if place == "stays" else on(states[job].job, *place)
        for job, place in at.items()
    }
    return Plan(allocations=given)


def codes(round, plan):
    """Return the codes of a plan's violations."""
    return [fault.code for fault in check(round, plan)]


def test_every_set_of_parts_that_keeps_two_rows_fits_on_an_empty_gpu():
    """78 multisets of profiles fit, and no other has at most 8 memory and 7 compute slices."""
    profiles = [p for p in SMALL.profiles if not p.name.endswith("+me")]
    fits = 0
    for counts in product(*(range(p.most + 2) for p in profiles)):
        names = tuple(p.name for p, n in zip(profiles, counts, strict=True) for _ in range(n))
        memory = sum(p.memory * n for p, n in zip(profiles, counts, strict=True))
        compute = sum(p.compute * n for p, n in zip(profiles, counts, strict=True))
        found = arranged(SMALL, names)
        assert (found is not None) == (memory <= 8 and compute <= 7)
        fits += found is not None
    assert fits == 78


def test_places_keep_the_largest_further_part_possible():
    """A first 1g takes a slice that leaves a 4g; a 3g beside two 2g can only be at 4."""
    by_name = {p.name: p for p in SMALL.profiles}
    (start,) = arranged(SMALL, (PARTS["1g"],))
    free = room(SMALL, bits(by_name[PARTS["1g"]], start))
    left = dict(zip(("7g", "4g", "3g"), free, strict=False))
    assert left == {"7g": 0, "4g": 1, "3g": 1}
    assert arranged(SMALL, (PARTS["3g"], PARTS["2g"], PARTS["2g"])) == (4, 0, 2)
    assert arranged(SMALL, (PARTS["2g"], PARTS["2g"]), ((PARTS["3g"], 0),)) is None


def test_sound_plans_pass():
    """Parts that fill a GPU; fractions that fill one; a whole GPU beside a cut one."""
    three = cut_round({"a": "3g", "b": "2g", "c": "2g"})
    assert codes(three, planned(three, a=(0, 0, 4), b=(0, 0, 0), c=(0, 0, 2))) == []
    shared = cut_round({"a": 0.5, "b": 0.3, "c": 0.2}, cluster=cut_cluster(shared=True))
    assert codes(shared, planned(shared, a=(0, 0), b=(0, 0), c=(0, 0))) == []
    both = cut_round({"a": "4g", "b": 1}, cluster=cut_cluster(gpus=2))
    assert codes(both, planned(both, a=(0, 1, 0), b=(0,))) == []


MIXED = cut_round(
    {"a": "3g", "b": "3g", "m": "1g+me", "n": "1g+me", "s": 0.6, "t": 0.6, "w": 2},
    cluster=cut_cluster(gpus=2, shared=True),
)
FIXED = cut_cluster(recut="never", cut=(PARTS["3g"], PARTS["2g"], PARTS["2g"]))
ODD = asking("a", "3g")
BROKEN = {
    "part, of another size": (MIXED, {"a": on(asking("a", "2g"))}),
    "part, whole in its place": (MIXED, {"a": on(asking("a", 1))}),
    "part, in place of a whole one": (cut_round({"w": 1}), {"w": on(asking("w", "1g"))}),
    "part, no place": (MIXED, {"a": replace(on(ODD), parts=())}),
    "part, two places": (MIXED, {"a": replace(on(ODD), parts=((0, 0, 0), (0, 1, 0)))}),
    "part, of another node": (
        replace(MIXED, cluster=cut_cluster(nodes=2)),
        {"a": replace(on(ODD), parts=((1, 0, 0),))},
    ),
    "part, beside whole ones": (MIXED, {"w": replace(on(asking("w", 2)), parts=((0, 0, 0),))}),
    "part, no such GPU": (MIXED, {"a": on(ODD, 0, 2, 0)}),
    "part, no such start": (MIXED, {"a": on(ODD, 0, 0, 2)}),
    "part, a fraction at a slice": (MIXED, {"s": on(asking("s", 0.6), 0, 0, 1)}),
    "part, nothing is shared": (
        replace(MIXED, cluster=cut_cluster(gpus=2)),
        {"s": on(asking("s", 0.6))},
    ),
    "parts, cut otherwise": (
        cut_round({"a": "4g"}, cluster=FIXED),
        {"a": on(asking("a", "4g"))},
    ),
    "part, a whole one that is cut": (
        cut_round({"a": 1}, cluster=FIXED),
        {"a": on(asking("a", 1))},
    ),
    "parts, overlap": (MIXED, {"a": on(ODD, 0, 0, 4), "b": on(asking("b", "3g"), 0, 0, 4)}),
    "parts, engines": (
        MIXED,
        {"m": on(asking("m", "1g+me"), 0, 0, 0), "n": on(asking("n", "1g+me"), 0, 0, 1)},
    ),
    "parts, fractions": (MIXED, {j: on(asking(j, 0.6)) for j in "st"}),
    "parts, cut and shared": (MIXED, {"a": on(ODD), "s": on(asking("s", 0.6))}),
    "parts, more than the layout": (
        cut_round({"a": "3g", "b": "3g"}, cluster=FIXED),
        {"a": on(ODD, 0, 0, 0), "b": on(asking("b", "3g"), 0, 0, 4)},
    ),
    "parts, against the layout": (cut_round({"a": "3g"}, cluster=FIXED), {"a": on(ODD)}),
    "recut": (
        cut_round({"a": "3g"}, {"r": ("3g", (0, 0, 0))}, cluster=cut_cluster(recut="empty")),
        {"a": on(ODD, 0, 0, 4), "r": on(asking("r", "3g"))},
    ),
    "capacity, a whole one on a cut GPU": (
        MIXED,
        {"a": on(ODD), "w": on(asking("w", 2))},
    ),
    "rate": (MIXED, {"a": replace(on(ODD), option=replace(on(ODD).option, rate=0.5))}),
    "option-power": (MIXED, {"a": replace(on(ODD), option=replace(on(ODD).option, power_w=200))}),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_rule_is_found(case):
    """Each plan breaks one rule, from scratch and beside all that runs."""
    round, given = BROKEN[case]
    assert set(codes(round, Plan(allocations=given))) == {case.partition(",")[0]}


def test_what_runs_and_goes_on_breaks_nothing():
    """Nodes whose GPUs may no longer be shared: who runs there goes on, and nobody joins."""
    before = {"a": (0.6, (0, 0)), "b": (0.6, (0, 0))}
    round = cut_round({"c": 0.1}, before, cluster=cut_cluster(shared=True))
    assert codes(round, planned(round, a="stays", b="stays")) == []
    assert codes(round, planned(round, a="stays", b="stays", c=(0, 0))) == ["parts"]


def test_1g_at_0_1_and_5_leave_no_room_for_a_3g():
    """Five memory and four compute slices are free, yet a 2g at 2 is all that fits (DRA 933)."""
    ran = {f"r{start}": ("1g", (0, 0, start)) for start in (0, 1, 5)}
    stay = dict.fromkeys(ran, "stays")
    for asked, starts in {"3g": (0, 4), "4g": (0,), "2g": (0, 4)}.items():
        round = cut_round({"a": asked}, ran)
        for start in starts:
            assert codes(round, planned(round, **stay, a=(0, 0, start))) == ["parts"]
    round = cut_round({"a": "2g"}, ran)
    assert codes(round, planned(round, **stay, a=(0, 0, 2))) == []
