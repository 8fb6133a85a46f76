"""A failing round is cut down to the fewest jobs and nodes."""

import laws
import msgspec
import pytest
from minimise import ask, smallest
from odd_rounds import odd_round

import ronda
from ronda.instances import generate
from ronda.instances.files.json import parse
from ronda.instances.round import Round
from valued_rounds import rigid, run, snapshot

GPU = ronda.GpuType(name="V100", memory_gib=16, idle_w=30.0)


def small_jobs(count, on=None):
    """Return a round of rigid jobs of one GPU on three nodes of four; the first may run on one."""
    states = [rigid(f"j{k}", 100.0) for k in range(count)]
    if on is not None:
        state = run(states[0], 1, 1.0)
        held = msgspec.structs.replace(state.allocation, placement=((on, 1),))
        states[0] = msgspec.structs.replace(state, allocation=held)
    return snapshot(*states, on=ronda.uniform_cluster(GPU, 3, 4))


@pytest.mark.parametrize("seed", range(8))
def test_nothing_more_can_be_left_out(seed):
    """Where three jobs or more fail, three are left, on as few nodes as the widest needs."""
    round_ = odd_round(seed) or generate.tiny_round(seed)
    left = smallest(round_, lambda less: len(less.jobs) >= min(3, len(round_.jobs)))
    assert len(left.jobs) == min(3, len(round_.jobs))
    assert left.power_cap_w is None
    assert left.energy_j is None
    assert len(left.cluster.topology.node_gpus) <= len(round_.cluster.topology.node_gpus)


def test_nodes_are_numbered_anew():
    """A job that runs on the last of three nodes runs on the only one that is left."""
    left = smallest(small_jobs(5, on=2), lambda less: "j0" in less.held)
    assert [state.job.id for state in left.jobs] == ["j0"]
    assert left.held["j0"].placement == ((0, 1),)
    assert left.cluster.topology.node_gpus.tolist() == [4]


def test_a_law_that_is_broken_on_purpose_names_the_smallest_round(monkeypatch):
    """No plan may run two jobs: two jobs on one node break that."""

    def lonely(asked):
        for name, plan in asked.plans.items():
            if len(plan.allocations) > 1:
                asked.say("lonely", name, "two jobs run")

    monkeypatch.setattr(laws, "LAWS", (lonely,))

    def check(round_):
        assert laws.broken_laws(round_, 0, ("fifo",)) == []

    with pytest.raises(AssertionError, match="two jobs run") as caught:
        ask(check, small_jobs(9))
    (note,) = caught.value.__notes__
    left = parse(note.partition(": ")[2].encode(), "note", Round)
    assert len(left.jobs) == 2
    assert left.cluster.topology.node_gpus.tolist() == [4]
