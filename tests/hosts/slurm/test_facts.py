"""Facts about Slurm on which the controller relies, each on a real one."""

import pytest


def state(toy, job):
    """Return a job's state and the reason that Slurm names."""
    seen = toy.job(job)
    return seen["job_state"], seen["state_reason"]


def test_a_job_runs_on_its_gpus(toy):
    """The GPUs that a job was given stand in ``gres_detail`` while it runs."""
    job = toy.submit("--gres=gpu:a100:2")
    toy.wait(lambda: state(toy, job)[0] == "RUNNING")
    assert toy.job(job)["gres_detail"] == ["gpu:a100:2(IDX:0-1)"]


def test_a_held_job_has_no_priority(toy):
    """A hold comes first: a priority for a held job is refused, and holds again after a release."""
    job = toy.submit("--hold", "--gres=gpu:a100:8")
    assert state(toy, job) == ("PENDING", "JobHeldUser")
    refused = toy.run("scontrol", "update", f"JobId={job}", "Priority=777", check=False)
    assert refused.returncode == 1
    assert "Job is in held state" in refused.stderr
    assert toy.job(job)["priority"] == 0


def test_a_fresh_cluster_has_its_own_settings(fresh_toy):
    """Two clusters stand side by side, each with its own nodes."""
    one, two = fresh_toy(nodes=1, gpus=1), fresh_toy(nodes=2, PriorityType="priority/multifactor")
    assert (len(one.nodes()), len(two.nodes())) == (1, 2)
    assert "priority/multifactor" in two.run("scontrol", "show", "config").stdout
    with pytest.raises(RuntimeError, match="Requested node configuration is not available"):
        one.submit("--gres=gpu:a100:2")
