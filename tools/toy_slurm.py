"""A real Slurm on this machine alone: all its daemons, nodes whose GPUs are made up, one folder.

For tests and studies it is a context manager::

    with toy_slurm(folder, nodes=4, gpus=8, PriorityType="priority/multifactor") as toy:
        job = toy.submit("--gres=gpu:a100:2", "--time=10")
        toy.wait(lambda: toy.job(job)["job_state"] == "RUNNING")

and for readers who have no cluster, ``python -m tools.toy_slurm up DIR``, ``env DIR`` and ``down
DIR``. It needs root and Debian's packages slurm-wlm and munge, but neither systemd nor slurmdbd.
All that it writes stands in the folder. Daemons carry `MARK` in their environment, and processes
of jobs name the folder's slurm.conf there. A cluster's processes are found by that alone: none is
left behind, and none of another cluster is stopped.

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
from datetime import datetime
from pathlib import Path
from typing import Any

MARK, PART = "TOY_SLURM", "TOY_SLURM_PART"
"""Environment variables of daemons: their folder; ``munged``, ``controller``, ``watch``, a node."""

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
ProctrackType=proctrack/linuxproc
SlurmdParameters=config_overrides
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
    if absent := [name for name in PROGRAMS if shutil.which(name, path=_PATH) is None]:
        return f"a toy Slurm needs {', '.join(absent)} of Debian's packages slurm-wlm and munge"
    asked = subprocess.run(("slurmd", "-V"), env={"PATH": _PATH}, capture_output=True, text=True)
    if (version := asked.stdout.split()[-1]) >= "23":
        return f"a toy Slurm reads the JSON of Slurm 22.05, and this is {version}"
    return None


class ToySlurm:
    """The cluster of a folder: what may be asked of it, and what may happen to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.conf = self.folder / "slurm.conf"
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "SBATCH", MARK))}
        self.env = kept | {"PATH": _PATH, "SLURM_CONF": str(self.conf)}

    def run(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a program as a client; return status and text, or raise if it fails (``check``)."""
        given: dict[str, Any] = {"env": self.env, "cwd": self.folder, "timeout": 60}
        done = subprocess.run(words, capture_output=True, text=True, **given)
        if check and done.returncode:
            raise RuntimeError(f"{shlex.join(words)}: status {done.returncode}: {done.stderr}")
        return done

    def settle(self, seconds: float) -> None:
        """Wait until slurmctld has run for some seconds."""
        config = self.run("scontrol", "show", "config").stdout
        (began,) = re.findall(r"^BOOT_TIME\s*=\s*(\S+)", config, re.MULTILINE)
        rest_s = datetime.fromisoformat(began).timestamp() + seconds - time.time()
        time.sleep(max(0.0, rest_s))

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
        """Ask ``condition`` until it holds; return the seconds, or raise and show the cluster."""
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

    def start(
        self, nodes: int, gpus: int, cred_expire: int, settings: dict[str, Any], until: int = 0
    ) -> None:
        """Start all daemons anew, as `toy_slurm` says, and wait until every node is idle."""
        if (reason := missing()) is not None:
            raise RuntimeError(reason)
        if not re.fullmatch(r"[\w/.+-]{1,80}", str(self.folder)):
            raise RuntimeError(f"a path of Slurm is short and without blanks: {self.folder}")
        self.stop()
        for name in ("state", "spool"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
            (self.folder / name).mkdir(parents=True)
        for pattern in ("*.log", "*.out", "jobcomp.txt", "munge.*"):
            for path in self.folder.glob(pattern):
                path.unlink()
        if until:  # this process takes the cluster down when that one has ended
            self._launch("watch", *_HERE, "watch", str(self.folder), str(until))
        self._configure(nodes, gpus, cred_expire, settings)
        (self.folder / "munge.key").write_bytes(secrets.token_bytes(1024))
        (self.folder / "munge.key").chmod(0o400)
        files = {"key-file": "key", "pid-file": "pid", "seed-file": "seed", "socket": "socket"}
        words = [f"--{word}={self.folder}/munge.{end}" for word, end in files.items()]
        self._launch("munged", "munged", "--foreground", "--force", *words)
        self.wait((self.folder / "munge.socket").exists)
        self.start_controller()
        for i in range(nodes):
            self.node_start(f"n{i + 1}")
        shown = ("sinfo", "--noheader", "--Node", "--format=%T")
        self.wait(lambda: set(self.run(*shown).stdout.split()) == {"idle"})

    def stop(self) -> None:
        """Kill all processes of this cluster, those of its jobs too."""
        self._kill()

    def start_controller(self) -> None:
        """Start slurmctld on the state that it has stored, and wait until it answers."""
        self._launch("controller", "slurmctld", "-D", "-f", str(self.conf))
        while "is UP" not in self.run("scontrol", "ping", check=False).stdout:
            if not self._pids("controller"):
                raise RuntimeError("slurmctld ended: " + "; ".join(self._lines("controller.out")))
            time.sleep(0.1)

    def stop_controller(self, kill: bool = False) -> None:
        """Stop slurmctld; ``kill`` leaves it no time to store its last changes."""
        self._kill("controller", number=signal.SIGKILL if kill else signal.SIGTERM)

    def restart_controller(self, kill: bool = False) -> None:
        """Stop slurmctld and start it again."""
        self.stop_controller(kill)
        self.start_controller()

    @contextlib.contextmanager
    def paused_controller(self) -> Iterator[None]:
        """Let slurmctld hang for the time of a block: it neither answers nor refuses."""
        (pid,) = self._pids("controller", "slurmctld")
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def node_start(self, node: str) -> None:
        """Start a node's slurmd; where no job lives on the node, as after a boot."""
        if not self._pids(node, "slurmd"):
            (self.folder / "spool" / node).mkdir(exist_ok=True)
            # A node that Slurm powers up is awake only once it reports a boot.
            boot = () if self._pids(node) else ("-b",)
            self._launch(node, "slurmd", "-D", "-f", str(self.conf), "-N", node, *boot)

    def node_stop(self, node: str) -> None:
        """Let a node die: kill its slurmd, the steps there and the processes of their jobs."""
        for name in ("slurmd", "slurmstepd", ""):  # what outlived a job would tell of its end
            self._kill(node, name)

    def kill_slurmd(self, node: str) -> None:
        """Kill a node's slurmd alone: the jobs there go on."""
        self._kill(node, "slurmd")

    def _configure(self, nodes: int, gpus: int, cred_expire: int, settings: dict[str, Any]) -> None:
        """Write slurm.conf, gres.conf, the made-up GPUs and the power programs."""
        host, port = socket.gethostname().split(".")[0], _free_ports(nodes + 1)
        shape = f"CPUs={8 * gpus} RealMemory=512000 Gres=gpu:a100:{gpus}"
        at = f"NodeHostname={host} NodeAddr=127.0.0.1"
        values: dict[str, Any] = {
            "SlurmctldHost": f"{host}(127.0.0.1)",
            "SlurmctldPort": port,
            "AuthInfo": f"socket={self.folder}/munge.socket,cred_expire={cred_expire}",
            "NodeName": [f"n{i} {at} Port={port + i} {shape}" for i in range(1, nodes + 1)],
        }
        lines = SETTINGS.format(folder=self.folder).splitlines()
        values |= dict(line.split("=", 1) for line in lines)  # nodes before partitions
        with self.conf.open("w", encoding="utf-8") as conf:
            for name, value in (values | settings).items():
                for each in value if isinstance(value, list) else [value]:
                    conf.write(f"{name}={each}\n")
        gres = f"Name=gpu Type=a100 File={self.folder}/gpu[0-{gpus - 1}]\n"
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

    def _pids(self, part: str = "", name: str = "") -> set[int]:
        """Return the living processes of this cluster but this one: all, or those of a part."""
        found = set()
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has just ended
                pairs = (entry / "environ").read_bytes().decode(errors="replace").split("\0")
                env = {key: value for key, _, value in (each.partition("=") for each in pairs)}
                if env.get(MARK) != str(self.folder):  # it may be of a job
                    own = env.get("SLURM_CONF") == str(self.conf)
                    env[PART] = env.get("SLURMD_NODENAME", "") * own
                name_of = (entry / "comm").read_text(encoding="utf-8").strip()
                if env[PART] and part in ("", env[PART]) and name in ("", name_of):
                    found.add(int(entry.name))
        return found - {os.getpid()}

    def _lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def _kill(self, part: str = "", name: str = "", number: int = signal.SIGKILL) -> None:
        """Signal processes of this cluster until none of them lives."""
        told: set[int] = set()
        end = time.monotonic() + 30
        while alive := self._pids(part, name):
            for pid in alive - told:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            told |= alive
            if time.monotonic() > end:
                raise TimeoutError(f"processes of {self.folder} live on: {alive}")
            time.sleep(0.02)


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
    nodes, gpus
        Number of nodes, each of 500 GiB and 8 cores a GPU, and of a node's GPUs, of type ``a100``.
    cred_expire
        Seconds for which a job's credential holds, at least 5: a requeued job waits one more.
    **conf
        Settings of slurm.conf in place of `SETTINGS`, such as ``SlurmdTimeout=30``; a list gives
        several lines (``PartitionName=["a Nodes=n1", "b Nodes=n2"]``).

    Raises
    ------
    RuntimeError, TimeoutError
        If `missing` says that none can run here, or it does not come up.
    """
    toy = ToySlurm(folder)
    try:
        toy.start(nodes, gpus, cred_expire, conf, os.getpid())
        yield toy
    finally:
        toy.stop()


def main(words: list[str] | None = None) -> int:
    """Carry out one command of the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.toy_slurm", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    commands = ("up", "env", "down", "power-up", "power-down", "watch")
    parser.add_argument("command", choices=commands, metavar="up|env|down|power-up|power-down")
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("which", nargs="?", default="", help="nodes of power-*, such as n[1-2]")
    parser.add_argument("--nodes", type=int, default=4, help="nodes to bring up (4)")
    parser.add_argument("--gpus", type=int, default=8, help="GPUs of a node (8)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="setting")
    options = parser.parse_args(words)
    toy, command = ToySlurm(options.folder), options.command
    if command == "up":
        settings = dict(each.split("=", 1) for each in options.set)
        try:
            toy.start(options.nodes, options.gpus, 5, settings)
        except (RuntimeError, TimeoutError) as error:
            toy.stop()
            sys.stderr.write(f"{error}\n")
            return 2
    elif command == "env":
        print(f"export SLURM_CONF={shlex.quote(str(toy.conf))}")
    elif command.startswith("power-"):
        for node in toy.run("scontrol", "show", "hostnames", options.which).stdout.split():
            with (toy.folder / "power.log").open("a", encoding="utf-8") as log:
                log.write(f"{time.time():.3f} {command.removeprefix('power-')} {node}\n")
            (toy.node_start if command == "power-up" else toy.node_stop)(node)
    else:
        with contextlib.suppress(ProcessLookupError):
            if command == "watch":
                select.select([os.pidfd_open(int(options.which))], [], [])
        toy.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
