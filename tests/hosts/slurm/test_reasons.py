"""The reason that Slurm prints for a job that waits, beside the one that ronda proves."""

import time

from ronda.hosts.clusters.read import Text, read_texts
from ronda.questions.why.answer import why


def seen(toy):
    """Return what Slurm shows now."""
    words = (("squeue", "--json"), ("sinfo", "--json"))
    texts = [Text(" ".join(each), toy.run(*each).stdout.encode()) for each in words]
    return read_texts("slurm", texts, time.time())


def test_what_slurm_prints_and_what_ronda_proves(toy):
    """Four full nodes; jobs that wait for room, for another job, for a begin time, and held."""
    full = [toy.submit("--gres=gpu:a100:8", "--time=60") for _ in range(4)]
    toy.wait(lambda: all(toy.job(job)["job_state"] == "RUNNING" for job in full))
    one = ("--gres=gpu:a100:1", "--time=10")
    asked = {
        toy.submit(*one): ("Resources", "on:gpus", 3600),
        toy.submit(*one, f"--dependency=afterany:{full[0]}"): ("Dependency", "after", 3600),
        toy.submit(*one, "--begin=now+7200", "--comment=ronda"): ("BeginTime", "eligible", 7200),
        toy.submit(*one, "--hold"): ("JobHeldUser", "blocked", float("inf")),
    }
    toy.wait(lambda: all(toy.job(j)["state_reason"] == asked[j][0] for j in asked))
    found = seen(toy)
    for job, (printed, name, in_s) in asked.items():
        answer = why(found, str(job))
        assert answer.waiting.job.reason == printed
        assert answer.reason.name == name, job
        assert abs(answer.start_s - answer.waiting.now_s - in_s) < 30 or in_s == answer.start_s
        if printed == "BeginTime":
            assert "ronda slurm" in " ".join(answer.reason.proof)


def test_a_node_that_backfill_plans_is_no_place_for_long_jobs(toy):
    """Three GPUs are free, but their node is planned whole: 10 h wait as long as Slurm says."""
    for gpus in (5, 8, 8, 8):
        toy.submit(f"--gres=gpu:a100:{gpus}", "--time=60")
    toy.wait(lambda: toy.run("squeue", "-h", "-t", "R").stdout.count("\n") == 4)
    for _ in range(4):
        toy.submit("--gres=gpu:a100:4", "--time=60")
    toy.wait(lambda: toy.run("squeue", "-h", "-t", "PD").stdout.count("(Priority)") == 3)
    long = toy.submit("--gres=gpu:a100:2", "--time=600")
    short = toy.submit("--gres=gpu:a100:1", "--time=30")
    toy.wait(lambda: toy.job(short)["job_state"] == "RUNNING" and toy.job(long)["start_time"])
    answer = why(seen(toy), str(long))
    assert answer.start_s == answer.waiting.now_s
    assert abs(answer.replay.start_s - toy.job(long)["start_time"]) < 60
