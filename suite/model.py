"""The model port and its one client: OpenAI's chat protocol, with one retry policy for every method."""

from __future__ import annotations

import os
import random
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx2
import openai
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletion

from suite import provider
from suite.errors import DerbyError, InfraError
from suite.events import Message
from suite.types import ModelSpec, Usage
from suite.workbench import EditFormat, Reply

EDIT_FORMAT_HEADER = "X-Derby-Edit-Format"
"""Tells the tuner, which cannot read, in which form its answer is wanted."""

ANSWER_LIMIT = 32 << 20
"""Bytes of an answer; the longest a model writes is a small part of that."""

MOST_TOKENS = 1 << 32
"""A server that reports more for one call reports nothing."""

WORD_LIMIT = 40
"""Characters of a finish reason; OpenAI's have at most 14."""

_OTHER_NAME = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}


@dataclass(frozen=True)
class Patience:
    """How long a failing server is asked again: delays double from `first_s` to `longest_s`, with jitter."""

    attempts: int = 6
    first_s: float = 1.0
    longest_s: float = 60.0
    timeout_s: float = 600.0


class OpenAIModel:
    """A model at an OpenAI-compatible address. Usable from several threads at once.

    What the server rejects of the optional parameters (effort, seed, temperature) is left out from then on, and every
    reply's `note` says so; the limit on output is given under whichever of its two names the server accepts.
    """

    def __init__(self, spec: ModelSpec, base_url: str | None, api_key: str, patience: Patience = Patience()) -> None:
        """Without `base_url`: OPENAI_BASE_URL, else OpenAI's own. Sends nothing; `ModelError` if it is no address."""
        base_url = base_url or os.environ.get("OPENAI_BASE_URL") or provider.OPENAI_URL
        self._spec, self._patience, self._api_key = spec, patience, api_key
        self._address = provider.checked(base_url)
        hook = partial(_bound, seconds=patience.timeout_s)
        connections = openai.DefaultHttpxClient(event_hooks={"response": [hook]})
        weakref.finalize(self, connections.close)
        self._client = openai.OpenAI(
            api_key=api_key or "unused",
            base_url=base_url,
            max_retries=0,
            timeout=patience.timeout_s,
            http_client=connections,
        )
        self._lock = threading.Lock()
        self._rejected: frozenset[str] = frozenset()
        self._answered = False

    def __repr__(self) -> str:
        return f"OpenAIModel({self._spec.name!r} at {self._address})"

    def chat(self, messages: Sequence[Message], *, max_output_tokens: int, seed: int, edit_format: EditFormat) -> Reply:
        """See `suite.workbench.Model`."""
        began = time.monotonic()
        for attempt in range(1, self._patience.attempts + 1):
            asked = time.monotonic()
            request = self._request(messages, max_output_tokens, seed, edit_format)
            try:
                completion = self._ask(request)
            except openai.APIError as error:
                if refusal := provider.refusal(error):
                    waited_s = time.monotonic() - began
                    return Reply(text="", finish_reason="refused", waited_s=waited_s, note=refusal)
                self._raise_if_final(error, attempt)
                time.sleep(self._delay(error, attempt))
                continue
            reply = self._reply(messages, completion, waited_s=asked - began)
            self._answered = True
            return reply
        raise AssertionError("the last attempt returns or raises")

    # ------------------------------------------------------------------------------------------ asking

    def _request(
        self, messages: Sequence[Message], max_output_tokens: int, seed: int, edit_format: EditFormat
    ) -> dict[str, Any]:
        # Sources and logs may hold lone surrogates, which no JSON body can carry.
        texts = [(message.role, message.content.encode(errors="replace").decode()) for message in messages]
        request: dict[str, Any] = {
            "model": self._spec.name,
            "messages": [{"role": role, "content": text} for role, text in texts],
            "seed": seed,
            **({"temperature": self._spec.temperature} if self._spec.temperature is not None else {}),
            **({"reasoning_effort": self._spec.effort} if self._spec.effort is not None else {}),
        }
        request = {key: value for key, value in request.items() if key not in self._rejected}
        # OpenAI's newer models know the first name only, many other servers the second only, and some ignore the other.
        names = ["max_completion_tokens", "max_tokens"]
        if not provider.is_openai(str(self._client.base_url)):
            names.reverse()
        name = names[1] if names[0] in self._rejected else names[0]
        request[name] = max_output_tokens
        if not self._spec.is_llm:
            request["extra_headers"] = {EDIT_FORMAT_HEADER: edit_format}
        return request

    def _ask(self, request: dict[str, Any]) -> ChatCompletion:
        try:
            completion = self._client.chat.completions.create(**request)
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            refused = provider.refused_parameter(error, request)
            if refused is None or _OTHER_NAME.get(refused) in self._rejected:
                raise
            with self._lock:
                self._rejected |= {refused}
            return self._ask(_without(request, refused))
        except (ValueError, RecursionError):  # openai's client lets json's own errors through
            raise self._unreadable() from None
        if not isinstance(completion, ChatCompletion) or not isinstance(completion.choices, list):
            raise provider.not_our_protocol(self._address)
        return completion

    def _unreadable(self) -> DerbyError:
        """A server that has answered well before may do so again."""
        if self._answered:
            return InfraError(f"{self._spec.name} at {self._address} sent an answer that can not be read")
        return provider.not_our_protocol(self._address)

    def _raise_if_final(self, error: openai.APIError, attempt: int) -> None:
        if trouble := provider.explain(error, self._spec.name, self._address, self._api_key):
            raise trouble from None  # the client's own error quotes request headers in its traceback
        if attempt < self._patience.attempts:
            return
        if isinstance(error, openai.APIConnectionError) and not self._answered:
            raise provider.unreachable(self._address) from None
        cause = provider.scrubbed(str(error), self._api_key)
        raise InfraError(f"{self._spec.name} at {self._address} failed {attempt} times in a row: {cause}") from None

    def _delay(self, error: openai.APIError, attempt: int) -> float:
        backoff = min(self._patience.longest_s, self._patience.first_s * 2 ** (attempt - 1))
        return float(max(backoff * random.uniform(0.5, 1.0), provider.retry_after_s(error)))

    # ------------------------------------------------------------------------------------------ the answer

    def _reply(self, messages: Sequence[Message], completion: ChatCompletion, *, waited_s: float) -> Reply:
        # The client checks nothing of what it was sent: every part may be of any type.
        choice = completion.choices[0] if completion.choices else None
        said = getattr(getattr(choice, "message", None), "content", None) or ""
        ended = getattr(choice, "finish_reason", None)
        if not isinstance(said, str):
            raise self._unreadable()
        text = _tellable(said)
        usage = _reported(completion.usage)
        if is_bound := usage is None or (usage.total == 0 and bool(text)):
            # A few bytes a message for its role and the marks around it.
            spent = sum(len(message.content.encode(errors="replace")) + 16 for message in messages)
            usage = Usage(input=spent, output=len(text.encode(errors="replace")))
        dropped = sorted(self._rejected - _OTHER_NAME.keys())
        return Reply(
            text=text,
            usage=usage or Usage(),
            finish_reason=_tellable(ended[:WORD_LIMIT]) if isinstance(ended, str) and ended else "unknown",
            waited_s=waited_s,
            usage_is_bound=is_bound,
            note=f"not accepted by the server and left out: {', '.join(dropped)}" if dropped else "",
        )


def _without(request: dict[str, Any], refused: str) -> dict[str, Any]:
    """The request without a parameter; the limit on output is not given up but called by its other name."""
    rest = {key: value for key, value in request.items() if key != refused}
    return {**rest, _OTHER_NAME[refused]: request[refused]} if refused in _OTHER_NAME else rest


def _reported(usage: CompletionUsage | None) -> Usage | None:
    """The server's own count, made consistent: some servers leave fields out, null, or in a type of their own."""
    spent, said = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    if spent is None or said is None:
        return None
    cached = _count(getattr(usage, "prompt_tokens_details", None), "cached_tokens") or 0
    reasoning = _count(getattr(usage, "completion_tokens_details", None), "reasoning_tokens") or 0
    return Usage(input=spent, cached=min(cached, spent), output=said, reasoning=min(reasoning, said))


def _count(part: object, name: str) -> int | None:
    """A number of tokens; None if there is none to be read or believed. Negative ones count as 0."""
    value = getattr(part, name, None)
    if not isinstance(value, int | float) or not abs(value) <= MOST_TOKENS:
        return None
    return max(0, int(value))


def _tellable(text: str) -> str:
    """A lone surrogate could be told to nobody."""
    return text.encode(errors="replace").decode()


def _bound(response: httpx2.Response, seconds: float) -> None:
    """Have the body end: a timeout of the client's own is for a silence, not for a server that goes on and on."""
    assert isinstance(response.stream, httpx2.SyncByteStream)
    response.stream = _Bounded(response.stream, seconds)


class _Bounded(httpx2.SyncByteStream):
    """A body that breaks off when it takes too long or grows too large, as if the connection had."""

    def __init__(self, stream: httpx2.SyncByteStream, seconds: float) -> None:
        self._stream, self._seconds = stream, seconds

    def __iter__(self) -> Iterator[bytes]:
        deadline, size = time.monotonic() + self._seconds, 0
        for part in self._stream:
            size += len(part)
            if size > ANSWER_LIMIT:
                raise httpx2.ReadError(f"an answer is limited to {ANSWER_LIMIT} bytes")
            if time.monotonic() > deadline:
                raise httpx2.ReadTimeout(f"an answer is limited to {self._seconds:.0f} seconds")
            yield part

    def close(self) -> None:
        self._stream.close()
