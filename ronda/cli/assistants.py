"""The questions that assistants may ask of a cluster, over the Model Context Protocol.

The operator names the cluster's files when the server starts; they are read anew for each question.
What comes from a client is the id of a job, numbers and words of lists, or the text of a round: no
path, no code, no module.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import msgspec
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

import ronda
from ronda.cli.clusters import InFront, decoded, in_front
from ronda.hosts.serving.allowed import served
from ronda.instances.errors import InputError, RondaError
from ronda.instances.tables.table import Report
from ronda.questions.fits.answer import fit
from ronda.questions.fits.report import fit_report
from ronda.questions.fits.request import JobRequest, submitted
from ronda.questions.queues.answer import queues
from ronda.questions.queues.report import queues_report
from ronda.questions.whatif.answer import whatif
from ronda.questions.whatif.changes import Change, Gpus, PowerCap, WithoutJob
from ronda.questions.whatif.report import whatif_report
from ronda.questions.why.answer import why
from ronda.questions.why.price import price
from ronda.questions.why.replay import queue
from ronda.questions.why.report import why_report
from ronda.solvers.plan_report import plan_report
from ronda.solvers.registry import policy as made_policy

MOST_BYTES = 32 << 20
"""The largest text of a round that a client may send."""

MOST_S = 10.0
"""The longest time limit of a plan, in seconds."""

ABOUT = (
    "Questions about a GPU cluster: why a job waits, when it can start and what would help; who "
    "holds and borrows GPUs; which jobs should run now; what more GPUs or less power would change. "
    "Nothing is changed. Starts are bounds: no scheduler can start a job sooner without stopping "
    "others. `round` may hold the JSON text of a round of ronda in place of the cluster."
)


class Questions:
    """The questions about one cluster.

    Parameters
    ----------
    files, system, now_s
        The files of the cluster, as in `ronda.cli.clusters.in_front`.
    """

    def __init__(self, files: Sequence[str], system: str | None, now_s: float | None) -> None:
        self._files, self._system, self._now_s = files, system, now_s

    def why(self, job: str, round: str = "") -> dict[str, Any]:
        """Say why a waiting job waits, when it could start, and what would help."""
        front = self._front(round)
        seen, found = front.snapshot, why(front.snapshot, job)
        priced = None if front.round is None else price(front.round, found.reason.name, 1.0)
        return _told(why_report(seen.source, seen, found, priced))

    def fits(self, request: dict[str, Any], round: str = "") -> dict[str, Any]:
        """Say whether a job would run if it was submitted, at which size, and when.

        `request` has "per" (what each piece holds on its node, such as {"gpus": 4, "cpu": 32,
        "memory_gib": 256}), "count" (pieces), "limit_s", and perhaps partitions, gpu_types, user,
        tenant, own_nodes, exclusive.
        """
        try:
            asked = msgspec.convert(request, JobRequest)
        except msgspec.ValidationError as error:
            raise InputError("request", str(error), "the fields of a request") from None
        seen = submitted(self._front(round).snapshot, asked, "request")
        return _told(fit_report(seen.source, seen, fit(seen, asked.id)))

    def jobs(self, round: str = "") -> dict[str, Any]:
        """List the waiting jobs by the host's order, and how many jobs run."""
        seen = self._front(round).snapshot
        waiting = [
            {"id": job.id, "user": job.user, "tenant": job.tenant, "printed": job.reason}
            for job in queue(seen)
        ]
        running = sum(job.start_s is not None for job in seen.jobs)
        return {"waiting": waiting[:500], "waiting_count": len(waiting), "running_count": running}

    def queues(self, round: str = "") -> dict[str, Any]:
        """Say what each tenant holds, is owed, borrows and waits for, and what quota is worth."""
        made = self._front(round).needed_round()
        found = queues(made, made_policy("prices"), deadline=ronda.Deadline(MOST_S))
        return _told(queues_report(made.name, made, found))

    def solve(
        self, policy: str = "prices", seconds: float = 2.0, round: str = ""
    ) -> dict[str, Any]:
        """Decide which waiting jobs should run now, by one of ronda's policies (default prices)."""
        made, rule = self._front(round).needed_round(), made_policy(served(policy))
        limit_s = min(max(seconds, 0.1), MOST_S)
        plan = ronda.solve(made, rule, deadline=limit_s)
        report = plan_report(made.name, made, plan, rule, seed=0, elapsed_s=plan.record.total_s)
        return _told(report) | {
            "allocations": {
                job: {"gpus": given.option.gpus, "nodes": dict(given.placement)}
                for job, given in plan.allocations.items()
            }
        }

    def whatif(
        self,
        gpus: dict[str, int] | None = None,
        power_cap: float | None = None,
        without_jobs: list[str] | None = None,
        round: str = "",
    ) -> dict[str, Any]:
        """Say what more (or fewer) GPUs by type, a share of the power cap, or fewer jobs change."""
        changes: list[Change] = [Gpus(name, more) for name, more in (gpus or {}).items()]
        changes += [] if power_cap is None else [PowerCap(None, power_cap)]
        changes += [WithoutJob(job) for job in without_jobs or ()]
        made = self._front(round).needed_round()
        found = whatif(made, changes, time_limit_s=MOST_S / (2 + len(changes)))
        return _told(whatif_report(made.name, made, found))

    def _front(self, text: str) -> InFront:
        """Return the round in a client's text, or else the operator's cluster as it is now."""
        if not text:
            return in_front(self._files, self._system, self._now_s)
        data = text.encode()
        if len(data) > MOST_BYTES:
            raise InputError("round", f"{len(data)} bytes", f"at most {MOST_BYTES}")
        return decoded(data, "round")


def _told(report: Report) -> dict[str, Any]:
    """Return a report's fields as JSON values, with its sentences."""
    fields: Mapping[str, Any] = msgspec.to_builtins(dict(report.fields), str_keys=True)
    said = [part if isinstance(part, str) else part.markdown() for part in report.parts]
    return {**fields, "said": [*said, *report.notes]}


def server(questions: Questions) -> MCPServer[Any]:
    """Return a server with one tool for each question."""
    made: MCPServer[Any] = MCPServer("ronda", instructions=ABOUT)
    for ask in (
        questions.why,
        questions.fits,
        questions.jobs,
        questions.queues,
        questions.solve,
        questions.whatif,
    ):
        hints = ToolAnnotations(read_only_hint=True, open_world_hint=False)
        made.tool(name=ask.__name__, annotations=hints)(_in_words(ask))
    return made


def _in_words(ask: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Return a question whose errors are one line for the assistant."""

    @wraps(ask)
    def asked(*args: Any, **given: Any) -> dict[str, Any]:
        try:
            return ask(*args, **given)
        except RondaError as error:
            raise ToolError(str(error)) from None

    return asked
