"""``ronda boosts``: lines for kubectl that give a queue of Kueue a policy's order."""

import json

import pytest

from tests.helpers.kube_objects import listed, node, queue, workload


@pytest.fixture
def cluster(folder):
    """Write a cluster of 8 GPUs, on which the later of two workloads is much shorter."""

    def write(*boosts):
        works = []
        for k, (name, limit_s) in enumerate([("long", 864000), ("short", 60)]):
            made = workload(name, gpus=8, maximumExecutionTimeSeconds=limit_s)
            made["metadata"]["creationTimestamp"] = f"2026-01-31T12:0{k}:00Z"
            if k < len(boosts):
                made["metadata"]["annotations"] = {"kueue.x-k8s.io/priority-boost": boosts[k]}
            works.append(made)
        whole = listed(node("n", gpus="8"), *queue("q"), *works)
        (folder / "kueue.json").write_text(json.dumps(whole))
        return "kueue.json"

    return write


LINE = "kubectl annotate workloads.kueue.x-k8s.io -n a"


def test_the_command(cluster, ronda):
    """A table and lines for kubectl; JSON with the same; nothing once they have been run."""
    done = ronda("boosts", "--kueue", cluster(), "--policy", "qssf")
    assert done.exit_code == 0, done.output
    told = "Boosts that change: 1. Workloads that wait: 2 (ClusterQueues: 1; tiers by qssf: 2)"
    assert told in done.stdout
    assert [line for line in done.stdout.splitlines() if line.startswith("kubectl")] == [
        f"{LINE} long kueue.x-k8s.io/priority-boost=-1 --overwrite"
    ]
    raised = ronda("boosts", "--kueue", cluster(), "--policy", "sjf", "--band", "0", "5", "--json")
    fields = json.loads(raised.stdout)
    assert fields["commands"] == [f"{LINE} short kueue.x-k8s.io/priority-boost=1 --overwrite"]
    assert [(each["tier"], each["then"]) for each in fields["workloads"]] == [(2, 0), (1, 1)]
    quiet = ronda("boosts", "--kueue", cluster("-1"))
    assert "kubectl" not in quiet.stdout
    assert "Boosts that change: 0." in quiet.stdout
    back = ronda("boosts", "--kueue", cluster("-1"), "--policy", "fifo")
    assert f"{LINE} long kueue.x-k8s.io/priority-boost-\n" in back.stdout


def test_what_cannot_be(cluster, ronda):
    """Another scheduler, no time for a plan: one line, and no line for kubectl."""
    for code, words, told in (
        (2, ["--slurm"], "found --slurm; expected --kueue"),
        (2, [], "found no scheduler; expected --kueue"),
        (2, ["--kueue", "--band", "1", "5"], "--band"),
        (1, ["--kueue", "--time-limit", "1e-9"], "prices found no plan"),
    ):
        done = ronda("boosts", *words, cluster())
        assert done.exit_code == code, done.output
        assert told in done.stderr.splitlines()[-1]
        assert "kubectl" not in done.stdout
