"""What a method's process may touch, by landlock: read code, write its scratch folder, connect to one port, no more."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Sequence
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 36, 38
_BENEATH, _PORT = 1, 2
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE = 1, 2, 4, 8, 1 << 14
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_CHANGE = _WRITE_FILE | 0x1FF0 | 1 << 13 | _TRUNCATE  # removing and making of every kind, moving between folders
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_BIND_TCP, _CONNECT_TCP = 1, 2
_ABSTRACT_SOCKETS, _SIGNALS = 1, 2

SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/etc", "/dev/urandom", "/dev/random", "/dev/zero")
PROC = ("/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/filesystems", "/sys/devices/system/cpu")
"""Of /proc only what is about this process or the machine: another trial's environment holds that trial's token."""

_LIBC = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, name: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def _landlock(number: int, *arguments: int | bytes | None) -> int:
    passed = [ctypes.c_long(item) if isinstance(item, int) else ctypes.c_char_p(item) for item in arguments]
    _LIBC.syscall.restype = ctypes.c_long
    return _checked(_LIBC.syscall(ctypes.c_long(number), *passed), "landlock")


def die_with(parent: int, signal_number: int) -> None:
    """Have the kernel send us the signal when our parent, the process `parent`, dies; at once if it is dead already."""
    _checked(_LIBC.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal_number), 0, 0, 0), "prctl")
    if os.getppid() != parent:
        os.kill(os.getpid(), signal_number)


def adopt_orphans() -> None:
    """From now on a descendant whose parent dies becomes this process's child, so that none can get away."""
    _checked(_LIBC.prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), 0, 0, 0), "prctl")


def abi() -> int:
    """The kernel's version of landlock; 0: it has none, or it is switched off."""
    try:
        return _landlock(_CREATE_RULESET, None, 0, 1)
    except OSError:
        return 0


def profile() -> str:
    """In words for the record: what protects the rest of the machine from a method."""
    known = abi()
    if not known:
        return "none"
    parts = ["files"] + ["one tcp port"] * (known >= 4) + ["signals"] * (known >= 6)
    return f"landlock abi {known}: {', '.join(parts)}"


def confine(read: Sequence[str | Path], write: Sequence[str | Path], port: int) -> None:
    """Restrict this process and all it starts, for good. Does nothing on a kernel without landlock.

    It may read and execute beneath `read`, besides change beneath `write`, and connect over TCP to `port` alone (from
    landlock 4 on); from 6 on it can neither signal nor reach through abstract sockets any process but its own.
    """
    known = abi()
    if not known:
        return
    _checked(_LIBC.prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), 0, 0, 0), "prctl")
    files = (1 << {1: 13, 2: 14}.get(known, 15)) - 1
    tcp = _CONNECT_TCP | _BIND_TCP if known >= 4 else 0
    scope = _ABSTRACT_SOCKETS | _SIGNALS if known >= 6 else 0
    size = 8 if known < 4 else 16 if known < 6 else 24
    rules = _landlock(_CREATE_RULESET, struct.pack("<QQQ", files, tcp, scope), size, 0)
    for path in read:
        _allow_path(rules, path, _READ & files)
    for path in write:
        _allow_path(rules, path, (_READ | _CHANGE) & files)
    if tcp:
        _landlock(_ADD_RULE, rules, _PORT, struct.pack("<QQ", _CONNECT_TCP, port), 0)
    _landlock(_RESTRICT_SELF, rules, 0)
    os.close(rules)


def _allow_path(rules: int, path: str | Path, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # not on this machine
    if not stat.S_ISDIR(os.fstat(handle).st_mode):
        rights &= _OF_FILES
    _landlock(_ADD_RULE, rules, _BENEATH, struct.pack("<Qi", rights, handle), 0)
    os.close(handle)
