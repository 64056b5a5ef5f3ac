"""Landlock: a list of what may be read and written; everything else, and TCP but to one port, the kernel refuses."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from . import syscalls

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
RULE_PATH_BENEATH, RULE_PORT = 1, 2
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, TRUNCATE, IOCTL_DEV = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14, 1 << 15
READ = READ_FILE | READ_DIR
CHANGE = 0x1FF0 | 1 << 13 | WRITE_FILE | TRUNCATE  # removing and making of every kind, moving between folders
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
"""All rights to files that a version of landlock knows; later versions add none."""
BIND_TCP, CONNECT_TCP = 1, 2
ABSTRACT_SOCKETS_AND_SIGNALS = 0b11


def version() -> int:
    """The kernel's version of landlock, 0 if it has none."""
    try:
        return syscalls.syscall(CREATE_RULESET, None, 0, 1)
    except OSError:
        return 0


def restrict(read: Iterable[str], write: Iterable[str], execute: bool, port: int | None = None) -> str:
    """Let this process read only beneath `read` and `write`, and change only beneath `write`; words for the profile.

    Paths that do not exist are left out. `execute` lets it run what it may read. From version 4 on it may connect over
    TCP to `port` alone; from 6 on it reaches through signals and abstract sockets no process but what it starts. The
    caller has set no_new_privs.
    """
    known = version()
    if not known:
        return "none"
    rights = RIGHTS[min(known, 5)]
    attributes = struct.pack(
        "<QQQ", rights, BIND_TCP | CONNECT_TCP if known >= 4 else 0, ABSTRACT_SOCKETS_AND_SIGNALS if known >= 6 else 0
    )
    size = 8 if known < 4 else 16 if known < 6 else 24
    ruleset = syscalls.syscall(CREATE_RULESET, ctypes.c_char_p(attributes), size, 0)
    reading = READ | (EXECUTE if execute else 0)
    for path in read:
        _allow(ruleset, path, reading & rights)
    for path in write:
        _allow(ruleset, path, (READ | CHANGE) & rights)
    if port is not None and known >= 4:
        rule = struct.pack("<QQ", CONNECT_TCP, port)
        syscalls.syscall(ADD_RULE, ruleset, RULE_PORT, ctypes.c_char_p(rule), 0)
    syscalls.syscall(RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)
    return f"abi {known}"


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not stat.S_ISDIR(os.fstat(beneath).st_mode):
        rights &= OF_FILES
    rule = struct.pack("<Qi", rights, beneath)
    syscalls.syscall(ADD_RULE, ruleset, RULE_PATH_BENEATH, ctypes.c_char_p(rule), 0)
    os.close(beneath)
