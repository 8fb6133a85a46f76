"""One run: a fresh cluster, the jobs of a workload, who decides about them, and what fails."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.slurm.workload import NODE_GPUS, NODES, Submission
from ronda.hosts.slurm.guard import SETTLES_S
from tools.toy_slurm import ToySlurm, toy_slurm

STRONG = (
    "sched_interval=1,batch_sched_delay=0,bf_interval=1,bf_resolution=1,bf_continue,"
    "bf_max_job_test=1000"
)
"""Slurm's scheduler at its strongest: it looks at all jobs every second, at whole seconds."""

TERMS = (
    *("--partition", "main", "--interval", "2", "--actions-per-minute", "600"),
    *("--min-run-s", "10", "--restart-s", "8", "--lease-s", "20"),
)
"""What ronda is told: Slurm starts a job that was stopped six seconds later, at the soonest."""

HISTORY = "history.txt"
"""The file of a run, and the word of an arm, for the log of jobs that ended before."""

BOOT_S = 10.0
"""Seconds until a node that wakes has booted; on the toy cluster a daemon alone is started."""

AWAY_S, PATIENCE_S = 20.0, 600.0
"""Seconds until what was killed is started again, and until a run is given up."""


@dataclass(frozen=True, slots=True)
class Arm:
    """Who decides: Slurm under some settings, and a policy of ronda beside it, if any.

    If `by_limit`, users let jobs of less limit times GPUs go first, by ``--nice``.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    policy: str = ""
    words: tuple[str, ...] = ()
    by_limit: bool = False


@dataclass(slots=True)
class Running:
    """A run in progress."""

    toy: ToySlurm
    arm: Arm
    folder: Path
    ronda: "subprocess.Popen[bytes] | None" = None

    def start_ronda(self) -> None:
        """Start ronda beside the cluster; nothing, if Slurm decides alone."""
        if self.arm.policy:
            words = [sys.executable, "-m", "ronda", "slurm", "--act", *TERMS]
            words += ["--state", str(self.folder / "ronda"), "--policy", self.arm.policy]
            words += [
                str(self.folder / word) if word == HISTORY else word for word in self.arm.words
            ]
            with (self.folder / "ronda.txt").open("ab") as out:
                self.ronda = subprocess.Popen(words, env=self.toy.env, stdout=out, stderr=out)

    def stop_ronda(self, kill: bool = False) -> None:
        """Stop ronda in order, or kill it; raise RuntimeError if it had ended by itself."""
        if self.ronda is not None:
            if self.ronda.poll() is not None:
                raise RuntimeError(f"ronda ended by itself: {self.folder / 'ronda.txt'}")
            self.ronda.kill() if kill else self.ronda.terminate()
            self.ronda.wait(timeout=60)
            self.ronda = None

    def submit(self, job: Submission) -> dict[str, Any]:
        """Submit a job, again and again while Slurm is away, but never twice."""
        told = {"name": job.name, "submit_s": time.time()}
        file, script = self.folder / "jobs" / job.name, Path(__file__).with_name("job.sh")
        command = f"exec bash {script} {file} {round(1e6 * job.duration_s)} '{job.speeds}'"
        nice = [f"--nice={job.limit_min * job.gpus}"] if self.arm.by_limit else []
        while True:
            try:
                self.toy.submit(*job.options, *nice, command=command)
                return told
            except (RuntimeError, subprocess.TimeoutExpired):
                time.sleep(1.0)
            with contextlib.suppress(RuntimeError, subprocess.TimeoutExpired):
                if job.name in {shown["name"] for shown in self.toy.jobs().values()}:
                    return told

    def carry_out(self, jobs: Sequence[Submission], faults: "Sequence[Fault]") -> None:
        """Submit each job in its time, let things fail in theirs, and wait for the last end."""
        began_s = time.time()

        def fail(at_s: float, act: Callable[[Running], None]) -> None:
            _sleep_until(began_s + at_s)
            act(self)

        threads = [threading.Thread(target=fail, args=fault) for fault in faults]
        for thread in threads:
            thread.start()
        told, loads = [], []
        for job in jobs:
            _sleep_until(began_s + job.submit_s)
            told.append(self.submit(job))
            loads.append(os.getloadavg()[0])
        live = {self.folder / "jobs" / job.name for job in jobs}
        while live and time.time() < began_s + PATIENCE_S:
            time.sleep(1.0)
            loads.append(os.getloadavg()[0])
            live = {path for path in live if not path.exists() or "\nend" not in path.read_text()}
        for thread in threads:
            thread.join()
        said = {"machine_load": sum(loads) / len(loads), "jobs": told}
        (self.folder / "submitted.json").write_text(json.dumps(said, indent=1))


def run(
    folder: Path,
    arm: Arm,
    jobs: Sequence[Submission],
    faults: "Sequence[Fault]" = (),
    history: str = "",
) -> None:
    """Run a workload on a fresh cluster; leave all that shows what happened in the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "jobs").mkdir(parents=True)
    (folder / HISTORY).write_text(history)
    boot = folder / "boot"
    boot.write_text(f'#!/bin/sh\nsleep {BOOT_S:g}\nexec "{folder}/slurm/power-up" "$1"\n')
    boot.chmod(0o755)
    settings = {"SchedulerParameters": STRONG, "ResumeProgram": boot, "RequeueExit": 99}
    with toy_slurm(folder / "slurm", NODES, NODE_GPUS, 5, **settings, **arm.settings) as toy:
        running = Running(toy, arm, folder)
        try:
            running.start_ronda()
            toy.settle(SETTLES_S)
            running.carry_out(jobs, faults)
        finally:
            running.stop_ronda()


def _sleep_until(at_s: float) -> None:
    while (rest_s := at_s - time.time()) > 0:
        time.sleep(rest_s)


def _kill_ronda(running: Running) -> None:
    running.stop_ronda(kill=True)
    time.sleep(AWAY_S)
    running.start_ronda()


def _kill_node(running: Running) -> None:
    running.toy.node_stop("n2")
    running.toy.wait(lambda: "DOWN" in running.toy.nodes()["n2"]["state"].upper(), within_s=90)
    time.sleep(AWAY_S)
    running.toy.node_start("n2")


def _kill_slurmd(running: Running) -> None:
    running.toy.kill_slurmd("n3")
    time.sleep(3.0)
    running.toy.node_start("n3")


def _restart(running: Running) -> None:
    running.toy.stop_controller()
    time.sleep(AWAY_S)
    running.toy.start_controller()


Fault = tuple[float, Callable[[Running], None]]
FAULTS: dict[str, tuple[Fault, ...]] = {
    "none": (),
    "all": ((60.0, _kill_slurmd), (80.0, _kill_ronda), (110.0, _kill_node), (165.0, _restart)),
}
"""Seconds after the first submission, and what happens then: a slurmd and ronda are killed, a node
dies with all that runs there, slurmctld is away for a while."""
