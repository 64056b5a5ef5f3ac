"""Facts of this machine that the judge needs: the processor's name and the size of its caches."""

from __future__ import annotations

import re
from pathlib import Path

UNKNOWN_CACHE = 64 << 20
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name as the kernel reports it."""
    found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(), re.MULTILINE)
    return found.group(1).strip() if found else "unknown cpu"


def cache_bytes(cpus: tuple[int, ...], system: Path = Path("/sys/devices/system/cpu")) -> int:
    """Bytes of all data caches of these cpus, a shared one counted once; 64 MiB if the kernel says nothing."""
    caches: dict[tuple[int, str], int] = {}
    for cpu in cpus:
        for folder in (system / f"cpu{cpu}" / "cache").glob("index*"):
            kind, size = (folder / "type").read_text().strip(), (folder / "size").read_text().strip()
            if kind != "Instruction":
                level, shared = int((folder / "level").read_text()), (folder / "shared_cpu_list").read_text().strip()
                caches[level, shared] = int(size[:-1]) * _UNITS[size[-1]]
    return sum(caches.values()) or UNKNOWN_CACHE
