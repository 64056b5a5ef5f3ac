"""The bytes between a judge and the processes it does not trust: fixed structs up, JSON or five bytes down.

Imported both beside `__main__` (as `wire`) and by the judge (as `suite.child.wire`), so it imports the standard
library only. Nothing that comes up is ever unpickled or parsed further than this one struct.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

MAGIC = b"KDby"
TEXT_BYTES = 512
UP = struct.Struct(f"<4sHHIi{TEXT_BYTES}s")
DOWN = struct.Struct("<BxxxI")
JSON_BYTES = 1 << 16

CALL, NOP, KILL = 1, 2, 3
"""First byte of a message down that is not JSON (JSON starts with a brace)."""


class Kind(IntEnum):
    """What a message up says."""

    READY = 1  # zygote: may be asked; candidate: sandbox closed (text: its profile)
    LOADED = 2
    CONFIGURED = 3
    DONE = 4  # number: of the call
    FAILED = 5  # status: index in FAILURES; text: why
    STARTED = 6  # keeper: number is the pid of the namespace's init (0: none), code the candidate's
    EXITED = 7  # keeper: code is the candidate's wait status
    EMPTY = 8  # keeper: nothing the candidate started is left


FAILURES = ("OURS", "COMPILE_ERROR", "RUNTIME_ERROR", "INCORRECT_SHAPE", "INCORRECT_DTYPE")
"""What a process may say of itself. The first is a failure of ours and believed only before a candidate is loaded."""


class BadMessage(Exception):
    """The bytes are no message."""


@dataclass(frozen=True)
class Message:
    kind: Kind
    number: int = 0
    code: int = 0
    status: str = FAILURES[0]
    text: str = ""


def pack(message: Message) -> bytes:
    """The message as `UP.size` bytes; text is cut to `TEXT_BYTES`."""
    text = message.text.encode(errors="replace")[:TEXT_BYTES]
    status = FAILURES.index(message.status)
    return UP.pack(MAGIC, message.kind, status, message.number, message.code, text)


def unpack(data: bytes) -> Message:
    """The message in `data`; raises `BadMessage` for anything that `pack` does not make."""
    if len(data) != UP.size:
        raise BadMessage(f"{len(data)} bytes instead of {UP.size}")
    magic, kind, status, number, code, text = UP.unpack(data)
    if magic != MAGIC or kind not in Kind.__members__.values() or status >= len(FAILURES):
        raise BadMessage("a header that is none")
    words = printable(text.rstrip(b"\0").decode(errors="replace"))
    return Message(Kind(kind), number, code, FAILURES[status], words.strip())


def printable(text: str, kept: str = "") -> str:
    """The text without what a terminal would obey, which becomes spaces; of that, the letters of `kept` stay."""
    return "".join(letter if letter.isprintable() or letter in kept else " " for letter in text)


def send_json(sock: socket.socket, value: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
    """Send a JSON object down, with descriptors."""
    data = json.dumps(value).encode()
    if len(data) > JSON_BYTES:
        raise ValueError(f"a message of {len(data)} bytes; {JSON_BYTES} is the most")
    socket.send_fds(sock, [data], list(fds)) if fds else sock.send(data)


def receive_json(sock: socket.socket, fds: int) -> tuple[dict[str, Any] | None, list[int]]:
    """A JSON object and up to `fds` descriptors; None at the end of the stream."""
    data, received, _, _ = socket.recv_fds(sock, JSON_BYTES, fds)
    for fd in received:
        os.set_inheritable(fd, False)  # recv_fds takes a flag for this, and in Python 3.11 drops it
    return (json.loads(data) if data else None), received
