"""The origin of a number: the machine, the versions and the commit that produced it."""

import os
import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import ronda


@cache
def host() -> dict[str, Any]:
    """Return the kind of machine (architecture, processor, cores, memory, Python) without names."""
    import psutil

    return {
        "machine": platform.machine(),
        "system": platform.system(),
        "cpu": _cpu(),
        "cores": os.cpu_count() or 1,
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "python": platform.python_version(),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()


@cache
def commit() -> str:
    """Return the commit of the checkout that ronda runs from, or ronda's version.

    The commit of a checkout with uncommitted changes ends with ``+changes``.
    """
    root = Path(ronda.__file__).resolve().parent.parent
    head = _git(root, "rev-parse", "--short=12", "HEAD") if (root / ".git").exists() else None
    if head is None:
        return f"v{ronda.__version__}"
    changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    return f"{head}+changes" if changed else head


def _git(root: Path, *words: str) -> str | None:
    command = ["git", "-C", str(root), "-c", f"safe.directory={root}", *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
