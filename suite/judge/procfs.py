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
        return _letter(os.read(fd, 512))
    except (OSError, IndexError):
        return "X"
    finally:
        os.close(fd)


def _letter(stat: bytes) -> str:
    return chr(stat.rpartition(b") ")[2][0])


class Threads:
    """The threads of a process, looked at within microseconds: their stat files are kept open."""

    def __init__(self, pid: int) -> None:
        self._path = f"/proc/{pid}/task"
        self._folder = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        self._files: list[int] = []

    def stopped(self) -> bool:
        """Whether every thread is stopped; a dead process is not."""
        try:
            # A folder has a link for each folder in it. As many as before are the same ones if all can be read.
            if os.fstat(self._folder).st_nlink != len(self._files) + 2:
                self._open()
            states = {_letter(os.pread(file, 512, 0)) for file in self._files}
        except (OSError, IndexError):  # a thread has ended in between
            self._forget()
            return False
        return "T" in states and states <= set("TZX")

    def close(self) -> None:
        self._forget()
        os.close(self._folder)

    def _open(self) -> None:
        self._forget()
        for thread in os.listdir(self._path):
            self._files.append(os.open(f"{self._path}/{thread}/stat", os.O_RDONLY))

    def _forget(self) -> None:
        while self._files:
            os.close(self._files.pop())
