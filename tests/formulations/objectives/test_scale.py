"""Values on the scale of another round."""

import numpy as np
import pytest

from ronda.formulations.objectives.by_name import OBJECTIVES, outlook_of, values_of
from ronda.formulations.objectives.scale import frozen_values, scale_of, with_newcomers
from ronda.formulations.options.build import build
from ronda.instances import generate
from ronda.instances.errors import InputError
from ronda.questions.whatif import Gpus, NewJob, WithoutNode
from tests.helpers.valued_rounds import COSTS, cluster, job, rigid, run, snapshot

PRICED = [name for name, form in OBJECTIVES.items() if form.priced]


def seen(round_, objective="rank"):
    """Return the outlook of a round."""
    return outlook_of(round_, build(round_), objective, {})


def by_option(o, values):
    """Return values by job and way to run."""
    t = o.table
    keys = zip(
        [t.jobs[j].job.id for j in t.job],
        *(column.tolist() for column in (t.pool, t.gpus, t.span, t.clock, t.batch)),
        strict=True,
    )
    return dict(zip(keys, values.tolist(), strict=True))


@pytest.mark.parametrize("objective", PRICED)
@pytest.mark.parametrize("seed", range(6))
def test_on_its_own_scale_a_round_keeps_its_values(objective, seed):
    """Price times rate, what stops lose and what a gang takes are all there is to them."""
    o = seen(generate.tiny_round(seed), objective)
    scale = scale_of(o, objective, {})
    assert frozen_values(o, scale) == pytest.approx(values_of(o, objective), rel=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_options_of_the_base_keep_their_values(seed):
    """With more GPUs, and for jobs whose node is gone."""
    round_ = generate.tiny_round(seed)
    o = seen(round_)
    scale, before = scale_of(o, "rank", {}), by_option(o, values_of(o, "rank"))
    for change in (Gpus(round_.cluster.topology.pools[0].name, 4), WithoutNode(0)):
        changed = seen(change.apply(round_))
        after = by_option(changed, frozen_values(changed, scale))
        common = before.keys() & after.keys()
        if isinstance(change, Gpus):
            assert len(common) > 0
            assert [after[key] for key in common] == pytest.approx([before[key] for key in common])
        else:  # what ran may have lost the pause that it had left
            assert all(after[key] <= before[key] + 1e-9 * abs(before[key]) for key in common)


def test_a_reservation_goes_with_its_gang():
    """What takes from it loses as much in a larger cluster, whatever the job's number is there."""
    firm = run(rigid("firm", 100.0, gpus=5, preemptible=False), 5, 1.0)
    gang = rigid("gang", 500.0, gpus=8, preemptible=False)
    long = rigid("long", 900.0, gpus=2, preemptible=False)
    round_ = snapshot(firm, gang, long, on=cluster(8))
    o = seen(round_)
    scale = scale_of(o, "rank", {})
    assert scale.gang == "gang"
    changed = seen(NewJob(job("a", submit_s=0.0).job).apply(Gpus("V100", 8).apply(round_)))
    found = by_option(changed, frozen_values(changed, with_newcomers(scale, changed)))
    before = by_option(o, values_of(o, "rank"))
    key = next(key for key in before if key[0] == "long")
    assert found[key] == pytest.approx(before[key])
    assert found[key] < scale.price["long"]


def test_newcomers_are_worth_what_they_are_among_the_others():
    """And nobody else's price changes."""
    round_ = snapshot(rigid("long", 200.0), rigid("short", 100.0), on=cluster(1))
    scale = scale_of(seen(round_), "rank", {})
    with_new = seen(NewJob(rigid("new", 150.0).job).apply(round_))
    known = with_newcomers(scale, with_new).price
    assert known == {**scale.price, "new": pytest.approx(2.0)}
    assert np.isclose(scale.price["short"], 2.0)


def test_other_objectives_are_refused():
    """Their values are no price times a rate."""
    with pytest.raises(InputError, match=r"snapshot; expected .*rank, gittins"):
        scale_of(seen(generate.tiny_round(0), "snapshot"), "snapshot", {})


def test_a_job_whose_node_goes_keeps_the_values_of_other_options():
    """They are what a change to them is worth before; that to its own option costs a pause now."""
    round_ = snapshot(run(job("x", 4000.0), 2, 2**0.5), on=cluster(8, ("default",)), costs=COSTS)
    round_ = Gpus("V100", 8).apply(round_)
    o = seen(round_)
    scale, before = scale_of(o, "rank", {}), by_option(o, values_of(o, "rank"))
    assert scale.held["x"][1] > 0
    changed = seen(WithoutNode(0).apply(round_))
    after = by_option(changed, frozen_values(changed, scale))
    others = [key for key in after if key in before and key[2] != 2]
    assert len(others) > 0
    assert [after[key] for key in others] == pytest.approx([before[key] for key in others])
    own = next(key for key in before if key[2] == 2)
    assert after[own] < before[own]
