"""Public cases of waiting jobs: our starts and changes against those that were found by hand."""

import json
from math import inf
from pathlib import Path

import pytest

from ronda.questions.why.answer import why
from tests.helpers.brute_start import brute_start
from tools.why_cases import HOUR, snapshot_of_case, told

UNSEEN = Path(__file__).parents[1] / "data" / "why" / "unseen.jsonl"
PUBLIC = Path(__file__).parents[3] / "shared" / "why" / "cases.jsonl"
NODE = {"name": "n", "cpus": 8, "mem_gb": 64, "gpus": 0, "state": "up"}
OWN = {
    "id": "two nodes, memory in MB",
    "system": "Slurm",
    "state": {
        "nodes": [NODE, NODE | {"name": "m", "state": "drained", "back_h": 9}],
        "queues": [{"name": "q", "max_time_h": 12}],
        "running": [{"id": "r", "left_h": 3, "alloc": {"n": {"cpus": 2, "mem_gb": 48}}}],
        "pending": [
            {
                "id": "J",
                "n": 1,
                "per": {"cpus": 2, "mem_gb": 16},
                "limit_h": 12,
                "queue": "q",
                "needs": {"user mem": 16000},
            }
        ],
        "limits": {
            "counters": [{"name": "user mem", "limit": 56000, "held": {"r": 48000}, "other": 0}]
        },
    },
    "earliest_start": 3,
    "replay_start": 3,
    "cheapest_change": {"change": "8 GB", "new_start": 0},
}


def test_a_counter_of_memory_is_a_limit_on_it():
    """What it counts in MB is the memory of the job, so that 8 GB less start it now."""
    text = "\n".join(told(OWN))
    assert "limit: The limit of user mem is 56 GiB of memory; 48 GiB of memory are held" in text
    assert "earliest: 3 (3)" in text
    assert "user: 0, 0.25: 8 GiB of memory instead of 16 (8 less): --mem=8G" in text
    assert "operator: 0: Raise the limit of user mem by 8 GiB of memory, from 56 to 64" in text


@pytest.mark.parametrize("line", UNSEEN.read_text(encoding="utf-8").splitlines())
def test_cases_by_hand(line):
    """Starts, the reason with its numbers, and the best change, of cases that were done by hand."""
    case = json.loads(line)
    seen = snapshot_of_case(case)
    asked = next(job for job in seen.jobs if job.start_s is None)
    found = why(seen, asked.id)
    text = " ".join([found.reason.text, *found.reason.proof])
    starts = [each.start_s for each in (*found.easings, *found.remedies)]
    assert found.start_s == _seconds(case["earliest_start"])
    assert found.replay.start_s == _seconds(case["replay_start"])
    assert found.reason.kind == case["diagnosis"]["reason"]
    assert [words for words in case["diagnosis"]["says"] if words not in text] == []
    assert min([found.start_s, *starts]) <= _seconds(case["cheapest_change"]["new_start"])
    waits = any(each.job == job.id for each in asked.after for job in seen.jobs if not job.on)
    if not (seen.tenants or waits or len(seen.nodes) > 8):
        assert brute_start(seen.within(asked.reservation), asked) == found.start_s


def _seconds(hours):
    return inf if hours is None else hours * HOUR


def test_what_a_state_says_and_is_not_read_is_noted():
    """A field of a node that nobody knows, and a second reservation of a node."""
    windows = [{"name": name, "from_h": 1, "to_h": 2, "nodes": ["n"]} for name in "ab"]
    state = OWN["state"] | {"nodes": [NODE | {"colour": "red"}]}
    state |= {"limits": state["limits"] | {"windows": windows}}
    assert list(snapshot_of_case(OWN | {"state": state}).noted.lines()) == [
        "1 × second window of a node, which is left out, such as b of n",
        "1 × colour in nodes, which is not read, such as red",
    ]


@pytest.mark.skipif(not PUBLIC.is_file(), reason="needs the public cases")
def test_public_cases():
    """Every earliest start is theirs, and so is that of the best change of a request."""
    cases = [json.loads(line) for line in PUBLIC.read_text(encoding="utf-8").splitlines()]
    starts = {}
    for case in cases:
        seen = snapshot_of_case(case)
        found = why(seen, next(job.id for job in seen.jobs if job.start_s is None))
        theirs = case["earliest_start"]
        assert found.start_s == (inf if theirs is None else theirs * HOUR), case["id"]
        starts[case["id"]] = min((one.start_s for one in found.easings), default=inf)
    asked = (
        "A01 A04 A05 H03 K05 K06 K12 S02 S04 S06 S09 S10 S11 S17 S20 S24 S29 S31 S35 S38 V02 V03"
    )
    assert [name for name in asked.split() if starts[name] > 0] == []
