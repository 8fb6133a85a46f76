"""A tiny model of a Slurm: what becomes of a snapshot by commands, before anything starts or ends.

Behaviour is that of 22.05, as `tests/hosts/slurm/test_facts.py` sees it on a real one.
"""

from dataclasses import replace as with_

from msgspec.structs import replace

from ronda.hosts.slurm.tools import SlurmAnswer, SlurmTools

AGAIN_S = 121.0
"""Seconds for which a requeued job waits (``cred_expire`` and one)."""


class PlayedTools(SlurmTools):
    """Programs of a Slurm that carries commands out, and starts nothing by itself.

    `refuses` says of a line of scontrol that Slurm refuses it.
    """

    def __init__(self, found, refuses=lambda line: False):
        self.found, self.refuses, self.lines = found, refuses, []

    def read(self):
        """Return the cluster, three seconds later."""
        self.found = with_(self.found, now_s=self.found.now_s + 3.0)
        return self.found

    def give(self, command):
        """Carry a command out."""
        self.lines.append(command.line)
        if self.refuses(command.line):
            return SlurmAnswer(1, "refused")
        self.found = carried_out(self.found, [command])
        return SlurmAnswer(0, "")


def carried_out(found, commands):
    """Return a snapshot after some commands; those that Slurm refuses change nothing."""
    jobs = {job.id: job for job in found.jobs}
    nodes = {node.name: node for node in found.nodes}
    for command in commands:
        verb, *words = command.words
        fields = dict(word.partition("=")[::2] for word in words)
        if verb == "release":
            jobs[words[0]] = replace(jobs[words[0]], rank=1.0)
        elif verb == "requeue":
            jobs[words[-1]] = _requeued(jobs[words[-1]], found.now_s)
        elif "NodeName" in fields:
            down = fields["State"] == "POWER_DOWN"
            node = nodes[fields["NodeName"]]
            nodes[node.name] = replace(node, power="going down" if down else "waking")
        else:
            for name in fields["JobId"].split(","):
                if name in jobs:
                    jobs[name] = _updated(jobs[name], fields, found.now_s)
    return with_(found, jobs=tuple(jobs.values()), nodes=tuple(nodes.values()))


def _requeued(job, now_s):
    """Return a running job that waits again, as if submitted now."""
    if not job.on:
        return job
    fields = {"submit_s": now_s, "eligible_s": now_s + AGAIN_S, "restarts": job.restarts + 1}
    return replace(job, on={}, held={}, start_s=None, **fields)


def _updated(job, fields, now_s):
    """Return a waiting job with other fields; a held one takes no priority."""
    if job.on or (job.blocked is not None and "Priority" in fields):
        return job
    if "Priority" in fields:
        return replace(job, rank=float(fields["Priority"]))
    if "Gres" in fields:
        job = replace(job, per=job.per | {"gpus": float(fields["Gres"].rpartition(":")[2])})
    if "TimeLimit" in fields:
        job = replace(job, limit_s=60.0 * int(fields["TimeLimit"]))
    if "ReqNodeList" in fields:
        named = tuple(filter(None, fields["ReqNodeList"].split(",")))
        free = job.reason == "BadConstraints" and not named
        blocked, reason = (None, None) if free else (job.blocked, job.reason)
        job = replace(job, nodes=named, blocked=blocked, reason=reason)
    if "StartTime" in fields:
        later = float(fields["StartTime"].partition("+")[2] or 0)
        job = replace(job, eligible_s=now_s + later)
    return job
