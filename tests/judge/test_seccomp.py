"""The filter of system calls, run here as the kernel would run it, for machines we are not on as well."""

from __future__ import annotations

import struct

import pytest

from suite.walls import seccomp


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
