"""Processes by more than their number, which the system gives again to others."""

from __future__ import annotations

import os
import socket

import psutil


def myself() -> tuple[str, int, float]:
    """This process: name of the machine, number, and when it began in seconds since the epoch."""
    return socket.gethostname(), os.getpid(), psutil.Process().create_time()


def is_alive(host: str, pid: int, born: float) -> bool:
    """Whether a process still runs. One of another machine is taken to: nobody here can tell."""
    if host != socket.gethostname():
        return True
    try:
        return abs(psutil.Process(pid).create_time() - born) < 1
    except psutil.Error:
        return False
