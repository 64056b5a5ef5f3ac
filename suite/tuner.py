"""The tuner: answers in OpenAI's protocol, but is no model. It returns the prompt's kernel with other `tune:` values.

A stand-in that ships, so that races run with no key and no network: kernels, builds and speedups are real, only the one
who proposes is not. Its results are marked "no LLM" and never rank beside a model's.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from pydantic import BaseModel, JsonValue, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from suite.errors import TaskError
from suite.events import Message
from suite.fences import Block, fenced
from suite.loopback import serve_app
from suite.tunables import find, render
from suite.types import digest_of

Planner = Callable[[Sequence[Message]], str | None]
"""Answers what is no request for a kernel, for the one method it lives beside; None: not mine. A pure function."""

NAME = "tuner"
NOTHING = "I only turn the dials of a kernel's tune: comments, and this prompt shows me none."
_BYTES_PER_TOKEN = 4
"""Usage is counted as real servers do it, in round figures: one token for four bytes of UTF-8."""


class _Part(BaseModel):
    type: str = "text"
    text: str = ""


class _Message(BaseModel):
    role: str
    content: str | list[_Part] | None = None

    def words(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content)
        return self.content or ""

    def plain(self) -> Message:
        known = "assistant" if self.role == "assistant" else "system" if self.role == "system" else "user"
        return Message(role=known, content=self.words())


class _Chat(BaseModel):
    """The parts of a request the tuner heeds; it accepts and ignores all others."""

    model: str = NAME
    messages: list[_Message]
    seed: int | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    stream: bool | None = None


@contextmanager
def serve(planners: Sequence[Planner] = ()) -> Iterator[str]:
    """Run the tuner on a free loopback port; yields its `base_url` ("http://127.0.0.1:PORT/v1").

    `planners` are asked first, in their order; what none of them takes for its own the tuner answers.
    """
    complete = partial(_complete, tuple(planners))
    routes = [Route("/v1/chat/completions", complete, methods=["POST"]), Route("/v1/models", _models)]
    with serve_app(Starlette(routes=routes)) as address:
        yield f"{address}/v1"


def answer(messages: Sequence[str], seed: int, edit_format: str) -> str:
    """The reply to a conversation: a pure function of its messages, the seed and the edit format.

    "whole" gives one fenced block, "search_replace" SEARCH/REPLACE edits; without `tune:` comments it is a sentence.
    """
    source = _last_tunable(messages)
    if source is None:
        return NOTHING
    conversation: list[JsonValue] = [*messages]
    dice = random.Random(digest_of({"messages": conversation, "seed": seed, "edit_format": edit_format}))
    tunables = find(source.text)
    changed = dice.sample(tunables, dice.randint(1, len(tunables)))
    values = {dial.name: dice.choice([value for value in dial.values if value != dial.current]) for dial in changed}
    after = render(source.text, values)
    said = "Other values for " + ", ".join(f"{name} ({value})" for name, value in sorted(values.items())) + "."
    if edit_format == "search_replace":
        return f"{said}\n\n{_edits(source.text, after)}"
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", after)), default=0))
    return f"{said}\n\n{fence}{source.info}\n{after}{fence}\n"


def _last_tunable(messages: Sequence[str]) -> Block | None:
    for block in reversed([block for message in messages for block in fenced(message)]):
        try:
            if find(block.text):
                return block
        except TaskError:
            continue  # some other text that happens to say "tune:"
    return None


def _edits(before: str, after: str) -> str:
    """One SEARCH/REPLACE edit a changed line; a tuned line's name makes it the only one of its kind."""
    pairs = zip(before.split("\n"), after.split("\n"), strict=True)
    edits = [f"<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n" for old, new in pairs if old != new]
    return "\n".join(edits)


# ---------------------------------------------------------------------------------------------- the protocol


async def _complete(planners: tuple[Planner, ...], request: Request) -> JSONResponse:
    edit_format = request.headers.get("x-derby-edit-format", "whole")
    if edit_format not in ("whole", "search_replace"):
        return _error(f"the edit format {edit_format!r} is not one of: whole, search_replace", "edit_format")
    try:
        chat = _Chat.model_validate_json(await request.body())
    except ValidationError as error:
        first = error.errors()[0]
        return _error(f"{first['msg']}: {'.'.join(str(part) for part in first['loc'])}", None)
    if chat.stream:
        return _error("the tuner does not stream", "stream")
    texts = [message.words() for message in chat.messages]
    text = await run_in_threadpool(_planned, planners, [message.plain() for message in chat.messages])
    if text is None:
        text = await run_in_threadpool(answer, texts, chat.seed or 0, edit_format)
    limit = chat.max_completion_tokens or chat.max_tokens
    cut = limit is not None and _tokens(text) > limit
    if limit is not None and cut:
        text = text.encode()[: limit * _BYTES_PER_TOKEN].decode(errors="ignore")
    return JSONResponse(_completion(chat, texts, text, "length" if cut else "stop"))


def _planned(planners: tuple[Planner, ...], messages: list[Message]) -> str | None:
    return next((text for planner in planners if (text := planner(messages)) is not None), None)


def _completion(chat: _Chat, texts: list[str], text: str, finish_reason: str) -> dict[str, Any]:
    spent, said = sum(_tokens(part) for part in texts), _tokens(text)
    digest = digest_of({"texts": [*texts], "reply": text})
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}
    return {
        "id": f"chatcmpl-{digest[:24]}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": chat.model,
        "choices": [choice],
        "usage": {"prompt_tokens": spent, "completion_tokens": said, "total_tokens": spent + said},
    }


async def _models(_: Request) -> JSONResponse:
    return JSONResponse(
        {"object": "list", "data": [{"id": NAME, "object": "model", "created": 0, "owned_by": "derby"}]}
    )


def _error(message: str, parameter: str | None) -> JSONResponse:
    body = {"message": message, "type": "invalid_request_error", "param": parameter, "code": None}
    return JSONResponse({"error": body}, status_code=400)


def _tokens(text: str) -> int:
    return -(-len(text.encode(errors="replace")) // _BYTES_PER_TOKEN)
