"""What /proc says of a process and its threads."""

from __future__ import annotations

import os


def state(path: str) -> str:
    """The letter of a process or thread in its stat file; X if it is gone."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return "X"
    try:
        return chr(os.read(fd, 512).rpartition(b") ")[2][0])
    except (OSError, IndexError):
        return "X"
    finally:
        os.close(fd)


def stopped(pid: int) -> bool:
    """Whether every thread is stopped; a dead process is not."""
    folder = f"/proc/{pid}/task"
    try:
        threads = os.listdir(folder)
    except OSError:
        return False
    states = {state(f"{folder}/{thread}/stat") for thread in threads}
    return "T" in states and states <= set("TZX")
