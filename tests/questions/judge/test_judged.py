"""The answer on a log: what its curves and its times say."""

from pathlib import Path

import pytest

from made_logs import busy, logged, sacct
from ronda.instances.traces.door import read_log
from ronda.questions.judge.judged import LOG, judged_log


def test_curves_end_at_what_was_waited(tmp_path):
    """In the log and in each replay; times are those of the zone."""
    (tmp_path / "log.txt").write_text(sacct(*logged(busy(8, 15), "fifo")))
    found = judged_log(read_log([tmp_path / "log.txt"]), zone="Europe/Berlin", trust=0, decisions=0)
    (queue,) = found.queues
    told = queue.judgement
    ends = {name: waited_s[-1] for name, waited_s in queue.waited_s.items()}
    assert ends.pop(LOG) == pytest.approx(told.waited_s, abs=0.1)
    waits = {replay.wait_s for replay in told.replays}
    assert len(ends) > 1
    assert all(any(end == pytest.approx(wait, abs=0.1) for wait in waits) for end in ends.values())
    assert all(list(own) == sorted(own) for own in queue.waited_s.values())
    assert found.when(0.0) == "2026-03-23 01:00:00"


def test_queues_inside_a_judged_one_are_judged():
    """Accounts of a judged partition are no others; beside a judged account the others stand."""
    read = read_log([Path(__file__).parents[2] / "data" / "slurm" / "toy.txt"])
    assert judged_log(read, trust=0, decisions=0).others == ()
    found = judged_log(read, queues=("main/chem",), trust=0, decisions=0)
    assert {other.name for other in found.others} == {"main", "main/speech", "main/vision"}
