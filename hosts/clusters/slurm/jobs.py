"""Jobs of Slurm as jobs of a snapshot."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Literal

from msgspec.structs import replace

from ronda.hosts.clusters.slurm.amounts import tres, word, words
from ronda.hosts.clusters.slurm.documents import Fields, at
from ronda.instances.errors import InputError
from ronda.instances.job import After, Slices
from ronda.instances.rules.problem import show, too_many
from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import CPU, MEMORY, EndedJob, Noted, SeenJob
from ronda.instances.traces.hostlists import host_names, numbers
from ronda.instances.traces.slurm_cells import ONGOING, gpus_of, gres, number

_ENDED = {"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED"}
_ENDED |= {"BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY", "REVOKED"}
_RUNS = {"RUNNING", "SUSPENDED"}
_WAITS = {"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
_HOLDS = {
    "JobHeldUser": "it is held by its user (scontrol release)",
    "JobHeldAdmin": "it is held by an administrator (scontrol release)",
}
_NEVER = ("DependencyNeverSatisfied", "BadConstraints", "InvalidAccount", "InvalidQOS")
_HOLDS |= {reason: f"Slurm says {reason}" for reason in _NEVER}
_WHEN: dict[str, Literal["ok", "notok", "any", "start"]] = {
    "after": "start",
    "afterany": "any",
    "afterok": "ok",
    "afternotok": "notok",
    "aftercorr": "ok",
    "afterburstbuffer": "any",
}
_KNOWN = {"gpu", "cpu", "mem"}
_AFTER = re.compile(r"(\w+):([\w+]+?)(?:_(\*|\d+))?(?:\+(\d+))?(?:\((\w+)\))?")


def seen_jobs(
    records: Sequence[Fields], has: Mapping[str, Mapping[str, float]], noted: Noted, place: str
) -> tuple[list[SeenJob], list[EndedJob]]:
    """Return the live jobs of some records, with a job for each task of an array, and the others.

    `has` says what each node has, by name.
    """
    jobs: list[SeenJob] = []
    ended: list[EndedJob] = []
    asked: list[str] = []
    for record in records:
        if number(record.get("job_id")) is None:
            raise InputError(place, f"a job without a job_id: {show(record)}", "its number")
        maker = _Maker(record, noted)
        runs = _runs(record, f"{place}, {maker.name}, job_state")
        if runs is None:
            noted.add("finished job, left out", maker.name)
            ended.append(maker.ended())
        elif runs:
            jobs.append(maker.running(has, place))
        else:
            jobs += maker.tasks(maker.waiting(), place)
        asked += [word(record.get("dependency"))] * (len(jobs) - len(asked))
        for problem in too_many("jobs", "jobs", len(jobs)):
            raise InputError(place, problem.found, problem.expected)
    alike = defaultdict[tuple[str | None, str | None], list[SeenJob]](list)
    arrays = defaultdict[str, list[str]](list)
    for job in jobs:
        alike[job.user, job.name].append(job)
        arrays[job.id.partition("_")[0]].append(job.id)
    for k, (job, text) in enumerate(zip(jobs, asked, strict=True)):
        if text and not job.on:
            jobs[k] = _after(job, text, alike[job.user, job.name], arrays, noted)
    return jobs, ended


def _runs(record: Fields, place: str) -> bool | None:
    """Return whether a job runs or waits; None if it has ended."""
    states = {part.upper() for part in words(record.get("job_state"))}
    base = states & (_ENDED | _RUNS | {"PENDING"})
    if len(base) > 1 or not states & (_ENDED | ONGOING | _WAITS):
        found = show(sorted(states))
        raise InputError(place, found, "one state such as RUNNING or PENDING, and flags of it")
    if states & ONGOING:
        return True
    return None if states & _ENDED else False


class _Maker:
    """A maker of a job from its record."""

    def __init__(self, record: Fields, noted: Noted) -> None:
        self.record, self.noted, self.told = record, noted, True
        self.number = int(number(record.get("job_id")) or 0)
        self.name = f"job {self.number}"

    def get(self, field: str) -> float | None:
        """Return a number of the record, None if it is unset or 0."""
        return number(self.record.get(field)) or None

    def text(self, field: str) -> str:
        return word(self.record.get(field))

    def note(self, what: str, words: str = "", *, told: bool = True) -> None:
        self.noted.add(what, f"{self.name} ({words})" if words else self.name)
        self.told &= told

    def ended(self) -> EndedJob:
        """Return a job that has ended; its times are those of its last run."""
        end_s, pieces = self.get("end_time") or 0.0, int(self.get("node_count") or 1)
        since_s = self.get("suspend_time") or self.get("start_time") or end_s
        states = {state.upper() for state in words(self.record.get("job_state"))}
        return EndedJob(
            id=self.id,
            name=self.text("name") or None,
            user=self.text("user_name") or None,
            gpus=round(pieces * self._pieces_on(pieces).get(GPUS, 0.0)),
            ran_s=max(0.0, end_s - since_s) + (self.get("pre_sus_time") or 0.0),
            whole="COMPLETED" in states and not self.get("restart_cnt"),
        )

    def waiting(self) -> SeenJob:
        """Return a waiting job; its start_time is a forecast."""
        reason = self.text("state_reason")
        held = self.record.get("hold") is True or number(self.record.get("priority")) == 0
        blocked = _HOLDS.get(reason, "it is held: its priority is 0" if held else None)
        count, per = self._pieces()
        nodes = self.hosts("required_nodes")
        if len(nodes) > count:
            count = len(nodes)  # a node list means all of it
        elif nodes and len(nodes) < count:
            what = "job that needs some nodes by name and others, the names left out"
            self.note(what, told=False)
            nodes = []
        most, least = self.get("max_nodes"), None
        if most is not None and self.own_nodes and most > count:
            least, count = count, int(most)
        return replace(
            self._common(),
            count=count,
            least=least,
            per=per,
            own_nodes=self.own_nodes,
            nodes=tuple(nodes),
            told=self.told,
            blocked=blocked,
            reason=reason or None,
        )

    def running(self, has: Mapping[str, Mapping[str, float]], place: str) -> SeenJob:
        """Return a job that holds nodes, with what it holds on each of them."""
        nodes = self.hosts("nodes") or [name for name, _ in self._told()]
        if not nodes:
            found = f"state {show(words(self.record.get('job_state')))} and no nodes"
            raise InputError(f"{place}, {self.name}", found, "the nodes that it runs on")
        job = self._common()
        held = self._held(nodes, has)
        first, *others = held.values()
        alike = all(other == first for other in others)
        for state in words(self.record.get("job_state")):
            if state.upper() in ("SUSPENDED", "COMPLETING"):
                self.note(f"{state.lower()} job, taken to hold what it has")
        start_s = self.get("start_time")
        if start_s is None:
            self.note("running job without a start, taken to have run since it was submitted")
            start_s = job.submit_s
        return replace(
            job,
            start_s=start_s,
            ends_s=self.get("end_time"),
            count=len(nodes),
            per=first if alike else self._pieces_on(len(nodes)),
            own_nodes=True,
            on=dict.fromkeys(nodes, 1),
            held={} if alike else held,
        )

    def tasks(self, job: SeenJob, place: str) -> Iterator[SeenJob]:
        """Yield a job for each task that the record of a job array stands for."""
        tasks, _, most = self.text("array_task_string").partition("%")
        if number(self.record.get("array_task_id")) is not None:
            tasks = ""
        if "..." in tasks:  # the last number has lost digits
            self.note("job array whose list of tasks is cut off (SLURM_BITSTR_LEN=0 prints all)")
            tasks = tasks.partition("...")[0].rpartition(",")[0]
        if not tasks:
            yield job
            return
        array = f"{self.get('array_job_id') or self.number:.0f}"
        limit = number(most) or job.array_most
        listed = f"{place}, {self.name}, array_task_string"
        for task in numbers(tasks.strip("[],"), listed, "jobs"):
            yield replace(
                job,
                id=f"{array}_{int(task)}",
                job_array=array if limit else None,
                array_most=int(limit) if limit else None,
            )

    def hosts(self, field: str) -> list[str]:
        """Return the names in a host list of the record."""
        return host_names(text, f"{self.name}, {field}") if (text := self.text(field)) else []

    @property
    def own_nodes(self) -> bool:
        """Whether pieces are what the job has on each of its nodes."""
        return self._by_node or self.exclusive

    @property
    def exclusive(self) -> bool:
        """Whether the job asks for nodes to itself, or its partition gives only whole ones."""
        told = [self.record.get("shared"), self.record.get("exclusive")]
        flags = [each if isinstance(each, list) else [each] for each in told]
        return any(flag in ("none", "true") for each in flags for flag in each)

    @property
    def id(self) -> str:
        """Its id, with its task of a job array, or its part of a heterogeneous job."""
        array, task = self.get("array_job_id"), number(self.record.get("array_task_id"))
        if array is not None and task is not None:
            return f"{array:.0f}_{task:.0f}"
        if (het := self.get("het_job_id")) is not None:
            return f"{het:.0f}+{number(self.record.get('het_job_offset')) or 0:.0f}"
        return str(self.number)

    def _common(self) -> SeenJob:
        record, array = self.record, self.get("array_job_id")
        if "+" in self.id:
            self.note("part of a heterogeneous job, taken as a job of its own")
        features, types = self.text("features"), [kind for kind in self._gpus() if kind]
        if len(types) > 1:
            self.note("job with GPUs of several types, taken to be of any of them", told=False)
        simple = re.fullmatch(r"[\w.:/-]+(?:[&,][\w.:/-]+)*", features)
        if features and not simple:
            what = "job with alternatives of features, which are left out"
            self.note(what, features, told=False)
        if self.get("required_switches"):
            self.note("job that prefers few switches, which is left out")
        segment, limit = self.get("segment_size"), self.get("time_limit")
        array_most = None if array is None else self.get("array_max_tasks")
        return SeenJob(
            id=self.id,
            name=self.text("name") or None,
            user=self.text("user_name") or None,
            tenant=self.text("account") or None,
            comment=comment if isinstance(comment := record.get("comment"), str) else "",
            partitions=tuple(words(record.get("partition"))),
            priority=self.text("qos") or None,
            rank=number(record.get("priority")),
            submit_s=self.get("submit_time") or 0.0,
            eligible_s=self.get("eligible_time"),
            limit_s=limit * 60 if limit else None,
            exclusive=self.exclusive,
            gpu_types=tuple(types),
            features=tuple(re.split("[&,]", features)) if simple else (),
            not_nodes=tuple(self.hosts("excluded_nodes")),
            reservation=self.text("resv_name") or None,
            job_array=f"{array:.0f}" if array_most else None,
            array_most=int(array_most) if array_most else None,
            licences=self._licences(),
            slices=Slices(nodes=int(segment), within="block") if segment else None,
            preemptible=record.get("requeue") not in (False, "0", 0),
            per_gpu=bool(self._count("cpus_per_tres") or self._count("memory_per_tres")),
            restarts=int(self.get("restart_cnt") or 0),
        )

    def _licences(self) -> dict[str, float]:
        text, found = self.text("licenses"), dict[str, float]()
        if re.search(r"[;|]", text):
            self.note("job with a choice of licences, which is left out", text)
            return found
        for entry in words(text):
            name, _, count = entry.partition(":")
            found[name] = found.get(name, 0.0) + (number(count) or 1.0)
        return found

    def _gpus(self) -> dict[str | None, float]:
        """Return the GPUs that the job asks for by type, in whatever field it says so."""
        asks = ("tres_per_node", "tres_per_task", "tres_per_socket", "tres_per_job", "tres_req_str")
        return next(filter(None, (gpus_of(self.record.get(field)) for field in asks)), {})

    def _count(self, field: str) -> float:
        """Return the number of GPUs in a field, of all types."""
        return sum(gpus_of(self.record.get(field)).values())

    @property
    def _by_node(self) -> bool:
        count, most = self.get("node_count") or 0.0, self.get("max_nodes")
        nodes = count > 1 and (most == count or not self._tasks)
        return bool(self._count("tres_per_node") or self._count("tres_per_socket") or nodes)

    @property
    def _tasks(self) -> int:
        """The tasks that may be placed one by one, or 0 if they may not."""
        by_node = self._count("tres_per_node") or self.get("memory_per_node")
        return 0 if by_node or self.get("tasks_per_node") else int(self.get("tasks") or 0)

    def _pieces(self) -> tuple[int, dict[str, float]]:
        """Return the number of pieces that a waiting job asks for, and what each of them holds."""
        count, per_node = int(self.get("node_count") or 1), self.get("tasks_per_node")
        total, tasks = self._count("tres_per_job"), self.get("tasks") or 1.0
        if self._tasks > 1 and (self._count("tres_per_task") or not self.own_nodes):
            count = self._tasks
        elif count == 1 and per_node:
            count = ceil(tasks / per_node)
        if total % count:
            self.note("job whose GPUs are no equal pieces, taken one by one", told=False)
            count = int(total)
        if number(self.record.get("memory_per_node")) == 0 and not self.get("memory_per_cpu"):
            self.note("job with memory 0, all of its nodes where Slurm counts it, taken as none")
        return count, self._pieces_on(count)

    def _pieces_on(self, count: int) -> dict[str, float]:
        """Return what each of a number of equal pieces holds."""
        asks = tres(self.record.get("tres_req_str"))
        each = (
            self._count("tres_per_node")
            or self._count("tres_per_socket") * (self.get("sockets_per_node") or 1.0)
            or self._count("tres_per_task") * (self.get("tasks") or 1.0) / count
            or (self._count("tres_per_job") or asks.get(GPUS, 0.0)) / count
        )
        cores = (self.get("cpus") or asks.get(CPU) or 0.0) / count
        least = (self.get("minimum_cpus_per_node") or 1.0) if self.own_nodes else 1.0
        cores = max(cores, each * self._count("cpus_per_tres"), least if cores else 0.0)
        mib = self.get("memory_per_node") or (self.get("memory_per_cpu") or 0.0) * max(1.0, cores)
        mib = max(mib, each * self._count("memory_per_tres"))
        per = {GPUS: each, CPU: cores, MEMORY: mib / 1024}
        others = {of: n for of, _, n in gres(self.text("tres_per_node")) if of not in _KNOWN}
        return {of: amount for of, amount in (per | others).items() if amount > 0}

    def _told(self) -> list[tuple[str, dict[str, float]]]:
        """Return what the record says that the job holds on each node."""
        found: list[tuple[str, dict[str, float]]] = []
        for hosts, cpus, memory, devices in self.record.get("on") or ():
            cores = len(list(numbers(cpus, self.name)))
            amounts = {CPU: float(cores), MEMORY: float(memory) / 1024}
            amounts[GPUS] = sum(gpus_of(devices).values())
            found += [(name, dict(amounts)) for name in host_names(hosts, self.name)]
        entries = at(self.record, "job_resources/nodes/allocation")
        older = at(self.record, "job_resources/allocated_nodes")
        for entry in entries if isinstance(entries, list) else older or ():
            if isinstance(entry, dict):
                cpus_, memory_ = number(at(entry, "cpus/count")), at(entry, "memory/allocated")
                mib = number(entry.get("memory_allocated", memory_))
                own = {} if cpus_ is None else {CPU: cpus_}
                own |= {} if mib is None else {MEMORY: mib / 1024}
                found.append((word(entry.get("name") or entry.get("nodename")), own))
        return found

    def _held(
        self, nodes: Sequence[str], has: Mapping[str, Mapping[str, float]]
    ) -> dict[str, dict[str, float]]:
        """Return what the job holds on each node: as told, or its share of what it has in all."""
        if self.exclusive:
            return {name: dict(has.get(name, {})) for name in nodes}
        total = tres(self.record.get("tres_alloc_str")) or tres(self.record.get("tres_req_str"))
        asks = self._pieces_on(len(nodes))
        whole = {of: total.get(of, asks.get(of, 0.0) * len(nodes)) for of in (GPUS, CPU, MEMORY)}
        held = {name: {of: n / len(nodes) for of, n in whole.items()} for name in nodes}
        detail = self.record.get("gres_detail")
        if isinstance(detail, list) and len(detail) == len(nodes):
            for name, text in zip(nodes, detail, strict=True):
                held[name][GPUS] = sum(gpus_of(text).values())
                held[name] |= {of: n for of, _, n in gres(word(text)) if of != "gpu"}
        elif whole[GPUS] % len(nodes):
            self.note("running job whose GPUs on each node are not told, shared out")
            for k, name in enumerate(nodes):
                held[name][GPUS] = (whole[GPUS] + k) // len(nodes)
        for name, amounts in self._told():
            if name in held:
                held[name] |= amounts
        return {name: {of: n for of, n in own.items() if n > 0} for name, own in held.items()}


def _after(
    job: SeenJob,
    text: str,
    alike: Sequence[SeenJob],
    arrays: Mapping[str, Sequence[str]],
    noted: Noted,
) -> SeenJob:
    """Return a waiting job with the jobs that it waits for, which must not have come yet."""
    after: list[After] = []
    blocked = job.blocked
    for part in re.split("[,?]", text):
        found = _AFTER.fullmatch(part.strip())
        if part.startswith("singleton"):
            own = job.submit_s, job.id
            before = [other.id for other in alike if other.on or (other.submit_s, other.id) < own]
            after += [After(job=other, when="any") for other in before]
        elif found is None or found[1] not in _WHEN:
            noted.add("job with a dependency that is not read", f"job {job.id} ({part.strip()})")
        elif found[5] == "failed":
            blocked = blocked or f"it waits for a job that has ended otherwise: {part.strip()}"
        elif found[5] != "fulfilled":
            kind, array, task, delay = found.groups()[:4]
            part_ = job.id.partition("_")[2] if kind == "aftercorr" else (task or "*")
            names = arrays.get(array, [array]) if part_ in ("*", "") else [f"{array}_{part_}"]
            when, wait_s = _WHEN[kind], 60.0 * float(delay or 0)
            after += [After(job=name, when=when, delay_s=wait_s) for name in names]
    unique = tuple(dict.fromkeys(each for each in after if each.job != job.id))
    return replace(job, after=unique, after_all="?" not in text, blocked=blocked)
