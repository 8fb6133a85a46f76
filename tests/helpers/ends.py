"""Wait until something is so, with patience for a busy machine."""

import time

import psutil


def wait_until(holds, seconds=120.0):
    """Wait until a condition holds."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it never happened"
        time.sleep(0.02)


def is_gone(pid):
    """Return whether a process has ended, be it that nobody has asked how."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
