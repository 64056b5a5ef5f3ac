"""The one door: a trial's workbench over loopback HTTP, evaluations in our words, model calls in OpenAI's.

    POST /v1/chat/completions   GET /v1/models     OpenAI's protocol; "stream": true gets one chunk
    POST /derby/evaluate        GET /derby/task    GET /derby/left    GET /derby/history

The edit format an answer is wanted in is told by a header or, by clients that can send none, in front of OpenAI's path:
/search_replace/v1/chat/completions. Every request carries the trial's bearer token. Refusals are OpenAI's error
objects: 401 token, 402 budget spent, 404/405 no such place, 413 too long, 422 not understood, 503 stopped or model out
of reach.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar, cast

import anyio.to_thread
from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from suite.bench import TrialBench
from suite.door import (
    BODY_LIMIT,
    EDIT_FORMAT_HEADER,
    HISTORY,
    ChatRequest,
    EvaluateRequest,
    TaskReply,
    Trouble,
    TroubleBody,
    chunk,
    completion,
)
from suite.errors import BudgetExhausted, DerbyError, ModelError, Stopped
from suite.loopback import serve_app
from suite.workbench import EditFormat

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")


@contextmanager
def serve(bench: TrialBench) -> Iterator[tuple[str, str]]:
    """Open the door for as long as the block lasts; yields its address and its token."""
    token = secrets.token_urlsafe(32)
    with serve_app(_Guard(_application(bench), token)) as url:
        yield url, token


class _Guard:
    """Lets only the token's bearer in, before anything of the request is read."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._expected = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = dict(scope["headers"]).get(b"authorization", b"")
        if hmac.compare_digest(given, self._expected):
            await self._app(scope, receive, send)
        else:
            refusal = _trouble(401, Trouble(message="wrong or missing token", type="invalid_request_error"))
            await refusal(scope, receive, send)


class _Door:
    """The handlers. Blocking work runs in the server's thread pool."""

    def __init__(self, bench: TrialBench) -> None:
        self._bench = bench

    async def evaluate(self, request: Request) -> Response:
        call = await _read(request, EvaluateRequest)
        judged = partial(self._bench.evaluate, call.candidate, call.parent, call.note, call.predicted)
        feedback = await _in_thread(judged)
        return _json(feedback.model_dump_json())

    async def chat(self, request: Request) -> Response:
        call = await _read(request, ChatRequest)
        wanted = request.path_params.get("edit_format", request.headers.get(EDIT_FORMAT_HEADER, "whole"))
        if wanted not in ("whole", "search_replace"):
            raise HTTPException(422, f"the edit format is {wanted!r}, expected whole or search_replace")
        messages = [message.plain() for message in call.messages]
        reply = await _in_thread(partial(self._bench.chat, messages, cast(EditFormat, wanted)))
        whole = completion(reply, self._model(), f"chatcmpl-{secrets.token_hex(12)}")
        return _stream(whole) if call.stream else JSONResponse(whole)

    async def models(self, request: Request) -> Response:
        model = {"id": self._model(), "object": "model", "created": 0, "owned_by": "kernel-derby"}
        return JSONResponse({"object": "list", "data": [model] if self._bench.model else []})

    async def task(self, request: Request) -> Response:
        bench = self._bench
        reply = TaskReply(
            brief=bench.brief,
            starter=bench.starter,
            language=bench.language,
            seed=bench.seed,
            folder=bench.folder,
            concurrency=bench.concurrency,
        )
        return _json(reply.model_dump_json())

    async def left(self, request: Request) -> Response:
        return _json((await _in_thread(self._bench.left)).model_dump_json())

    async def history(self, request: Request) -> Response:
        return _json(HISTORY.dump_json(await _in_thread(self._bench.history)))

    def _model(self) -> str:
        return self._bench.model.name if self._bench.model else ""


def _application(bench: TrialBench) -> Starlette:
    door = _Door(bench)
    routes = [
        Route("/v1/chat/completions", door.chat, methods=["POST"]),
        Route("/v1/models", door.models),
        Route("/{edit_format}/v1/chat/completions", door.chat, methods=["POST"]),
        Route("/{edit_format}/v1/models", door.models),
        Route("/derby/evaluate", door.evaluate, methods=["POST"]),
        Route("/derby/task", door.task),
        Route("/derby/left", door.left),
        Route("/derby/history", door.history),
    ]
    handlers: dict[Any, Any] = {HTTPException: _refused, DerbyError: _ended, Exception: _failed}
    return Starlette(routes=routes, exception_handlers=handlers)


async def _in_thread(call: Callable[[], T]) -> T:
    """Run blocking work beside the server; a server that must end does not wait for it."""
    return await anyio.to_thread.run_sync(call, abandon_on_cancel=True)


async def _read(request: Request, model: type[M]) -> M:
    """The body as a `model`; pydantic's parser stands any nesting and refuses broken text."""
    try:
        return model.model_validate_json(await _body(request))
    except ValidationError as problem:
        flaw = problem.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(str(part) for part in flaw["loc"])
        raise HTTPException(422, f"{place or 'the request'}: {flaw['msg']}"[:500]) from None


async def _body(request: Request) -> bytes:
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > BODY_LIMIT:
                raise HTTPException(413, f"a request is limited to {BODY_LIMIT} bytes")
    except ClientDisconnect:
        raise HTTPException(422, "the request broke off") from None
    return bytes(body)


async def _refused(request: Request, refusal: HTTPException) -> Response:
    return _trouble(refusal.status_code, Trouble(message=refusal.detail, type="invalid_request_error"))


async def _ended(request: Request, end: DerbyError) -> Response:
    if isinstance(end, BudgetExhausted):
        return _trouble(402, Trouble(message=str(end), type="budget_exhausted", code=end.kind))
    if isinstance(end, Stopped):
        return _trouble(503, Trouble(message=str(end), type="stopped"))
    if isinstance(end, ModelError):
        trouble = Trouble(message=end.came, type="model_unavailable", expected=end.expected, todo=end.todo)
        return _trouble(503, trouble)
    return await _failed(request, end)


async def _failed(request: Request, error: Exception) -> Response:
    """What went wrong is the trial's to know (`Desk.crash`); the method learns only that it is not to blame."""
    return _trouble(500, Trouble(message="the suite failed", type="server_error"))


def _trouble(status: int, trouble: Trouble) -> Response:
    # Without the header OpenAI's client would ask again after 503, and so count its own patience as search time.
    return _json(TroubleBody(error=trouble).model_dump_json(), status, {"x-should-retry": "false"})


def _json(body: str | bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(body, status, headers, media_type="application/json")


def _stream(whole: dict[str, Any]) -> Response:
    events = f"data: {json.dumps(chunk(whole))}\n\ndata: [DONE]\n\n"
    return Response(events, media_type="text/event-stream")
