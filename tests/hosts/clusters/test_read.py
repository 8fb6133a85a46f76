"""The door to all dialects: what no cluster can be in is refused, what is odd is counted."""

from dataclasses import replace

import pytest

from ronda.hosts.clusters import read
from ronda.hosts.clusters.read import Text, read_snapshot
from ronda.instances.errors import InputError
from ronda.instances.snapshots.snapshot import SeenJob, SeenNode, Snapshot

NODE = SeenNode(name="n1", has={"gpus": 8, "cpu": 64})
JOB = SeenJob(id="1", per={"gpus": 4, "cpu": 8}, on={"n1": 2}, start_s=0)
SEEN = Snapshot(source="here", system="made", now_s=10, nodes=(NODE,), jobs=(JOB,))


def made(files, now_s):
    """Return the snapshot of the test, with the number of files as its time."""
    return replace(made.seen, now_s=len(files) if now_s is None else now_s)


@pytest.fixture(autouse=True)
def system(monkeypatch, tmp_path):
    """Make a dialect known, and a file for it."""
    monkeypatch.setitem(read.SYSTEMS, "made", f"{__name__}:made")
    made.seen = SEEN
    (tmp_path / "a").write_text("x")
    monkeypatch.chdir(tmp_path)


def test_files_reach_their_dialect():
    """The dialect gets the bytes of each file under its name, and the time."""
    assert read_snapshot("made", ["a"]).now_s == 1
    assert read_snapshot("made", ["a"], now_s=7) == replace(SEEN, now_s=7)
    assert read.text_of("a") == Text("a", b"x")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"nodes": (NODE, NODE)}, 'node "n1" twice'),
        ({"jobs": (JOB, JOB)}, 'job "1" twice'),
        ({"nodes": (), "jobs": ()}, "no nodes"),
        ({"nodes": (SeenNode(name="n1", has={"gpus": 1e18}),)}, "1000000000000000000 GPUs"),
        ({"jobs": (SeenJob(id="2", on={"n9": 1}),)}, 'running job "2" on node "n9"'),
        (
            {"jobs": (JOB, SeenJob(id="2", per={"gpus": 1}, on={"n1": 1}))},
            "node n1: 9 gpus held of 8",
        ),
        (
            {"jobs": (SeenJob(id="2", on={"n1": 1}, held={"n1": {"gpus": 9.0}}),)},
            "node n1: 9 gpus held of 8",
        ),
    ],
)
def test_contradictions_are_refused_in_one_line(change, words):
    """The line names the node or job, and the numbers."""
    made.seen = replace(SEEN, **change)
    with pytest.raises(InputError, match=words) as told:
        read_snapshot("made", ["a"])
    assert str(told.value).startswith("here: found ")
    assert "\n" not in str(told.value)


def test_shared_cores_are_counted_not_refused():
    """Hosts may oversubscribe cores, not GPUs."""
    made.seen = replace(SEEN, jobs=(SeenJob(id="2", per={"cpu": 65}, on={"n1": 1}),))
    (line,) = read_snapshot("made", ["a"]).noted.lines()
    assert line == (
        "1 × node whose jobs hold more cpu than it has, such as node n1: 65 cpu held of 64"
    )


def test_bad_arguments():
    """An unknown system, no files and an absent file are refused."""
    with pytest.raises(InputError, match=r'"mad".*did you mean "made"'):
        read_snapshot("mad", ["a"])
    with pytest.raises(InputError, match="no file"):
        read_snapshot("made", [])
    with pytest.raises(InputError, match="such file"):
        read_snapshot("made", ["b"])
