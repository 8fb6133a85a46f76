"""An adapter for Blox with the interfaces of its scheduling and placement policies.

Blox is by Agarwal et al., EuroSys 2024. It is used like this::

    from ronda.hosts.adapters.blox import Blox

    policy = Blox("srtf")
    schedule = policy.schedule(job_state, cluster_state)
    to_suspend, to_launch = policy.place(job_state, cluster_state, schedule)

`schedule` puts the jobs that are to run first. Blox's own placement may follow it, or `place`,
which gives the GPUs on the chosen nodes. Jobs come from ``job_state.active_jobs``, with
``num_GPUs``, ``job_iteration_time``, ``job_total_iteration`` and ``submit_time``. Their progress is
``job_executed_iteration``, or else ``tracked_metrics["iter_num"]``, or the seconds of
``tracked_metrics["attained_service"]``. GPUs are the rows of ``cluster_state.gpu_df``, with
``GPU_ID``, ``Node_ID``, ``JOB_IDS`` and, if there are several types, ``GPU_type``. The time is
``cluster_state.time`` or, if that is missing, counted in rounds. Nodes may come and go.
"""

from collections.abc import Mapping
from typing import Any

from ronda.hosts.adapters.machines import cluster_of
from ronda.hosts.adapters.telling import Hosted, tell
from ronda.instances.arguments import checked
from ronda.instances.base import NonNegative, Positive
from ronda.instances.job import Costs
from ronda.solvers.contract import Policy

Key = Any


class Blox:
    """A scheduling policy and a placement policy for Blox.

    Parameters
    ----------
    policy
        Policy that decides; jobs keep the number of GPUs that they ask for.
    restart_s
        Time that a change costs a job, in seconds.
    round_s
        Length of a round in seconds.
    deadline_s
        Time limit of a decision in seconds.
    """

    metric_to_track = ("per_iter_time", "attained_service")
    default_metric_value = (0, 0)

    @checked
    def __init__(
        self,
        policy: Policy | str = "prices",
        *,
        restart_s: NonNegative = 0.0,
        round_s: Positive = 300.0,
        deadline_s: Positive | None = None,
    ) -> None:
        self.round_s, self.deadline_s, self._now_s = round_s, deadline_s, 0.0
        self._host = Hosted(policy, costs=Costs(restart_s=restart_s), length_s=round_s)
        self._nodes: dict[Key, tuple[str, int]] = {}

    def schedule(self, job_state: Any, cluster_state: Any, **_: Any) -> dict[str, Any]:
        """Return the jobs in order, with those that are to run first."""
        jobs = job_state.active_jobs
        gpus = _gpus(cluster_state.gpu_df)
        nodes = {node: (rows[0][2], len(rows)) for node, rows in gpus.items()}
        self._host.meet(cluster_of(list(nodes.values())), [str(node) for node in nodes])
        self._nodes, host = nodes, self._host.host
        self._now_s = max(self._now_s, float(getattr(cluster_state, "time", 0.0)))
        number = {node: k for k, node in enumerate(nodes)}
        running: dict[str, list[int]] = {}
        for node, own in gpus.items():
            for _gpu, job, _kind in own:
                if job in jobs:
                    running.setdefault(str(job), []).append(number[node])
        kinds = [kind for kind, _ in nodes.values()]
        rows = {str(job): _row(str(job), jobs[job], kinds, self._now_s) for job in jobs}
        tell(host, rows, running, self._now_s)
        host.update(progress={str(j): _done(jobs[j]) for j in jobs})
        host.decide(self.deadline_s)
        if not hasattr(cluster_state, "time"):
            self._now_s += self.round_s
        chosen = host.running
        order = sorted(jobs.items(), key=lambda item: str(item[0]) not in chosen)
        return {"job_order": order, "run_all_jobs": False}

    def place(
        self, job_state: Any, cluster_state: Any, new_job_schedule: Mapping[str, Any], **_: Any
    ) -> tuple[list[Key], dict[Key, list[Key]]]:
        """Return, by the last decision, the jobs to suspend and the GPUs of the jobs to launch."""
        order = [job for job, _ in new_job_schedule["job_order"]]
        gpus, names = _gpus(cluster_state.gpu_df), list(self._nodes)
        chosen = self._host.host.running
        wanted = {
            job: {names[node]: n for node, n in chosen[str(job)].placement}
            for job in order
            if str(job) in chosen
        }
        held: dict[Key, dict[Key, int]] = {}
        for node, rows in gpus.items():
            for _gpu, job, _kind in rows:
                if job in job_state.active_jobs:
                    held.setdefault(job, {}).setdefault(node, 0)
                    held[job][node] += 1
        stays = {job for job, places in held.items() if wanted.get(job) == places}
        free = {
            node: [gpu for gpu, job, _ in rows if job not in stays] for node, rows in gpus.items()
        }
        launch = {
            job: [free[node].pop(0) for node, n in places.items() for _ in range(n)]
            for job, places in wanted.items()
            if job not in stays
        }
        return [job for job in held if job not in stays], launch


def _gpus(frame: Any) -> dict[Key, list[tuple[Key, Key, str]]]:
    """Return the GPUs of each node: id, job (None if free) and type."""
    columns = [frame[name].tolist() for name in ("Node_ID", "GPU_ID", "JOB_IDS")]
    kinds = frame["GPU_type"].tolist() if "GPU_type" in frame.columns else ["gpu"] * len(frame)
    found: dict[Key, list[tuple[Key, Key, str]]] = {}
    for node, gpu, job, kind in zip(*columns, kinds, strict=True):
        found.setdefault(node, []).append((gpu, None if job != job else job, str(kind)))
    return found


def _row(name: str, job: Mapping[str, Any], kinds: list[str], now_s: float) -> dict[str, Any]:
    """Return a job's row for the façade, with work in iterations and one speed on all GPUs."""
    gpus, rate = int(job["num_GPUs"]), 1.0 / float(job["job_iteration_time"])
    rates = {"gpus": gpus, "gpu_type": list(dict.fromkeys(kinds)), "rate": rate}
    row = {"id": name, "gpus": gpus, "rates": rates}
    row["submit_s"] = min(now_s, max(0.0, float(job.get("submit_time", now_s))))
    total = job.get("job_total_iteration")
    return row | ({} if total is None else {"work": float(total)})


def _done(job: Mapping[str, Any]) -> float:
    """Return the iterations that a job has done, estimated from its run time if not given."""
    metrics = job.get("tracked_metrics", {})
    iterations = job.get("job_executed_iteration", metrics.get("iter_num"))
    if iterations is not None:
        return float(iterations)
    served = metrics.get("attained_service", 0.0)
    return float(served) / float(job["job_iteration_time"])
