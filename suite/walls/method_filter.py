"""The filter of system calls for a method: processes, threads and TCP are its own affair, all others' are not.

Refused is what a candidate is refused, but for what a search program needs. Of sockets it gets TCP alone: other kinds
of stream (MPTCP, SCTP) and a connection opened by the first data sent are not seen by landlock's list of ports.
"""

from __future__ import annotations

import errno
import socket

from . import seccomp
from .seccomp import FIRST_ARGUMENT as FIRST
from .seccomp import FOURTH_ARGUMENT as FOURTH
from .seccomp import SECOND_ARGUMENT as SECOND
from .seccomp import THIRD_ARGUMENT as THIRD
from .seccomp import step

NEEDED = {
    "socket", "socketpair", "tkill", "timer_create", "timerfd_create", "memfd_create", "pidfd_open",
    "pidfd_send_signal", "setpriority",
}  # fmt: skip
"""Of `seccomp.REFUSED`; some of them are let through for certain arguments only."""
SETSID = (112, 157)
OF_OTHERS = {"sched_setaffinity": (203, 122), "prlimit64": (302, 261)}
"""Their first argument is a process, 0 for the caller."""
SENDING = {"sendto": ((44, 206), FOURTH), "sendmsg": ((46, 211), THIRD), "sendmmsg": ((307, 269), FOURTH)}
"""And which argument holds the flags."""
FASTOPEN = 0x20000000
NEW_NAMESPACES = 0x7E020000
DATAGRAM = 2
"""The bit of a socket's type that datagram and raw sockets have, streams and packets in sequence not."""
KIND = 0xF
"""The bits of a socket's type that say its kind."""
ATTRIBUTES = {
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None),
    "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54), "utime": (132, None), "utimes": (235, None),
    "futimesat": (261, None), "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7), "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "setxattrat": (463, 463), "removexattrat": (466, 466), "file_setattr": (469, 469),
}  # fmt: skip
"""What changes a file that was only opened for reading, or not at all; landlock does not know of it."""


def program(machine: str, *, apart: bool, sessions: bool) -> bytes:
    """The filter. `apart`: processes, mounts and unix sockets of others are out of sight; else it refuses more.

    `sessions`: may start one. Where the kernel shares cpu time between sessions, a new one would end the low priority.
    """
    column = seccomp.MACHINES[machine][0]
    refused = {name: numbers for name, numbers in seccomp.REFUSED.items() if name not in NEEDED}
    parts = [seccomp.header(machine)]
    parts += [seccomp.refuse(numbers[column]) for numbers in refused.values()]
    parts.append(seccomp.refuse(seccomp.CLONE3[column], errno.ENOSYS))  # hides its flags; libc then takes clone
    parts.append(seccomp.when(seccomp.CLONE[column], _none_of(FIRST, NEW_NAMESPACES)))
    parts.append(_when("setpriority", column, _zeros(FIRST, SECOND)))
    parts.append(_when("socket", column, _sockets(unix=apart)))
    for numbers, flags in SENDING.values():
        parts.append(seccomp.when(numbers[column], _none_of(flags, FASTOPEN)))
    if not sessions:
        parts.append(seccomp.refuse(SETSID[column]))
    if not apart:
        parts.append(_when("socketpair", column, _none_of(SECOND, DATAGRAM)))
        parts += [seccomp.when(numbers[column], _zeros(FIRST)) for numbers in OF_OTHERS.values()]
        parts += [seccomp.refuse(numbers[column]) for numbers in ATTRIBUTES.values()]
    return b"".join(parts) + ALLOW


ALLOW = step(seccomp.RETURN, seccomp.ALLOW)
REFUSE = step(seccomp.RETURN, seccomp.ERRNO | errno.EPERM)


def _when(name: str, column: int, test: bytes) -> bytes:
    number = seccomp.REFUSED[name][column]
    return b"" if number is None else seccomp.when(number, test)


def _none_of(argument: int, bits: int) -> bytes:
    return step(seccomp.LOAD, argument) + step(seccomp.JUMP_ANY_BIT, bits, 0, 1) + REFUSE + ALLOW


def _zeros(*arguments: int) -> bytes:
    """All of these arguments are 0."""
    tests = (step(seccomp.LOAD, argument) + step(seccomp.JUMP_EQUAL, 0, 1, 0) + REFUSE for argument in arguments)
    return b"".join(tests) + ALLOW


def _sockets(unix: bool) -> bytes:
    """TCP over either version of IP; local ones of every kind if `unix`."""
    stream = step(seccomp.LOAD, SECOND) + step(seccomp.AND, KIND) + step(seccomp.JUMP_EQUAL, socket.SOCK_STREAM, 1, 0)
    plain = step(seccomp.LOAD, THIRD) + _one_of(0, socket.IPPROTO_TCP)
    local = step(seccomp.JUMP_EQUAL, socket.AF_UNIX, 0, 1) + ALLOW if unix else b""
    internet = _one_of(socket.AF_INET, socket.AF_INET6)
    return step(seccomp.LOAD, FIRST) + local + internet + stream + REFUSE + plain + ALLOW


def _one_of(first: int, second: int) -> bytes:
    """Refuse what has been loaded unless it is one of the two; go on behind this if it is."""
    return step(seccomp.JUMP_EQUAL, first, 2, 0) + step(seccomp.JUMP_EQUAL, second, 1, 0) + REFUSE
