"""System calls that Python 3.11 has no name for."""

from __future__ import annotations

import ctypes
import mmap
import os

LIBC = ctypes.CDLL(None, use_errno=True)

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = (
    0x20000,
    0x8000000,
    0x10000000,
    0x20000000,
    1 << 30,
)
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 0x1, 0x2, 0x4, 0x8
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
MNT_DETACH = 2
AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = -100, 0x8000, 1
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER = 1, 4, 24, 36
PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 38, 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
CAPABILITY_VERSION_3 = 0x20080522
SYS_CAPSET = {"x86_64": 126, "aarch64": 91}
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
SYS_MOUNT_SETATTR = 442


def _checked(result: int, name: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def syscall(number: int, *arguments: object) -> int:
    """Raises `OSError`."""
    LIBC.syscall.restype = ctypes.c_long
    passed = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return _checked(LIBC.syscall(ctypes.c_long(number), *passed), f"system call {number}")


def prctl(option: int, *arguments: int) -> None:
    """Raises `OSError`."""
    filled = [*arguments, 0, 0, 0, 0][:4]
    _checked(LIBC.prctl(option, *map(ctypes.c_ulong, filled)), f"prctl {option}")


def unshare(flags: int) -> None:
    """Raises `OSError`."""
    _checked(LIBC.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    """Raises `OSError`."""
    kind_bytes = None if kind is None else kind.encode()
    result = LIBC.mount(source.encode(), target.encode(), kind_bytes, ctypes.c_ulong(flags), options.encode() or None)
    _checked(result, f"mount on {target}")


def unmount(target: str) -> None:
    """Take away what is mounted there, whoever uses it. Raises `OSError`."""
    _checked(LIBC.umount2(target.encode(), MNT_DETACH), f"umount of {target}")


def make_read_only(target: str, *, recursive: bool) -> None:
    """Nothing can be changed through this mount any more, by nobody (Linux 5.12). Raises `OSError`."""
    attributes = (ctypes.c_uint64 * 4)(MOUNT_ATTR_RDONLY, 0, 0, 0)
    flags = AT_RECURSIVE if recursive else 0
    path = ctypes.c_char_p(target.encode())
    syscall(SYS_MOUNT_SETATTR, AT_FDCWD, path, flags, ctypes.byref(attributes), ctypes.sizeof(attributes))


def pivot_root(new: str, old: str) -> None:
    """Raises `OSError`."""
    number = SYS_PIVOT_ROOT[os.uname().machine]
    syscall(number, ctypes.c_char_p(new.encode()), ctypes.c_char_p(old.encode()))


def write(path: str, text: str) -> None:
    """Write to a file of the kernel's, in one piece. Raises `OSError`."""
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def map_shared(fd: int, size: int, protection: int) -> int:
    """The address of a shared map of `size` bytes. Raises `OSError`."""
    LIBC.mmap.restype = ctypes.c_void_p
    LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    address: int = LIBC.mmap(None, size, protection, mmap.MAP_SHARED, fd, 0)
    if address == ctypes.c_void_p(-1).value:
        _checked(-1, "mmap")
    return address


def die_with_parent(signal_number: int) -> None:
    """Have the kernel send us the signal when the parent's thread ends; the caller checks that it has not ended yet."""
    prctl(PR_SET_PDEATHSIG, signal_number)


def drop_capabilities() -> None:
    """Give up every capability for good. Raises `OSError`."""
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:  # past the last one, or not ours to drop: the sets below are emptied anyway
            break
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    syscall(SYS_CAPSET[os.uname().machine], ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))
