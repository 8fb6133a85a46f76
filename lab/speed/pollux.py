"""Speed and value of the adapter for AdaptDL, and of AdaptDL's own policy on the same inputs.

It needs ``pip install adaptdl-sched 'pymoo==0.5.0' 'numpy<2'`` in an environment of its own: that
policy is of 2022.

The cluster is of a fixed size, as in the authors' own simulator: the template of further nodes has
no resources, and AdaptDL's policy takes the best plan that it found, on however many nodes. As it
comes (0.2.11), it searches on twice the nodes, and its mutation gives about every job a replica on
any of these: with 16 jobs or more some one is always beyond the real nodes, so that no plan on
these alone is found.
"""

import importlib
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from lab.speed.cases import case
from ronda.hosts.adapters.pollux import Pollux
from ronda.hosts.adapters.speedups import SumOfSpeedups
from ronda.instances.errors import InputError
from ronda.solvers.contract import Policy

PERF = (0.121, 0.00568, 0.0236, 0.00634, 0.0118, 0.00317)
"""Seconds of computing, across nodes and within one, as in AdaptDL's own tests."""

Allocations = dict[int, list[int]]


@case("32,128")
def measure_pollux(
    jobs: int, nodes: int = 16, gpus_per_node: int = 4, rounds: int = 3, seed: int = 0
) -> dict[str, Any]:
    """Time the adapter for AdaptDL, and AdaptDL's own policy (the baseline) on the same rounds.

    Each round starts from the last one's allocations. total_s and baseline_s are processor seconds
    of a decision, means; value and baseline_value are AdaptDL's objective of the last, if it is
    kept. polished_value is what its search makes of our last one when it starts from that.
    """
    host = _Host(jobs, nodes, gpus_per_node, seed)
    own = cast("Policy", SumOfSpeedups())
    Pollux(own).optimize(*host.arguments({}))  # loads all
    ours, ours_s = host.decide(Pollux(own).optimize, rounds)
    theirs, theirs_s = host.decide(host.policy().optimize, rounds)
    polished, _ = host.decide(host.policy().optimize, 1, ours)
    return {
        "gpus": nodes * gpus_per_node,
        "total_s": ours_s,
        "baseline_s": theirs_s,
        "value": host.value(ours, ours),
        "baseline_value": host.value(theirs, theirs),
        "polished_value": host.value(polished, ours),
        "valid": host.valid(ours),
    }


class _Host:
    """Jobs and nodes in AdaptDL's own types."""

    def __init__(self, jobs: int, nodes: int, gpus_per_node: int, seed: int) -> None:
        for name, kind in (("int", int), ("float", float)):
            if name not in vars(np):  # names that numpy had until 1.23
                setattr(np, name, kind)
        try:
            load = importlib.import_module
            goodput = load("adaptdl.goodput")
            names = ("speedup", "utils", "pollux")
            speedup, utils, self._pollux = (load(f"adaptdl_sched.policy.{name}") for name in names)
        except ImportError as error:
            expected = "an environment with adaptdl-sched, pymoo 0.5.0 and numpy 1"
            raise InputError("AdaptDL", str(error), expected) from None
        rng, now = np.random.default_rng(seed), datetime(2026, 1, 1)

        def job(k: int) -> Any:
            perf = goodput.PerfParams(*(np.array(PERF) * rng.lognormal(0.0, 0.3, 6)), 1.14)
            grad = goodput.GradParams(
                sqr=0.00136 * rng.lognormal(0.0, 0.5), var=0.000502 * rng.lognormal()
            )
            speed = speedup.SpeedupFunction(
                goodput.GoodputFunction(perf, grad, 128),
                max_batch_size=5120,
                atomic_bsz_range=(64, 256),
            )
            most, since = int(rng.choice([8, 16, 32])), now + timedelta(minutes=k)
            return utils.JobInfo({"nvidia.com/gpu": 1, "pods": 1}, speed, since, 0, most)

        has, none = {"nvidia.com/gpu": gpus_per_node, "pods": 32}, {"nvidia.com/gpu": 0, "pods": 0}
        self.jobs = {k: job(k) for k in range(jobs)}
        self.nodes = {k: utils.NodeInfo(has, preemptible=False) for k in range(nodes)}
        self.template = utils.NodeInfo(none, preemptible=True)

    def policy(self) -> Any:
        """Return AdaptDL's own policy, for a cluster of a fixed size."""
        policy = self._pollux.PolluxPolicy()
        policy._desired_nodes = lambda utilities, values, nodes: len(nodes)
        return policy

    def arguments(self, base: Allocations) -> tuple[Any, ...]:
        """Return what policies are asked with."""
        return self.jobs, self.nodes, base, self.template

    def decide(
        self, optimize: Callable[..., Any], rounds: int, base: Allocations | None = None
    ) -> tuple[Allocations, float]:
        """Return the allocations after some rounds, and the mean seconds of one."""
        held, seconds = base or {}, 0.0
        for _ in range(rounds):
            began = time.process_time()
            held = dict(optimize(*self.arguments(held))[0])
            seconds += time.process_time() - began
        return held, seconds / rounds

    def value(self, given: Allocations, base: Allocations) -> float:
        """Return AdaptDL's objective of allocations, where others are held."""
        out: dict[str, Any] = {}
        self._problem(base)._evaluate(self._state(given)[None], out)
        return -float(out["F"][0, 0])

    def valid(self, given: Allocations) -> bool:
        """Return whether AdaptDL's repair finds nothing to repair."""
        state = self._state(given)[None]
        one = SimpleNamespace(get=lambda _: state.copy(), new=lambda _, states: states)
        repaired = self._problem({})._repair(one).reshape(state.shape)
        return bool((repaired == state).all())

    def _problem(self, base: Allocations) -> Any:
        jobs, nodes = list(self.jobs.values()), list(self.nodes.values())
        return self._pollux.Problem(jobs, nodes, self._state(base))

    def _state(self, given: Mapping[int, list[int]]) -> Any:
        """Return (jobs, nodes) replicas."""
        state = np.zeros((len(self.jobs), len(self.nodes)), dtype=int)
        for job, places in given.items():
            np.add.at(state[job], places, 1)
        return state
