"""What an untrusted process prints: kept up to a limit, in memory, whatever it does."""

from __future__ import annotations

import fcntl
import os

from suite.child.wire import printable

LOG_BYTES = 64 << 10


class Log:
    """A memory file that can't grow: writing past its end fails, and neither kills the writer nor fills a disk."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("log", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, LOG_BYTES)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL)

    def text(self) -> str:
        """What was printed so far, lines of printable letters. The writer chose every one: show it, never act on it."""
        data = os.pread(self.fd, LOG_BYTES, 0).rstrip(b"\0")
        cut = "\n[cut: more than 64 KiB]" if len(data) == LOG_BYTES else ""
        return printable(data.decode(errors="replace"), kept="\n\t") + cut

    def close(self) -> None:
        os.close(self.fd)
