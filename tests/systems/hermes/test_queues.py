"""Queues of trials for GPUs."""

from hypothesis import given
from hypothesis import strategies as st

from ronda.instances.job import Allocation, Job, JobState, Option
from ronda.instances.learning import Sweep
from ronda.systems.hermes.hermes import queues
from ronda.systems.hermes.trials import Trial

SLOTS = (0, 0, 1, 2)


def trial(k, node=None):
    """Return a trial that waits, or runs on a node."""
    job = Job(id=f"t{k}", submit_s=0.0, profile="rigid", sweep="s", epoch=1.0)
    held = (
        None if node is None else Allocation(option=Option(pool=0, gpus=1), placement=((node, 1),))
    )
    return Trial(JobState(job=job, since_s=0.0, allocation=held), Sweep(reports=2), ())


def placed(trials, before, nodes=(0, 1, 2), slots=SLOTS):
    """Return the queues; every trial may use the nodes."""
    return queues(trials, slots, lambda _, node: node in nodes, before)


@given(st.lists(st.integers(0, 3), max_size=12), st.integers(0, 12))
def test_new_trials_even_the_queues_out_and_others_stay(old, new):
    """A trial never moves; the queues that get new ones end up no longer than others by two."""
    trials = [trial(k) for k in range(len(old) + new)]
    before = {f"t{k}": queue for k, queue in enumerate(old)}
    found = placed(trials, before)
    assert found.items() >= before.items()
    lengths = [list(found.values()).count(queue) for queue in range(4)]
    fed = {found[f"t{k}"] for k in range(len(old), len(trials))}
    assert all(lengths[queue] <= min(lengths) + 1 for queue in fed)


def test_what_runs_is_in_a_queue_of_its_node():
    """Even if somebody else has put it there; two on one node are in two queues."""
    found = placed([trial(0, 0), trial(1, 0), trial(2, 2)], {"t0": 3, "t1": 0, "t2": 3})
    assert {found["t0"], found["t1"]} == {0, 1}
    assert found["t2"] == 3


def test_a_trial_that_can_use_no_gpu_is_in_no_queue():
    """Nodes that it may not use, or that are gone, are left."""
    assert placed([trial(0)], {}, nodes=()) == {}
    assert placed([trial(0)], {"t0": 3}, slots=(0, 0, 1, -1)) == {"t0": 0}
    assert placed([trial(0)], {"t0": 9}, nodes=(1,)) == {"t0": 2}
