"""Slurm's text: what ``scontrol show``, ``sacctmgr -P`` and ``sshare -P`` print, in sections.

Times of text have no zone: they are read in that of the machine.
"""

import re
from collections.abc import Iterator

from ronda.hosts.clusters.read import Text
from ronda.hosts.clusters.slurm.amounts import minutes, moment, tres, word, words
from ronda.hosts.clusters.slurm.documents import Fields
from ronda.instances.errors import InputError
from ronda.instances.rules.problem import show
from ronda.instances.traces.slurm_cells import memory_gib, number

_HEADS = {
    "JobId": "jobs",
    "NodeName": "nodes",
    "PartitionName": "partitions",
    "ReservationName": "reservations",
    "LicenseName": "licences",
    "SwitchName": "racks",
    "BlockName": "racks",
}
_SAME = (
    *("JobId", "ArrayJobId", "HetJobId", "HetJobOffset", "Account", "Partition", "Priority"),
    *("JobState", "Dependency", "Requeue", "Features", "Licenses", "SegmentSize", "CpusPerTres"),
    *("TresPerJob", "TresPerNode", "TresPerSocket", "TresPerTask"),
)
"""Keys of jobs that JSON has as well, in lower case with underscores."""

_JOB = {re.sub("(?<!^)(?=[A-Z])", "_", key).lower(): key for key in _SAME} | {
    "array_max_tasks": "ArrayTaskThrottle",
    "name": "JobName",
    "qos": "QOS",
    "state_reason": "Reason",
    "restart_cnt": "Restarts",
    "pre_sus_time": "SecsPreSuspend",
    "cpus": "NumCPUs",
    "tasks": "NumTasks",
    "cpus_per_task": "CPUs/Task",
    "minimum_cpus_per_node": "MinCPUsNode",
    "nodes": "NodeList",
    "required_nodes": "ReqNodeList",
    "excluded_nodes": "ExcNodeList",
    "resv_name": "Reservation",
    "memory_per_tres": "MemPerTres",
}
_TIMES = {
    "submit_time": "SubmitTime",
    "eligible_time": "EligibleTime",
    "start_time": "StartTime",
    "end_time": "EndTime",
    "suspend_time": "SuspendTime",
    "last_sched_evaluation": "LastSchedEval",
}


def text_sections(file: Text) -> Iterator[tuple[str, list[Fields]]]:
    """Yield the sections of a text; raise an InputError if it is none that is known."""
    lines = [line for line in re.split(r"\r?\n", file.text.decode()) if line.strip()]
    head = lines[0].strip() if lines else ""
    if head.startswith("Current Association Manager state"):
        yield from _association_manager(lines)
    elif "|" in head:
        yield _table(lines, file.place)
    elif re.match(r"No (jobs|nodes|reservations|licenses|partitions|topology)", head):
        yield "jobs", []
    elif (key := head.partition("=")[0]) in _HEADS:
        kind = _HEADS[key]
        yield kind, [_MAKERS.get(kind, _fields)(each) for each in _records(lines, file.place)]
    else:
        found = f"text that begins with {show(head, 40)}" if head else "an empty file"
        raise InputError(file.place, found, "a Slurm command's JSON, -o or -P output (see --help)")


def _records(lines: list[str], place: str) -> Iterator[str]:
    """Yield each record as one line; without -o, its further lines are indented."""
    record = ""
    for line in lines:
        if line.partition("=")[0] in _HEADS:
            if record:
                yield record
            record = line
        elif line[0].isspace() or record.startswith("JobId="):  # or a comment's next line
            record += " " + line.strip()
        else:
            raise InputError(place, show(line, 40), "a record such as those before it")
    yield record


def _fields(record: str) -> Fields:
    """Return the fields of a record; of a key that comes twice, the first one.

    A comment may hold what looks like a field. Behind it, the last one is Slurm's own.
    """
    parts = re.split(r"(?:^|\s+)([A-Za-z][\w:/.-]*)=", record)
    keys, values = parts[1::2], [value.strip() for value in parts[2::2]]
    pairs = list(zip(keys, values, strict=True))
    own = 1 + keys.index("Comment") if "Comment" in keys else len(keys)
    return dict(pairs[own:]) | dict(reversed(pairs[:own]))


def _job(record: str) -> Fields:
    read = _fields(record)
    job: Fields = {field: word(read.get(key)) for field, key in _JOB.items()}
    job |= {field: moment(read.get(key, "")) for field, key in _TIMES.items()}
    code = job["state_reason"].partition(",")[0]  # behind it Slurm may put a description
    least, _, most = read.get("NumNodes", "").partition("-")
    task = read.get("ArrayTaskId", "")
    alone = task.isdigit()
    limit = read.get("TimeLimit", "")
    ran = minutes(read.get("RunTime", ""))
    job |= {
        # The only description that stands in place of its reason.
        "state_reason": "Resources" if code == "Nodes_required_for_job_are_DOWN" else code,
        "comment": read.get("Comment", ""),
        "user_name": re.sub(r"\(.*", "", read.get("UserId", "")),
        "node_count": least,
        "max_nodes": most,
        "array_task_id": task if alone else None,
        "array_task_string": None if alone else task,
        "time_limit": minutes(limit) if word(limit) else None,
        "tasks_per_node": read.get("NtasksPerN:B:S:C", "").partition(":")[0],
        "tres_req_str": read.get("ReqTRES") or read.get("TRES"),
        "tres_alloc_str": read.get("AllocTRES") or read.get("TRES"),
        "shared": "none" if read.get("OverSubscribe") == "NO" else "",
        "required_switches": read.get("Switches", "").partition("@")[0],
        "memory_per_cpu": _mib(read.get("MinMemoryCPU")),
        "memory_per_node": _mib(read.get("MinMemoryNode")),
        "on": re.findall(r"\sNodes=(\S+) CPU_IDs=(\S+) Mem=(\d+) GRES=(\S*)", record),
    }
    if ran and job["start_time"] is not None:  # else it is a forecast
        job["read_at"] = job["start_time"] + ran * 60
    return job


def _mib(text: str | None) -> float | None:
    found = memory_gib(text or "")
    return None if found is None else found * 1024


def _node(record: str) -> Fields:
    read = _fields(record)
    return {
        "name": read.get("NodeName"),
        "state": read.get("State", "").split("+"),
        "reason": re.sub(r"\s*\[[^\[]*\]$", "", read.get("Reason", "")),
        "cpus": read.get("CPUEfctv") or read.get("CPUTot"),
        "real_memory": read.get("RealMemory"),
        "specialized_memory": read.get("MemSpecLimit"),
        "gres": word(read.get("Gres")),
        "features": words(read.get("ActiveFeatures") or read.get("AvailableFeatures")),
        "partitions": words(read.get("Partitions")),
        "resume_after": moment(read.get("ResumeAfterTime", "")),
        "last_busy": moment(read.get("LastBusyTime", "")),
    }


def _partition(record: str) -> Fields:
    read = _fields(record)
    return {
        "name": read.get("PartitionName"),
        "nodes": read.get("Nodes"),
        "max_time": minutes(read.get("MaxTime", "")),
        "max_nodes": number(read.get("MaxNodes")),
        "qos": word(read.get("QoS")),
        "state": read.get("State"),
        "allowed": [read.get(f"Allow{of}") for of in ("Accounts", "Groups", "Qos")],
        "denied": [read.get(f"Deny{of}") for of in ("Accounts", "Qos")],
    }


def _reservation(record: str) -> Fields:
    read = _fields(record)
    return {
        "name": read.get("ReservationName"),
        "start_time": moment(read.get("StartTime", "")),
        "end_time": moment(read.get("EndTime", "")),
        "node_list": word(read.get("Nodes")),
        "licenses": word(read.get("Licenses")),
        "flags": words(read.get("Flags")),
    }


def _table(lines: list[str], place: str) -> tuple[str, list[Fields]]:
    """Return the rows of a table with bars, each with its depth in the tree of accounts."""
    head = [name.strip() for name in lines[0].split("|")]
    if "RawShares" in head:
        kind = "shares"
    elif "Account" in head and "User" in head:
        kind = "associations"
    elif "Name" in head and "Priority" in head:
        kind = "qos"
    else:
        expected = "that of sacctmgr show assoc or qos -P, or sshare -P -l"
        raise InputError(place, f"a table of {show(lines[0], 60)}", expected)
    rows = []
    for number_, line in enumerate(lines[1:], start=2):
        cells = line.split("|")
        if len(cells) not in (len(head), len(head) - 1):
            found = f"{len(cells)} cells"
            raise InputError(f"{place}, row {number_}", found, f"{len(head)}, as the header has")
        rows.append(_row(dict(zip(head, cells, strict=False))))
    return kind, rows


def _row(read: dict[str, str]) -> Fields:
    names = ("Account", "User", "Partition", "ParentName", "Name", "Share", "RawShares", "Priority")
    account = read.get("Account", "")
    row: Fields = {name: read[name].strip() for name in names if name in read}
    row["depth"] = len(account) - len(account.lstrip())
    for column, cell in read.items():
        if "TRES" in column:
            row[column] = tres(cell)
        elif "Jobs" in column:
            row[column] = number(cell)
        elif "Wall" in column:
            row[column] = minutes(cell)
    return row


def _association_manager(lines: list[str]) -> Iterator[tuple[str, list[Fields]]]:
    """Yield the associations and QOS; a limit such as ``8(2)`` has what is used in brackets."""
    kinds: dict[str, list[Fields]] = {"associations": [], "qos": []}
    row: Fields = {}
    for line in lines:
        read = {key: re.sub(r"\(.*?\)", "", value) for key, value in _fields(line).items()}
        if line.startswith("ClusterName="):
            keys = {"Account": "Account", "User": "UserName", "Partition": "Partition"}
            row = {column: read.get(key, "") for column, key in keys.items()}
            kinds["associations"].append(row)
        elif line.startswith("QOS="):
            row = {"Name": read["QOS"]}
            kinds["qos"].append(row)
        for key, value in read.items() if row else ():
            column = key.removesuffix("PJ") if key != "MaxTRESPN" else "MaxTRESPerNode"
            if "TRES" in key:
                row.setdefault(column, tres(value))
            elif key in ("GrpJobs", "MaxJobs", "MaxWallPJ", "MaxJobsPU", "MaxJobsPA"):
                row.setdefault(column, number(value))
            elif key in ("Priority", "ParentAccount"):
                row.setdefault({"ParentAccount": "ParentName"}.get(key, key), value)
            elif key.startswith("SharesRaw"):
                row["Share"] = value.partition("/")[0]
    yield from kinds.items()


_MAKERS = {
    "jobs": _job,
    "nodes": _node,
    "partitions": _partition,
    "reservations": _reservation,
}
"""What makes a record of each kind; those of other kinds are their fields."""
