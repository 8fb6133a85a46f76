"""Workloads of the simulator Batsim: jobs with a submission, resources and a profile.

See ``docs/input-workload.rst`` in Batsim's repository. A profile of type ``delay``, which Batsim 5
calls ``DelayProfile``, lasts for its delay on any machine, and so does a sequence of such profiles
(``composed``, ``SequentialCompositionProfile``). How long another profile lasts depends on a
platform that a workload does not describe.
"""

from collections.abc import Iterator, Sequence
from math import inf, nan
from pathlib import Path

import msgspec

from ronda.instances.base import Count, NonNegative
from ronda.instances.cluster import NodeGroup
from ronda.instances.errors import InputError, printable, short
from ronda.instances.files.storage import label, unpack
from ronda.instances.traces.logs.instance import TIMED_OUT
from ronda.instances.traces.logs.runs import EVERY, LogFilter, LogRun, RowAccount
from ronda.instances.traces.logs.seen_cluster import SeenCluster, seen_groups
from ronda.instances.traces.logs.stream import opened
from ronda.instances.traces.logs.swf import PROCESSOR
from ronda.instances.traces.rigid import Machine, machine_of

DELAYS = ("delay", "DelayProfile")
SEQUENCES = ("composed", "SequentialCompositionProfile")


class _BatsimJob(msgspec.Struct):
    id: str | int
    subtime: NonNegative
    res: Count
    profile: str | int
    walltime: float = -1.0


class _BatsimProfile(msgspec.Struct):
    type: str
    delay: NonNegative | None = None
    repeat: Count = 1
    seq: list[str] = []


class _BatsimFile(msgspec.Struct):
    nb_res: Count
    jobs: list[_BatsimJob]
    profiles: dict[str, _BatsimProfile]


class BatsimLog:
    """A workload of Batsim, whose jobs start when they are submitted, as far as it says.

    Raises
    ------
    InputError
        If the file is no workload, an id is there twice, or a job has a profile that is not there.
    """

    def __init__(self, path: Path, account: RowAccount, part: LogFilter = EVERY) -> None:
        self.account, self.part, self.place = account, part, label(path)
        with opened(path) as file:
            text = unpack(file.read(), self.place)
        try:
            self.read = msgspec.json.decode(text, type=_BatsimFile)
        except (msgspec.DecodeError, ValueError) as error:
            raise InputError(self.place, str(error), "a workload of Batsim, whole") from None

    def runs(self) -> Iterator[LogRun]:
        """Yield a run for each job whose profile says how long it lasts; count the others."""
        told = set[str]()
        for k, job in enumerate(self.read.jobs):
            place, name = f"jobs[{k}]", str(job.id)
            self.account.rows += 1
            if name in told:
                raise InputError(f"{self.place}, {place}.id", repr(name), "each id once")
            told.add(name)
            lasts_s = self._lasting(str(job.profile), f"{self.place}, {place}.profile")
            limit_s = job.walltime if job.walltime > 0 else inf
            run = LogRun(
                place=place,
                job=name,
                state=TIMED_OUT if lasts_s > limit_s else "COMPLETED",
                submit_s=job.subtime,
                start_s=job.subtime,
                end_s=job.subtime + min(lasts_s, limit_s),
                ran_s=lasts_s,
                limit_s=limit_s,
                name=str(job.profile),
                gpus=float(job.res),
                asked=(),
                supposed=True,
            )
            why = self.part.leaves_out(run)
            if why is None and job.res > self.read.nb_res:
                why = f"more than the {self.read.nb_res:,} resources of the workload"
            elif why is None and not lasts_s >= 0:
                kind = printable(short(self.read.profiles[str(job.profile)].type, 60))
                why = f"a profile of type {kind}, whose time depends on a platform"
            if why is not None:
                self.account.drop(why, place)
                continue
            self.account.until_s = max(self.account.until_s, run.known_s)
            yield run

    def _lasting(self, name: str, place: str, inside: Sequence[str] = ()) -> float:
        """Return the seconds of a profile; NaN if they depend on a platform."""
        profile = self.read.profiles.get(name)
        if profile is None or name in inside or (profile.type in DELAYS and profile.delay is None):
            odd = "without seconds" if profile and name not in inside else "inside itself"
            found = f"a profile {odd}" if profile else "no such profile"
            raise InputError(place, f"{name!r}, {found}", "one of the profiles")
        if profile.type in SEQUENCES:
            each = (self._lasting(part, place, (*inside, name)) for part in profile.seq)
            return profile.repeat * sum(each)
        return nan if profile.delay is None or profile.type not in DELAYS else profile.delay

    def cluster(self, described: Sequence[Machine]) -> SeenCluster:
        """Return the resources as nodes of one GPU, of the first type in `described`."""
        kind = described[0].gpu.name if described else PROCESSOR
        group = NodeGroup(
            name="nodes1",
            count=self.read.nb_res,
            gpus_per_node=1,
            gpu_type=kind,
            partition="default",
            host_idle_w=machine_of(kind, described).host_idle_w,
        )
        notes = [f"cluster: the {self.read.nb_res:,} resources of the workload; each is a GPU"]
        return seen_groups([group], {}, {"default": ("default", ())}, described, notes)
