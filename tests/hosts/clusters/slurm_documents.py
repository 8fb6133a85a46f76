"""Documents of Slurm for tests: real ones of 22.05, and the same in the shapes of later versions.

Shapes are those of ``src/plugins/data_parser/v0.0.43/parsers.c`` in Slurm's source.
"""

import json
from pathlib import Path

from ronda.hosts.clusters.slurm.amounts import tres

DATA = Path(__file__).parents[2] / "data" / "slurm"
JSON = ("squeue.json", "sinfo.json")
TEXT = ("jobs.txt", "nodes.txt")
REST = ("partitions.txt", "reservations.txt", "licenses.txt", "topology.txt")
ACCOUNTS = ("associations.txt", "qos.txt", "shares.txt")

_PLAIN = {"job_id", "restart_cnt", "segment_size", "required_switches", "association_id"}


def real(name):
    """Return a JSON document of 22.05."""
    return json.loads((DATA / name).read_text())


def later(value):
    """Return a number as versions since 23.02 write it."""
    return {"set": value is not None, "infinite": False, "number": value or 0}


def later_job(job):
    """Return a job of 22.05 as since 23.11; unset fields are unset, not null or 0."""
    found = {}
    for key, value in job.items():
        number = value is None or (isinstance(value, int) and not isinstance(value, bool))
        found[key] = later(value) if number and key not in _PLAIN else value
    unset = ("memory_per_cpu", "memory_per_node", "cpus_per_task")
    for key in unset:
        found[key] = later(job.get(key) or None)
    found["job_state"] = [job["job_state"]]
    found["shared"] = [job["shared"]] if job.get("shared") else []
    for key in ("tres_per_node", "tres_per_job", "tres_per_task"):
        found[key] = (job.get(key) or "").replace("gres:", "gres/")
    resources = job.get("job_resources") or {}
    found["job_resources"] = {
        "nodes": {
            "list": job["nodes"],
            "allocation": [
                {
                    "name": node["nodename"],
                    "cpus": {"count": job["cpus"] // job["node_count"], "used": 0},
                    "memory": {"allocated": node["memory_allocated"], "used": 0},
                }
                for node in resources.get("allocated_nodes", [])
            ],
        }
    }
    return found


def later_node(node):
    """Return a node of 22.05 as since 23.02."""
    states = [node["state"].upper(), *node["state_flags"]]
    rest = {key: node[key] for key in ("name", "reason", "partitions", "real_memory", "gres")}
    return rest | {
        "state": states,
        "cpus": node["cpus"],
        "effective_cpus": node["cpus"],
        "features": [],
        "active_features": [],
        "resume_after": later(None),
        "last_busy": later(node["last_busy"]),
    }


def sinfo_lines(nodes):
    """Return nodes as `sinfo --json` groups them since 23.11, a line for each partition."""
    for node in nodes:
        for partition in node["partitions"]:
            yield {
                "node": {"state": node["state"]},
                "nodes": {"nodes": [node["name"]], "total": 1},
                "cpus": {"minimum": node["cpus"], "maximum": node["cpus"]},
                "memory": {"minimum": node["real_memory"], "maximum": node["real_memory"]},
                "gres": {"total": node["gres"], "used": ""},
                "features": {"total": "", "active": ""},
                "reason": {"description": node["reason"], "time": 0},
                "partition": {"name": partition, "maximums": {}},
            }


def table(name):
    """Return the rows of a table of `sacctmgr -P`."""
    head, *rows = [line.split("|") for line in (DATA / name).read_text().splitlines()]
    return [dict(zip(head, row, strict=True)) for row in rows]


def tres_list(text):
    """Return a TRES text as JSON lists it."""
    names = {"gpus": ("gres", "gpu"), "a100": ("gres", "gpu:a100"), "cpu": ("cpu", "")}
    rows = [(names.get(of, (of, "")), int(n)) for of, n in tres(text).items()]
    return [{"type": kind, "name": name, "count": n} for (kind, name), n in rows]


def associations():
    """Return the associations as `sacctmgr show assoc --json` writes them since 23.02."""
    parents = {"dept": "root", "nlp": "dept", "vision": "dept"}
    walls = {"1-00:00:00": 1440, "": None}
    return [
        {
            "account": row["Account"],
            "user": row["User"],
            "partition": row["Partition"] or None,
            "parent_account": "" if row["User"] else parents.get(row["Account"], ""),
            "shares_raw": int(row["Share"]),
            "max": {
                "jobs": {
                    "active": later(int(row["MaxJobs"]) if row["MaxJobs"] else None),
                    "per": {
                        "count": later(int(row["GrpJobs"]) if row["GrpJobs"] else None),
                        "wall_clock": later(walls[row["MaxWall"]]),
                    },
                },
                "tres": {
                    "total": tres_list(row["GrpTRES"]),
                    "group": {"minutes": [], "active": tres_list(row["GrpTRESRunMins"])},
                    "per": {"job": tres_list(row["MaxTRES"]), "node": []},
                },
            },
        }
        for row in table("associations.txt")
    ]


def qualities():
    """Return the QOS as `sacctmgr show qos --json` writes them since 23.02."""
    walls = {"7-00:00:00": 10080, "": None}
    return [
        {
            "name": row["Name"],
            "priority": later(int(row["Priority"])),
            "limits": {
                "max": {
                    "active_jobs": {"count": later(None), "accruing": later(None)},
                    "jobs": {
                        "active_jobs": {
                            "per": {
                                "user": later(int(row["MaxJobsPU"] or 0) or None),
                                "account": later(None),
                            }
                        }
                    },
                    "tres": {
                        "total": tres_list(row["GrpTRES"]),
                        "minutes": {"total": [], "per": {"qos": [], "job": []}},
                        "per": {
                            "job": tres_list(row["MaxTRES"]),
                            "user": tres_list(row["MaxTRESPU"]),
                            "account": [],
                            "node": [],
                        },
                    },
                    "wall_clock": {"per": {"job": later(walls[row["MaxWall"]])}},
                }
            },
        }
        for row in table("qos.txt")
    ]


def partitions():
    """Return the partitions as `scontrol show partition --json` writes them since 23.02."""
    listed = {"main": ("c1,n[1-4]", None), "short": ("n[1-2]", 30), "excl": ("n3", None)}
    return [
        {
            "name": name,
            "nodes": {"configured": nodes, "allowed_allocation": "", "total": 2},
            "accounts": {"allowed": "", "deny": ""},
            "groups": {"allowed": ""},
            "qos": {"allowed": "", "deny": "", "assigned": ""},
            "maximums": {
                "time": {"set": most is not None, "infinite": most is None, "number": most}
            },
            "partition": {"state": ["UP"]},
        }
        for name, (nodes, most) in listed.items()
    ]
