"""The filter of system calls, run here as the kernel would run it, for machines we are not on as well."""

from __future__ import annotations

import struct

import pytest

from suite.walls import method_filter, seccomp


def verdict(code: bytes, machine: str, number: int, *arguments: int) -> int:
    """Run the filter on one system call, as the kernel would."""
    _, architecture, _ = seccomp.MACHINES[machine]
    data = struct.pack("<IIQ6Q", number, architecture, 0, *[*arguments, 0, 0, 0, 0, 0, 0][:6])
    place, accumulator = 0, 0
    while True:
        operation, if_true, if_false, value = struct.unpack_from("<HBBI", code, 8 * place)
        place += 1
        if operation == seccomp.RETURN:
            return int(value)
        if operation == seccomp.LOAD:
            (accumulator,) = struct.unpack_from("<I", data, value)
            continue
        if operation == seccomp.AND:
            accumulator &= value
            continue
        holds = {
            seccomp.JUMP_EQUAL: accumulator == value,
            seccomp.JUMP_AT_LEAST: accumulator >= value,
            seccomp.JUMP_ANY_BIT: bool(accumulator & value),
        }[operation]
        place += if_true if holds else if_false


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_the_filter_refuses_the_same_on_every_machine(machine: str) -> None:
    column, _, _ = seccomp.MACHINES[machine]
    code = seccomp.program(machine, pid=2, processes=False)
    compiler = seccomp.program(machine, pid=2, processes=True)
    for numbers in seccomp.REFUSED.values():
        if (number := numbers[column]) is not None:
            assert verdict(code, machine, number) != seccomp.ALLOW
            assert verdict(compiler, machine, number) != seccomp.ALLOW
    clone, kill = seccomp.CLONE[column], seccomp.SIGNALS["kill"][column]
    assert verdict(code, machine, clone, seccomp.CLONE_THREAD | 0x100) == seccomp.ALLOW
    assert verdict(code, machine, clone, 17) != seccomp.ALLOW
    assert verdict(compiler, machine, clone, 17) == seccomp.ALLOW
    assert verdict(code, machine, kill, 2) == seccomp.ALLOW
    assert verdict(code, machine, kill, 1) != seccomp.ALLOW
    assert verdict(code, machine, seccomp.PRLIMIT[column], 0) == seccomp.ALLOW
    assert verdict(code, machine, (72, 25)[column], 3, 10) != seccomp.ALLOW
    assert verdict(code, machine, (72, 25)[column], 3, 1) == seccomp.ALLOW
    assert verdict(code, machine, (0, 63)[column]) == seccomp.ALLOW  # read
    assert verdict(code, machine, seccomp.X32) != seccomp.ALLOW


@pytest.mark.parametrize("machine", seccomp.MACHINES)
@pytest.mark.parametrize("apart", [True, False])
def test_a_methods_filter_looks_at_arguments(machine: str, apart: bool) -> None:
    column, _, _ = seccomp.MACHINES[machine]
    code = method_filter.program(machine, apart=apart, sessions=apart)

    def allows(number: int | None, *arguments: int) -> bool:
        assert number is not None
        return verdict(code, machine, number, *arguments) == seccomp.ALLOW

    socket, pair = (seccomp.REFUSED[name][column] for name in ("socket", "socketpair"))
    assert allows(socket, 2, 1 | 0x80800, 0) and allows(socket, 10, 1, 6)
    assert not any(allows(socket, *kind) for kind in ((2, 2, 0), (2, 1, 262), (2, 3, 1), (16, 3, 0), (40, 1, 0)))
    assert allows(socket, 1, 1, 0) == apart
    assert allows(pair, 1, 1 | 0x80000, 0) and allows(pair, 1, 5, 0) and allows(pair, 1, 2, 0) == apart
    for numbers, _ in method_filter.SENDING.values():
        assert allows(numbers[column], 3, 0, 0, 0x4000)
    assert not allows(method_filter.SENDING["sendto"][0][column], 3, 0, 0, method_filter.FASTOPEN)
    assert not allows(method_filter.SENDING["sendmsg"][0][column], 3, 0, method_filter.FASTOPEN)
    assert allows(seccomp.CLONE[column], 0x01200011) and not allows(seccomp.CLONE[column], 0x10000011)
    priority = seccomp.REFUSED["setpriority"][column]
    assert allows(priority, 0, 0, 19) and not allows(priority, 0, 7, 19) and not allows(priority, 2, 0, 19)
    for numbers in method_filter.OF_OTHERS.values():
        assert allows(numbers[column], 0) and allows(numbers[column], 7) == apart
    for changing in method_filter.ATTRIBUTES.values():
        assert changing[column] is None or allows(changing[column], 3) == apart
    assert allows(method_filter.SETSID[column]) == apart
    assert not allows(seccomp.REFUSED["ptrace"][column]) and allows((0, 63)[column])
