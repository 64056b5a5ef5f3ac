"""A model server that means harm: answers without end, numbers that can not be, words that no text can hold."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from starlette.responses import Response, StreamingResponse

from suite.errors import ModelError
from suite.events import Message
from suite.model import WORD_LIMIT, OpenAIModel, Patience
from suite.workbench import Reply
from tests.suite.test_model import KEY, USAGE, completion, running, spec


def told(answer: Response, timeout_s: float = 60) -> Reply:
    with running() as (server, address):
        server.set(answer)
        model = OpenAIModel(spec(), address, KEY, Patience(attempts=1, timeout_s=timeout_s))
        return model.chat([Message(role="user", content="x")], max_output_tokens=9, seed=1, edit_format="whole")


async def without_end(pause_s: float, size: int) -> AsyncIterator[bytes]:
    while True:
        yield b" " * size
        await asyncio.sleep(pause_s)


@pytest.mark.parametrize(("pause_s", "size"), [(0.02, 1), (0.0, 1 << 20)])
def test_an_answer_without_end_is_broken_off(pause_s: float, size: int) -> None:
    answer = StreamingResponse(without_end(pause_s, size), media_type="application/json")
    with pytest.raises(ModelError):
        told(answer, 0.5 if pause_s else 60)


@pytest.mark.parametrize("count", [10**400, -(10**400), 10**12, 1e308])
def test_a_number_of_tokens_that_can_not_be_is_not_believed(count: float) -> None:
    reply = told(completion("hi", {**USAGE, "completion_tokens": count}))
    assert reply.usage_is_bound and reply.usage.output == 2


def test_a_finish_reason_can_be_told_to_the_method_and_is_short() -> None:
    assert told(completion(finish="\ud800" * 1000)).finish_reason == "?" * WORD_LIMIT
