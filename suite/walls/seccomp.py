"""Seccomp: the system calls that code nobody trusts has no use for fail with EPERM, by a filter written out here.

A candidate may start threads and nothing else, a compiler processes too; a method's filter is in `method_filter`.
Whatever could continue a candidate's stopped process from inside is refused as well: a POSIX timer or an asynchronous
descriptor can be told to send SIGCONT, which would undo the judge's SIGSTOP. So is what makes the kernel work while the
process is stopped (hundreds of timers that expire in the baseline's turn, writing out the whole machine's files), and
priorities: a starved thread holds up the signal that stops all.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from . import syscalls

SET_MODE_FILTER, SPEC_ALLOW = 1, 4
LOAD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT, RETURN, AND = 0x20, 0x15, 0x35, 0x45, 0x06, 0x54
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
NUMBER, ARCHITECTURE, FIRST_ARGUMENT, SECOND_ARGUMENT, THIRD_ARGUMENT, FOURTH_ARGUMENT = 0, 4, 16, 24, 32, 40
"""Offsets in seccomp_data, low words."""
X32 = 0x40000000
CLONE_THREAD = 0x10000
MACHINES = {"x86_64": (0, 0xC000003E, 317), "aarch64": (1, 0xC00000B7, 277)}
"""Column of the tables below, audit architecture, number of seccomp(2)."""

PROCESSES = {"fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281)}
CLONE, CLONE3 = (56, 220), (435, 435)
SIGNALS = {"kill": (62, 129), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240)}
PRLIMIT = (302, 261)
ARGUMENTS = {
    "prctl": ((157, 167), FIRST_ARGUMENT, (1, 36)),  # PDEATHSIG, CHILD_SUBREAPER
    "fcntl": ((72, 25), SECOND_ARGUMENT, (8, 10, 15, 1024, 1026)),  # SETOWN, SETSIG, SETOWN_EX, SETLEASE, NOTIFY
    "ioctl": ((16, 29), SECOND_ARGUMENT, (0x5412, 0x8901, 0x8902)),  # TIOCSTI, FIOSETOWN, SIOCSPGRP
}
REFUSED = {
    "socket": (41, 198), "socketpair": (53, 199), "tkill": (200, 130), "timer_create": (222, 107),
    "timerfd_create": (283, 85), "io_setup": (206, 0), "sync": (162, 81), "syncfs": (306, 267),
    "sched_setscheduler": (144, 119), "sched_setparam": (142, 118), "sched_setattr": (314, 274),
    "setpriority": (141, 140), "ioprio_set": (251, 30), "migrate_pages": (256, 238),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424), "kcmp": (312, 272),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "move_mount": (429, 429),
    "open_tree": (428, 428), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fspick": (433, 433), "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "shmget": (29, 194), "shmat": (30, 196), "mq_open": (240, 180), "mq_notify": (244, 184), "msgget": (68, 186),
    "semget": (64, 190), "memfd_create": (319, 279), "memfd_secret": (447, 447),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "fanotify_init": (300, 262),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142),
    "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171),
    "clock_adjtime": (305, 266), "sethostname": (170, 161), "setdomainname": (171, 162), "syslog": (103, 116),
    "vhangup": (153, 58), "iopl": (172, None), "ioperm": (173, None), "personality": (135, 92),
    "nfsservctl": (180, 42), "lookup_dcookie": (212, 18),
}  # fmt: skip


def enforce(program: bytes) -> bool:
    """Put a filter in force for this thread and all it starts; whether that went well. no_new_privs has been set."""
    buffer = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("<HxxxxxxQ", len(program) // 8, ctypes.addressof(buffer))
    number = MACHINES[os.uname().machine][2]
    try:
        # Without SPEC_ALLOW older kernels would slow the candidate down by a speculation barrier.
        syscalls.syscall(number, SET_MODE_FILTER, SPEC_ALLOW, ctypes.c_char_p(described))
    except OSError:
        return False
    return True


def step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)


def refuse(number: int | None, error: int = errno.EPERM) -> bytes:
    return b"" if number is None else step(JUMP_EQUAL, number, 0, 1) + step(RETURN, ERRNO | error)


def when(number: int, test: bytes) -> bytes:
    """Run `test` (which ends in a verdict) for one system call."""
    return step(JUMP_EQUAL, number, 0, len(test) // 8) + test


def refuse_values(argument: int, values: tuple[int, ...]) -> bytes:
    return step(LOAD, argument) + b"".join(refuse(value) for value in values) + step(RETURN, ALLOW)


def only_values(argument: int, values: tuple[int, ...]) -> bytes:
    allowed = b"".join(step(JUMP_EQUAL, value, 0, 1) + step(RETURN, ALLOW) for value in values)
    return step(LOAD, argument) + allowed + step(RETURN, ERRNO | errno.EPERM)


def header(machine: str) -> bytes:
    """Refuses every other architecture and leaves the number of the system call to be tested."""
    foreign = step(JUMP_EQUAL, MACHINES[machine][1], 1, 0) + step(RETURN, ERRNO | errno.ENOSYS)
    x32 = step(JUMP_AT_LEAST, X32, 0, 1) + step(RETURN, ERRNO | errno.ENOSYS)
    return step(LOAD, ARCHITECTURE) + foreign + step(LOAD, NUMBER) + x32


def program(machine: str, pid: int, processes: bool) -> bytes:
    """The filter. `pid`: the only process that may be signalled. `processes`: some may be started (compilers do)."""
    column = MACHINES[machine][0]
    parts = [header(machine)]
    if not processes:
        parts += [refuse(numbers[column]) for numbers in PROCESSES.values()]
        # clone3 hides its flags behind a pointer; without it libc falls back to clone, whose flags can be read.
        parts.append(refuse(CLONE3[column], errno.ENOSYS))
        thread = step(LOAD, FIRST_ARGUMENT) + step(JUMP_ANY_BIT, CLONE_THREAD, 1, 0)
        parts.append(when(CLONE[column], thread + step(RETURN, ERRNO | errno.EPERM) + step(RETURN, ALLOW)))
        parts += [when(numbers[column], only_values(FIRST_ARGUMENT, (pid,))) for numbers in SIGNALS.values()]
        parts.append(when(PRLIMIT[column], only_values(FIRST_ARGUMENT, (0, pid))))
    for numbers, argument, values in ARGUMENTS.values():
        parts.append(when(numbers[column], refuse_values(argument, values)))
    parts += [refuse(numbers[column]) for numbers in REFUSED.values()]
    return b"".join(parts) + step(RETURN, ALLOW)
