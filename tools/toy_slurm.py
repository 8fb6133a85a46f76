"""A real Slurm on this machine alone: all its daemons, nodes whose GPUs are made up, one folder.

For tests and studies it is a context manager::

    with toy_slurm(folder, nodes=4, gpus=8, PriorityType="priority/multifactor") as toy:
        job = toy.submit("--gres=gpu:a100:2", "--time=10")
        toy.wait(lambda: toy.job(job)["job_state"] == "RUNNING")

and for readers who have no cluster, ``python -m tools.toy_slurm up DIR``, ``env DIR`` and ``down
DIR``. It needs root, and the programs of Debian's packages slurm-wlm and munge (`missing` says
which is not there), but neither systemd nor slurmdbd. Key, settings, sockets, state and logs stand
in the folder. Daemons carry `MARK` in their environment, and processes of jobs name the folder's
slurm.conf there. A cluster's processes are found by that alone: none is left behind, and none of
another cluster is stopped.

Only the standard library is imported: Slurm runs this file as its power programs.
"""

import argparse
import contextlib
import json
import os
import re
import secrets
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

MARK = "TOY_SLURM"
"""Environment variable of a cluster's daemons: its folder."""

PART = "TOY_SLURM_PART"
"""Environment variable of a cluster's daemons: ``munged``, ``controller``, ``watch`` or a node."""

PROGRAMS = ("munged", "slurmctld", "slurmd", "scontrol", "sinfo", "squeue", "sbatch", "setsid")

SETTINGS = """\
ClusterName=toy
AuthType=auth/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/controller.log
SlurmdLogFile={folder}/%n.log
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/jobcomp.txt
SuspendProgram={folder}/power-down
ResumeProgram={folder}/power-up
SuspendTime=864000
SuspendTimeout=5
ResumeTimeout=60
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
MailProg=/bin/true
SlurmdParameters=config_overrides
DebugFlags=NO_CONF_HASH
ReturnToService=2
SlurmdTimeout=10
KillWait=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=1000
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0
PriorityType=priority/basic
GresTypes=gpu
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=60 State=UP
"""
"""The lines of slurm.conf that every cluster has unless it is given others."""

_HERE = (sys.executable, "-I", str(Path(__file__).resolve()))
_PATH = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"


def missing() -> str | None:
    """Return in one line why no toy cluster can run here, or None if one can."""
    if os.geteuid() != 0:
        return "a toy Slurm needs root, since slurmd starts jobs as their users"
    absent = [name for name in PROGRAMS if shutil.which(name, path=_PATH) is None]
    if absent:
        return f"a toy Slurm needs {', '.join(absent)} of Debian's packages slurm-wlm and munge"
    return None


class ToySlurm:
    """A cluster in a folder: what may be asked of it, and what may happen to it.

    Parameters
    ----------
    folder
        Folder in which a cluster was, or will be, started.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.conf = self.folder / "slurm.conf"
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "SBATCH", MARK))}
        self.env = kept | {"PATH": _PATH, "SLURM_CONF": str(self.conf)}

    # What a user of the cluster does.

    def run(
        self, *words: str, check: bool = True, timeout_s: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a program as a client of this cluster; return its status and output, as text.

        Raises
        ------
        RuntimeError
            If it fails and ``check`` holds.
        subprocess.TimeoutExpired
            If it takes longer than ``timeout_s`` seconds.
        """
        done = subprocess.run(
            words, env=self.env, cwd=self.folder, capture_output=True, text=True, timeout=timeout_s
        )
        if check and done.returncode:
            raise RuntimeError(f"{shlex.join(words)}: status {done.returncode}: {done.stderr}")
        return done

    def submit(self, *options: str, command: str = "sleep 600") -> int:
        """Submit a batch job that runs ``command`` in a shell; return its id."""
        job = self.run("sbatch", "--parsable", "--output=out-%j", *options, f"--wrap={command}")
        return int(job.stdout)

    def jobs(self) -> dict[int, dict[str, Any]]:
        """Return what ``squeue --json`` says, by job id; it includes jobs that ended of late."""
        return {j["job_id"]: j for j in json.loads(self.run("squeue", "--json").stdout)["jobs"]}

    def job(self, job: int) -> dict[str, Any]:
        """Return what ``squeue --json`` says of one job."""
        return self.jobs()[job]

    def nodes(self) -> dict[str, dict[str, Any]]:
        """Return what ``sinfo --json`` says, by node name."""
        return {n["name"]: n for n in json.loads(self.run("sinfo", "--json").stdout)["nodes"]}

    def wait(self, condition: Callable[[], Any], within_s: float = 60) -> float:
        """Ask ``condition`` until it holds; return the seconds that passed.

        Raises
        ------
        TimeoutError
            If it does not hold within ``within_s`` seconds; the text shows jobs and nodes.
        """
        begin = time.monotonic()
        while not condition():
            if time.monotonic() - begin > within_s:
                shown = [self.run(name, "-a", check=False).stdout for name in ("squeue", "sinfo")]
                raise TimeoutError(f"not within {within_s} s:\n" + "\n".join(shown))
            time.sleep(0.1)
        return time.monotonic() - begin

    def completions(self) -> list[dict[str, str]]:
        """Return the records of jobcomp/filetxt in order: one an end of a job, one a requeue."""
        lines = self._lines("jobcomp.txt")
        return [dict(re.findall(r"(?:^| )(\w+)=(.*?)(?= \w+=| *$)", line)) for line in lines]

    def power_log(self) -> list[tuple[float, str, str]]:
        """Return each call of the power programs: epoch seconds, ``up`` or ``down``, node."""
        calls = map(str.split, self._lines("power.log"))
        return [(float(at), verb, node) for at, verb, node in calls]

    # What happens to a cluster.

    def start(self, nodes: int, gpus: int, cred_expire: int, settings: dict[str, Any]) -> None:
        """Start all daemons anew, as `toy_slurm` says, and wait until every node is idle."""
        for name in ("state", "spool"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
            (self.folder / name).mkdir(parents=True)
        for pattern in ("*.log", "*.out", "jobcomp.txt", "munge.*"):
            for path in self.folder.glob(pattern):
                path.unlink()
        self._configure(nodes, gpus, cred_expire, settings)
        (self.folder / "munge.key").write_bytes(secrets.token_bytes(1024))
        (self.folder / "munge.key").chmod(0o400)
        files = [f"--{name}={self.folder}/munge.{name[:-5]}" for name in ("key-file", "pid-file")]
        files += [f"--seed-file={self.folder}/munge.seed", f"--socket={self.folder}/munge.socket"]
        self._launch("munged", "munged", "--foreground", "--force", "--num-threads=2", *files)
        self.wait((self.folder / "munge.socket").exists)
        self.start_controller()
        for i in range(nodes):
            self.node_start(f"n{i + 1}")
        self.wait(lambda: all(self._is_idle(node) for node in self.nodes().values()))

    def stop(self) -> None:
        """Kill all processes of this cluster, those of its jobs too."""
        self._signal(lambda p: True)

    def start_controller(self) -> None:
        """Start slurmctld on the state that it has stored, and wait until it answers."""
        self._launch("controller", "slurmctld", "-D", "-f", str(self.conf))
        self.wait(lambda: "is UP" in self.run("scontrol", "ping", check=False).stdout)

    def stop_controller(self, kill: bool = False) -> None:
        """Stop slurmctld; ``kill`` leaves it no time to store its last changes."""
        self._signal(lambda p: p.part == "controller", signal.SIGKILL if kill else signal.SIGTERM)

    def restart_controller(self, kill: bool = False) -> None:
        """Stop slurmctld and start it again."""
        self.stop_controller(kill)
        self.start_controller()

    @contextlib.contextmanager
    def paused_controller(self) -> Iterator[None]:
        """Let slurmctld hang for the time of a block: it neither answers nor refuses."""
        pids = [p.pid for p in self._processes() if p.name == "slurmctld"]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def node_start(self, node: str) -> None:
        """Start a node's slurmd; where no job lives on the node, as after a boot."""
        own = [p for p in self._processes() if p.part == node]
        if not any(p.name == "slurmd" for p in own):
            (self.folder / "spool" / node).mkdir(exist_ok=True)
            # A node that Slurm powers up is awake only once it reports a boot.
            words = ("slurmd", "-D", "-f", str(self.conf), "-N", node)
            self._launch(node, *words, *(() if own else ("-b",)))

    def node_stop(self, node: str) -> None:
        """Let a node die: kill its slurmd, the steps there and the processes of their jobs."""
        self._signal(lambda p: p.part == node)

    def kill_slurmd(self, node: str) -> None:
        """Kill a node's slurmd alone: the jobs there go on."""
        self._signal(lambda p: p.part == node and p.name == "slurmd")

    @staticmethod
    def _is_idle(node: dict[str, Any]) -> bool:
        """Return whether a node has answered and waits for work."""
        return bool(node["state"] == "idle" and not node["state_flags"])

    def _configure(self, nodes: int, gpus: int, cred_expire: int, settings: dict[str, Any]) -> None:
        """Write slurm.conf, gres.conf, the made-up GPUs and the power programs."""
        host, port = socket.gethostname().split(".")[0], _free_ports(nodes + 1)
        shape = f"CPUs={8 * gpus or 8} RealMemory=512000" + f" Gres=gpu:a100:{gpus}" * (gpus > 0)
        at = f"NodeHostname={host} NodeAddr=127.0.0.1"
        defaults = dict(line.split("=", 1) for line in SETTINGS.splitlines())
        values: dict[str, Any] = {
            name: value.format(folder=self.folder) for name, value in defaults.items()
        } | {
            "SlurmctldHost": f"{host}(127.0.0.1)",
            "SlurmctldPort": port,
            "AuthInfo": f"socket={self.folder}/munge.socket,cred_expire={cred_expire}",
            "NodeName": [f"n{i} {at} Port={port + i} {shape}" for i in range(1, nodes + 1)],
        }
        partitions = {"PartitionName": settings.get("PartitionName", values.pop("PartitionName"))}
        with self.conf.open("w", encoding="utf-8") as conf:
            for name, value in (values | settings | partitions).items():
                for each in value if isinstance(value, list) else [value]:
                    conf.write(f"{name}={each}\n")
        files = f"{self.folder}/gpu" + (f"[0-{gpus - 1}]" if gpus > 1 else "0")
        gres = f"Name=gpu Type=a100 File={files}\n" if gpus else ""
        (self.folder / "gres.conf").write_text(gres, encoding="utf-8")
        for gpu in range(gpus):  # character devices
            with contextlib.suppress(FileExistsError):
                (self.folder / f"gpu{gpu}").symlink_to("/dev/null")
        for verb in ("power-up", "power-down"):
            words = shlex.join([*_HERE, verb, str(self.folder)])
            (self.folder / verb).write_text(f'#!/bin/sh\nexec {words} "$1"\n', encoding="utf-8")
            (self.folder / verb).chmod(0o755)

    def _launch(self, part: str, *words: str) -> None:
        """Start a daemon in a session of its own, and not as a child of this process."""
        env = self.env | {MARK: str(self.folder), PART: part}
        with (self.folder / f"{part}.out").open("a", encoding="utf-8") as out:
            given: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": out}
            subprocess.run(("setsid", "--fork", *words), env=env, cwd="/", check=True, **given)

    def _processes(self) -> list["_Process"]:
        """Return the living processes of this cluster but this one."""
        return [p for entry in Path("/proc").glob("[0-9]*") if (p := self._own(entry)) is not None]

    def _own(self, entry: Path) -> "_Process | None":
        """Return the process of a folder of /proc if it belongs to this cluster."""
        try:
            pairs = (entry / "environ").read_text(encoding="utf-8", errors="replace").split("\0")
            name = (entry / "comm").read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return None  # it has just ended
        env = {key: value for key, _, value in (each.partition("=") for each in pairs)}
        job = "SLURM_JOB_ID" in env and env.get("SLURM_CONF") == str(self.conf)
        if (not job and env.get(MARK) != str(self.folder)) or int(entry.name) == os.getpid():
            return None
        return _Process(int(entry.name), name, env["SLURMD_NODENAME"] if job else env[PART])

    def _lines(self, name: str) -> list[str]:
        """Return the lines of a log that may not be there yet."""
        path = self.folder / name
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def _signal(
        self, which: Callable[["_Process"], bool], number: signal.Signals = signal.SIGKILL
    ) -> None:
        """Signal processes of this cluster until none of them lives."""
        told: set[int] = set()
        end = time.monotonic() + 30
        while alive := [p for p in self._processes() if which(p)]:
            for pid in {p.pid for p in alive} - told:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
                told.add(pid)
            if time.monotonic() > end:
                raise TimeoutError(f"processes of {self.folder} live on: {alive}")
            time.sleep(0.02)


class _Process(NamedTuple):
    """A living process of a cluster: where it belongs is its node, or what it does."""

    pid: int
    name: str
    part: str


def _free_ports(count: int) -> int:
    """Return the first of ``count`` free ports in a row, below those of outgoing connections."""
    while True:
        first = 20000 + secrets.randbelow(10000)
        with contextlib.suppress(OSError), contextlib.ExitStack() as open_ones:
            for port in range(first, first + count):
                open_ones.enter_context(socket.socket()).bind(("", port))
            return first


@contextlib.contextmanager
def toy_slurm(
    folder: Path, nodes: int = 4, gpus: int = 8, cred_expire: int = 5, **conf: Any
) -> Iterator[ToySlurm]:
    """Start a cluster whose nodes ``n1``, ``n2``, … are idle; stop it at the end.

    It is stopped, too, if this process is killed: another one watches for that.

    Parameters
    ----------
    folder
        Its folder, made if need be; the state that an earlier cluster left there is removed.
    nodes
        Number of nodes, each of 500 GiB, and of 8 cores a GPU.
    gpus
        Number of GPUs of a node; their type is ``a100``.
    cred_expire
        Seconds for which a job's credential holds, at least 5: a requeued job waits one more.
    **conf
        Settings of slurm.conf in place of `SETTINGS`, such as ``SlurmdTimeout=30``; a list gives
        several lines (``PartitionName=["a Nodes=n1", "b Nodes=n2"]``).

    Raises
    ------
    RuntimeError
        If `missing` says that none can run here.
    TimeoutError
        If it does not come up.
    """
    if (reason := missing()) is not None:
        raise RuntimeError(reason)
    folder.mkdir(parents=True, exist_ok=True)
    toy = ToySlurm(folder)
    toy.stop()
    try:
        toy._launch("watch", *_HERE, "watch", str(toy.folder), str(os.getpid()))
        toy.start(nodes, gpus, cred_expire, conf)
        yield toy
    finally:
        toy.stop()


def main(words: list[str] | None = None) -> int:
    """Carry out one command of the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.toy_slurm", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    hidden = ("power-up", "power-down", "watch")
    verbs = ("up", "env", "down", "node-stop", "node-start")
    parser.add_argument("command", choices=verbs + hidden, metavar="|".join(verbs))
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("which", nargs="?", default="", help="nodes to stop or start, as n[1-2]")
    parser.add_argument("--nodes", type=int, default=4, help="nodes to bring up (4)")
    parser.add_argument("--gpus", type=int, default=8, help="GPUs of a node (8)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="setting")
    options = parser.parse_args(words)
    toy, command = ToySlurm(options.folder), options.command
    if (reason := missing()) is not None:
        sys.stderr.write(f"{reason}\n")
        return 2
    if command == "up":
        toy.folder.mkdir(parents=True, exist_ok=True)
        toy.stop()
        toy.start(options.nodes, options.gpus, 5, dict(each.split("=", 1) for each in options.set))
    elif command == "env":
        print(f"export SLURM_CONF={shlex.quote(str(toy.conf))}")
    elif command == "down":
        toy.stop()
    elif command == "watch":
        with contextlib.suppress(ProcessLookupError):
            select.select([os.pidfd_open(int(options.which))], [], [])
        toy.stop()
    else:
        for node in toy.run("scontrol", "show", "hostnames", options.which).stdout.split():
            if command in hidden:
                with (toy.folder / "power.log").open("a", encoding="utf-8") as log:
                    log.write(f"{time.time():.3f} {command.removeprefix('power-')} {node}\n")
            (toy.node_start if command in ("node-start", "power-up") else toy.node_stop)(node)
    return 0


if __name__ == "__main__":
    sys.exit(main())
