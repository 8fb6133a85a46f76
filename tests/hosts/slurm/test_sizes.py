"""What ended jobs teach of the sizes of live ones, and where Slurm's limits stand."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.hosts.slurm.sizes import KINDS, OF_EACH, PastSizes, ended_in_log
from ronda.instances.errors import InputError
from ronda.instances.rules.validate import validate
from ronda.instances.snapshots.rounds import round_of
from ronda.instances.snapshots.snapshot import EndedJob, SeenJob, SeenNode, Snapshot
from tests.hosts.clusters.slurm_documents import DATA

NOW_S = 1e6
NODE = SeenNode(name="n1", has={"gpus": 64.0}, gpu_type="A100-40GB")


def live(number, name="train-1", user="eva", *, limit_s=3600.0, ran_s=None, gpus=1):
    """Return a job that waits, or has run for some time."""
    ran = {} if ran_s is None else {"start_s": NOW_S - ran_s, "on": {"n1": 1}}
    return SeenJob(
        id=str(number), name=name, user=user, limit_s=limit_s, per={"gpus": float(gpus)}, **ran
    )


def ended(number, ran_s, name="train-7", user="eva", gpus=1, *, whole=True):
    """Return an ended job."""
    return EndedJob(id=f"e{number}", name=name, user=user, gpus=gpus, ran_s=ran_s, whole=whole)


def round_with(*jobs):
    """Return the round of some jobs on one node."""
    return round_of(Snapshot(source="s", system="slurm", now_s=NOW_S, nodes=(NODE,), jobs=jobs))


def believed(past, *jobs):
    """Return the believed work of jobs by id, after a check of the round."""
    found = past.believe(round_with(*jobs))
    validate(found)
    return {s.job.id: s.job.estimate.work if s.job.estimate else None for s in found.jobs}


def taught(*jobs):
    """Return what some ended jobs teach."""
    return PastSizes().told(jobs)


def test_jobs_like_those_of_the_past_are_believed_to_be_like_them():
    """By user; jobs of others have their limit, or no size without one."""
    past = taught(*(ended(k, 600.0 + k, f"train-{k}") for k in range(9)))
    found = believed(
        past,
        live(1, "train-99", limit_s=36000.0),
        live(2, "train_5", limit_s=None),
        live(3, "train-99", "tom", limit_s=36000.0),
        live(4, "train-99", "tom", limit_s=None),
        live(5, "a new name", limit_s=36000.0),
    )
    assert found["1"] == pytest.approx(600, rel=0.1) == found["2"]
    assert (found["3"], found["4"]) == (36000.0, None)
    assert found["5"] == pytest.approx(600, rel=0.2)
    ran = {s: believed(past, live(1, ran_s=s, limit_s=1500.0))["1"] for s in (1.0, 700.0, 2000.0)}
    assert ran[1.0] == pytest.approx(600, rel=0.1)
    assert (700 < ran[700.0] < 1400, ran[2000.0]) == (True, 1500.0)


def test_jobs_of_one_name_count_more():
    """Of one user, with numbers at the end of names or without."""
    past = taught(
        *(ended(k, 30.0, f"eval_{k}") for k in range(9)),
        *(ended(10 + k, 5000.0, f"train-{k}") for k in range(9)),
    )
    names = dict(enumerate(("eval", "new", "train"), 1))
    found = believed(past, *(live(k, f"{name}-77", limit_s=1e6) for k, name in names.items()))
    assert found["1"] < 1000 < found["2"] < 3500 < found["3"] < 5500


def test_a_name_counts_however_many_names_its_user_had_since():
    """Each of 600 jobs since had a name of its own."""
    first = [ended(k, 5000.0, "train") for k in range(9)]
    past = taught(*first, *(ended(9 + k, 30.0, f"try{k}x") for k in range(600)))
    assert believed(past, live(1, "train", limit_s=1e6))["1"] > 3500


def test_jobs_on_as_many_gpus_count_more():
    """Of one name, those on eight GPUs ran longer."""
    past = taught(
        *(ended(k, 100.0, gpus=1) for k in range(9)),
        *(ended(10 + k, 5000.0, gpus=8) for k in range(9)),
    )
    found = believed(past, live(1, limit_s=36000.0), live(2, limit_s=36000.0, gpus=8))
    assert found["1"] < 1000 < 4000 < found["2"]


@pytest.mark.parametrize("more", [{"whole": False}, {"ran_s": 0.0}, {"gpus": 0}])
def test_a_round_stays_as_it_is_without_a_past(more):
    """Jobs that failed, were stopped or started anew teach nothing, nor do jobs without GPUs."""
    round = round_with(live(1), live(2, ran_s=50.0), live(3, limit_s=None))
    assert taught(ended(1, **{"ran_s": 60.0} | more)).believe(round) == round


NAMES = st.sampled_from(["a-1", "a-2", "b", None])
USERS = st.sampled_from(["eva", "tom", None])
SECONDS = st.floats(0.1, 1e6)
GPUS = st.integers(1, 4)
ENDED = st.lists(st.tuples(SECONDS, NAMES, USERS, GPUS), max_size=12).map(
    lambda jobs: [ended(k, *job) for k, job in enumerate(jobs)]
)
LIVE = st.lists(
    st.builds(
        lambda name, user, limit_s, ran_s, gpus: live(
            0, name, user, limit_s=limit_s, ran_s=ran_s, gpus=gpus
        ),
        NAMES,
        USERS,
        st.none() | SECONDS,
        st.none() | st.floats(0.0, 1e5),
        GPUS,
    ),
    max_size=8,
).map(lambda jobs: [msgspec.structs.replace(job, id=str(k)) for k, job in enumerate(jobs)])


@settings(max_examples=80, deadline=None)
@given(ENDED, LIVE, st.randoms(use_true_random=False))
def test_no_size_is_above_a_limit_or_below_what_has_run(past, jobs, random):
    """Whatever is told, in any order, once or twice, before or after a restart."""
    round, one = round_with(*jobs), taught(*past)
    found = one.believe(round)
    validate(found)
    for state, before in zip(found.jobs, round.jobs, strict=True):
        limit_s, done = state.job.limit_s or float("inf"), state.done_at(NOW_S)
        if state.job.estimate is not None and done < limit_s:
            assert done < state.job.estimate.work <= limit_s * (1 + 1e-12)
        else:
            assert state == before
        assert msgspec.structs.replace(state.job, estimate=before.job.estimate) == before.job
    again = msgspec.json.decode(msgspec.json.encode(one), type=PastSizes)
    assert again.believe(round) == found
    random.shuffle(past)
    again = again.told(past)
    other = taught(*past).believe(round)
    for changed in (again.believe(round), other):
        works = [[s.job.estimate and s.job.estimate.work for s in r.jobs] for r in (found, changed)]
        assert works[0] == [work and pytest.approx(work, rel=1e-9) for work in works[1]]


def test_the_memory_is_bounded():
    """Of each kind the last jobs are kept, and the kinds that ended last."""
    past = taught(ended(0, 50.0, "kept"), *(ended(k, 5.0, "often") for k in range(OF_EACH + 9)))
    assert list(past.kinds["eva/often"]) == [f"e{k}" for k in range(9, OF_EACH + 9)]
    past = past.told([ended(1, 50.0, "kept"), *(ended(k, 5.0, f"{k}") for k in range(KINDS - 1))])
    assert len(past.kinds) == KINDS
    assert ("eva/often" in past.kinds, "eva/kept" in past.kinds) == (False, True)


LOG = """JobID|JobName|User|Submit|Start|End|Elapsed|State|AllocTRES
1|train-1|eva|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T02:00:00|02:00:00|COMPLETED|gres/gpu=2
2|train-2|eva|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T00:01:00|00:01:00|NODE_FAIL|gres/gpu=1
2|train-2|eva|2026-01-01T00:02:00|2026-01-01T00:03:00|2026-01-01T00:07:00|00:04:00|COMPLETED|gres/gpu=1
3|train-3|eva|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T01:00:00|00:50:00|COMPLETED|gres/gpu=1
4|train-4|eva|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T00:00:30|00:00:30|TIMEOUT|gres/gpu=1
5|train-5|eva|2026-01-01T00:00:00|2026-01-01T00:00:00|Unknown|03:00:00|RUNNING|gres/gpu=1
6_1|train-6|eva|2026-01-01T00:00:00|Unknown|2026-01-01T00:00:30|00:00:00|CANCELLED by 0|gres/gpu=1
"""


def test_a_log_of_the_past_teaches_from_the_first_round(tmp_path):
    """Only of jobs with one run to its own end; suspended time does not count."""
    path = tmp_path / "sacct.txt"
    path.write_text(LOG)
    found = ended_in_log([path])
    assert [(job.id, job.gpus, job.ran_s) for job in found if job.whole] == [
        ("3", 1, 3000.0),
        ("1", 2, 7200.0),
    ]
    assert {job.id for job in found} == {"1", "2", "3", "4", "5"}
    assert believed(taught(*found), live(8, limit_s=1e5))["8"] > 3000


def test_a_log_without_users_is_refused(tmp_path):
    """It would teach nothing of jobs that have users; one without names teaches a little."""
    path = tmp_path / "sacct.txt"
    path.write_text(LOG.replace("|eva|", "||"))
    with pytest.raises(InputError, match="no job with a user; expected some, as of sacct"):
        ended_in_log([path])
    assert {(job.user, job.name) for job in ended_in_log([DATA / "toy.txt"])} == {("root", None)}
