"""Runs a small web application on a free loopback port, in a thread of this process, for as long as a `with` block."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

_GRACE_S = 2
"""A request still running when the block ends gets this long before its connection is cut."""

MOST_CONNECTIONS = 256
"""At once. Each costs a file descriptor and perhaps a body in memory, and who connects may mean harm."""


class _Counted(H11Protocol):
    """A connection that is one of not too many; h11, whatever else is installed, for it bounds what it keeps."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()


@contextmanager
def serve_app(app: ASGIApp, stopping: Callable[[], None] = lambda: None) -> Iterator[str]:
    """Yield the server's address ("http://127.0.0.1:PORT"); `stopping` is called before the server is told to end.

    The socket listens before the address is handed out, so a client that comes at once waits instead of being refused.
    """
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    # Inherited by every connection. asyncio sets it too, but not on sockets of the default protocol number, like these:
    # without it head and body of a reply are sent 40 ms apart.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    config = uvicorn.Config(
        app,
        http=_Counted,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=_GRACE_S,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="loopback", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        stopping()
        server.should_exit = True
        thread.join()
        listener.close()
