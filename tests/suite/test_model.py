"""The model client against a real server on loopback that answers as it is told: retries, refusals, usage, secrets."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from suite import tuner
from suite.errors import InfraError, ModelError
from suite.events import Message
from suite.loopback import serve_app
from suite.model import OpenAIModel, Patience
from suite.types import ModelSpec, Usage
from suite.workbench import Reply

KEY = "sk-very-secret-0123456789abcdef"
QUICK = Patience(attempts=4, first_s=0.001, longest_s=0.002, timeout_s=20)
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def completion(
    text: str | None = "hello", usage: dict[str, Any] | None = USAGE, finish: str | None = "stop"
) -> Response:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    return json_response(
        {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
    )


def json_response(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(json.dumps(body), status, headers, media_type="application/json")


def failure(status: int, message: str = "no", code: str | None = None, param: str | None = None) -> Response:
    return json_response({"error": {"message": message, "type": "t", "code": code, "param": param}}, status)


class Provider:
    """Gives the answers it was set to in order, the last one for ever; keeps what it was sent."""

    def __init__(self) -> None:
        self.set()

    def set(self, *answers: Response) -> None:
        self.answers = answers
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []

    async def respond(self, request: Request) -> Response:
        self.bodies.append(json.loads(await request.body()))
        self.headers.append(dict(request.headers))
        return self.answers[min(len(self.bodies), len(self.answers)) - 1]


@contextmanager
def running() -> Iterator[tuple[Provider, str]]:
    it = Provider()
    with serve_app(Starlette(routes=[Route("/v1/chat/completions", it.respond, methods=["POST"])])) as address:
        yield it, f"{address}/v1"


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Provider, str]]:
    with running() as served:
        yield served


Provide = Callable[..., tuple[Provider, str]]


@pytest.fixture
def provider(server: tuple[Provider, str]) -> Provide:
    """Set the server's answers; returns it and its address."""

    def provide(*answers: Response) -> tuple[Provider, str]:
        server[0].set(*answers)
        return server

    return provide


def spec(**changes: Any) -> ModelSpec:
    return ModelSpec(**{"provider": "openai", "name": "some-model", **changes})


def ask(address: str, asked: ModelSpec | None = None, words: str = "question") -> Reply:
    model = OpenAIModel(asked or spec(), address, KEY, QUICK)
    return model.chat([Message(role="user", content=words)], max_output_tokens=100, seed=3, edit_format="whole")


# ---------------------------------------------------------------------------------------------- answers


def test_an_answer_comes_with_its_usage(provider: Provide) -> None:
    details = {"prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 3}}
    _, address = provider(completion("hi", {**USAGE, **details}, "length"))
    reply = ask(address)
    assert (reply.text, reply.finish_reason) == ("hi", "length")
    assert reply.usage == Usage(input=10, cached=4, output=5, reasoning=3)
    assert not reply.usage_is_bound and reply.note == ""


@pytest.mark.parametrize("usage", [None, {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, {}])
def test_usage_that_is_not_reported_is_counted_from_above_and_marked(
    provider: Provide, usage: dict[str, Any] | None
) -> None:
    _, address = provider(completion("ä" * 10, usage))
    reply = ask(address, words="ö" * 50)
    assert reply.usage_is_bound
    assert reply.usage.output == 20
    assert 100 <= reply.usage.input <= 150


def test_inconsistent_details_are_brought_into_bounds(provider: Provide) -> None:
    details = {"prompt_tokens_details": {"cached_tokens": 99}, "completion_tokens_details": {"reasoning_tokens": None}}
    _, address = provider(completion("x", {**USAGE, **details}))
    assert ask(address).usage == Usage(input=10, cached=10, output=5, reasoning=0)


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 9.5, "completion_tokens": 5.0},
        {"prompt_tokens": float("inf"), "completion_tokens": float("nan")},
        {"prompt_tokens": [1], "completion_tokens": {}},
        {**USAGE, "prompt_tokens_details": "many", "completion_tokens_details": [1]},
        [1],
        "fifteen",
    ],
)
def test_usage_of_any_shape_is_read_or_bounded(provider: Provide, usage: Any) -> None:
    _, address = provider(completion("hello", usage))
    reply = ask(address)
    assert reply.usage.input > 0 and reply.usage.output >= 5


def test_text_that_is_no_unicode_can_be_told_to_the_method(provider: Provide) -> None:
    _, address = provider(completion("a \ud800 b"))
    assert ask(address).text == "a ? b"


def shapeless(**changes: Any) -> Response:
    return json_response({**json.loads(bytes(completion().body)), **changes})


@pytest.mark.parametrize(
    "answer",
    [
        Response(b"", media_type="application/json"),
        Response(b"<html>", media_type="application/json"),
        Response(b'{"choices": [', media_type="application/json"),
        Response(b'{"a": "\xff"}', media_type="application/json"),
        Response(b"[" * 100_000, media_type="application/json"),
        shapeless(choices=[{"message": {"content": 5}}]),
        shapeless(choices=[{"message": {"content": [{"type": "text", "text": "x"}]}}]),
    ],
)
def test_an_unreadable_answer_is_the_servers_and_may_pass_if_it_once_answered(
    provider: Provide, answer: Response
) -> None:
    _, address = provider(answer)
    with pytest.raises(ModelError, match="not with a chat completion"):
        ask(address)
    provider(completion(), answer)
    model = OpenAIModel(spec(), address, KEY, QUICK)
    words = [Message(role="user", content="question")]
    model.chat(words, max_output_tokens=100, seed=3, edit_format="whole")
    with pytest.raises(InfraError, match="can not be read"):
        model.chat(words, max_output_tokens=100, seed=3, edit_format="whole")


@pytest.mark.parametrize("choices", [["x"], [None], [{"message": "x"}], [{"message": {}, "finish_reason": 5}]])
def test_a_choice_that_is_none_is_an_empty_answer(provider: Provide, choices: list[Any]) -> None:
    _, address = provider(shapeless(choices=choices))
    assert (ask(address).text, ask(address).finish_reason) in {("", "unknown"), ("", "stop")}


@pytest.mark.parametrize("text", [None, ""])
def test_an_empty_answer_is_an_answer(provider: Provide, text: str | None) -> None:
    _, address = provider(completion(text, finish=None))
    reply = ask(address)
    assert (reply.text, reply.finish_reason) == ("", "unknown")


def test_no_choice_at_all_is_an_empty_answer(provider: Provide) -> None:
    body = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [], "usage": USAGE}
    _, address = provider(json_response(body))
    assert ask(address).text == ""


# ---------------------------------------------------------------------------------------------- requests


def test_the_races_policy_is_what_is_sent(provider: Provide) -> None:
    it, address = provider(completion())
    ask(address, spec(effort="high", temperature=0.5))
    (body,) = it.bodies
    assert body["messages"] == [{"role": "user", "content": "question"}]
    assert (body["model"], body["seed"], body["temperature"]) == ("some-model", 3, 0.5)
    assert (body["reasoning_effort"], body["max_tokens"]) == ("high", 100)
    assert "x-derby-edit-format" not in it.headers[0]


def test_what_is_not_set_is_not_sent(provider: Provide) -> None:
    it, address = provider(completion())
    ask(address)
    assert not {"temperature", "reasoning_effort", "max_completion_tokens"} & it.bodies[0].keys()


def test_text_that_is_no_unicode_can_be_sent(provider: Provide) -> None:
    it, address = provider(completion())
    ask(address, words="a\ud800b")
    assert it.bodies[0]["messages"][0]["content"] == "a?b"


@pytest.mark.parametrize(
    "refusal",
    [
        failure(400, "Unsupported parameter", param="reasoning_effort"),
        failure(400, "Unrecognized request argument supplied: reasoning_effort"),
        json_response({"detail": [{"loc": ["body", "reasoning_effort"], "msg": "extra"}]}, 422),
    ],
)
def test_an_effort_the_server_rejects_is_left_out_for_good_and_noted(provider: Provide, refusal: Response) -> None:
    it, address = provider(refusal, completion(), completion())
    model = OpenAIModel(spec(effort="high"), address, KEY, QUICK)
    question = [Message(role="user", content="q")]
    notes = [model.chat(question, max_output_tokens=9, seed=1, edit_format="whole").note for _ in range(2)]
    assert ["reasoning_effort" in body for body in it.bodies] == [True, False, False]
    assert all("reasoning_effort" in note for note in notes)


def test_the_limit_on_output_is_kept_under_its_other_name(provider: Provide) -> None:
    it, address = provider(failure(400, "Unsupported parameter: 'max_tokens'", param="max_tokens"), completion())
    assert ask(address).note == ""
    assert it.bodies[1]["max_completion_tokens"] == 100
    assert "max_tokens" not in it.bodies[1]


def test_a_server_that_knows_neither_name_is_an_error(provider: Provide) -> None:
    answers = [failure(400, "bad", param="max_tokens"), failure(400, "bad", param="max_completion_tokens")]
    it, address = provider(*answers)
    with pytest.raises(ModelError):
        ask(address)
    assert len(it.bodies) == 2


# ---------------------------------------------------------------------------------------------- failures


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_what_may_pass_is_tried_again_and_the_waiting_told_apart(provider: Provide, status: int) -> None:
    it, address = provider(failure(status), failure(status), completion())
    reply = ask(address)
    assert reply.text == "hello"
    assert len(it.bodies) == 3
    assert reply.waited_s > 0


def test_what_does_not_pass_is_a_failure_of_ours_after_a_bounded_number_of_attempts(provider: Provide) -> None:
    it, address = provider(failure(503, "overloaded"))
    with pytest.raises(InfraError, match=r"4 times.*overloaded"):
        ask(address)
    assert len(it.bodies) == QUICK.attempts


@pytest.mark.parametrize("value", ["0.001", "0", "-5", "nan", "soon", "Wed, 21 Oct 2015 07:28:00 GMT", ""])
def test_any_retry_after_is_survived(provider: Provide, value: str) -> None:
    busy = json_response({"error": {"message": "slow down"}}, 429, {"retry-after": value})
    _, address = provider(busy, completion())
    assert ask(address).text == "hello"


def test_the_servers_wish_for_patience_is_granted(provider: Provide) -> None:
    busy = json_response({"error": {"message": "slow down"}}, 429, {"retry-after": "0.2"})
    _, address = provider(busy, completion())
    assert ask(address).waited_s >= 0.2


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (failure(401, f"Incorrect API key provided: {KEY}"), "OPENAI_API_KEY"),
        (failure(403, "not yours"), "forbids"),
        (failure(404, "The model does not exist", "model_not_found"), "has no model 'some-model'"),
        (failure(400, "invalid model: some-model"), "has no model"),
        (failure(429, "You exceeded your quota", "insufficient_quota"), "credit"),
        (failure(402, "Payment required"), "credit"),
        (failure(400, f"what is this? {KEY}"), "what is this"),
        (failure(405, "no"), "refused the request"),
        (PlainTextResponse("<html>welcome</html>"), "chat completion"),
        (json_response({"hello": 1}), "chat completion"),
        (json_response({"choices": "none"}), "chat completion"),
    ],
)
def test_what_only_the_user_can_mend_is_said_at_once_without_the_key(
    provider: Provide, answer: Response, words: str
) -> None:
    it, address = provider(answer)
    with pytest.raises(ModelError, match=words) as caught:
        ask(address)
    assert len(it.bodies) == 1
    assert KEY not in str(caught.value)
    assert caught.value.expected and caught.value.todo


@pytest.mark.parametrize(
    "answer",
    [
        failure(400, "This model's maximum context length is 8192 tokens", "context_length_exceeded"),
        failure(400, "the request exceeds the available context size, try increasing max_tokens"),
        failure(413, "too large"),
        failure(400, "flagged", "content_filter"),
    ],
)
def test_a_refused_prompt_is_an_empty_answer_that_costs_nothing(provider: Provide, answer: Response) -> None:
    it, address = provider(answer)
    reply = ask(address)
    assert (reply.text, reply.finish_reason, reply.usage) == ("", "refused", Usage())
    assert reply.note
    assert len(it.bodies) == 1


def test_an_address_where_nobody_answers_is_named() -> None:
    with running() as (_, address):
        pass
    with pytest.raises(ModelError, match=address):
        ask(address)


def test_a_server_that_goes_away_in_the_middle_is_a_failure_of_ours() -> None:
    question = [Message(role="user", content="q")]
    with running() as (it, address):
        it.set(completion())
        model = OpenAIModel(spec(), address, KEY, QUICK)
        model.chat(question, max_output_tokens=9, seed=1, edit_format="whole")
    with pytest.raises(InfraError, match="4 times"):
        model.chat(question, max_output_tokens=9, seed=1, edit_format="whole")


@pytest.mark.parametrize("address", ["localhost:8000/v1", "ftp://host/v1", "http://", "http://host:port/v1", "/v1"])
def test_what_is_no_address_is_refused_before_anything_is_sent(address: str) -> None:
    with pytest.raises(ModelError, match="not a URL"):
        OpenAIModel(spec(), address, KEY)


def test_without_an_address_the_environment_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://somewhere:1/v1")
    assert "somewhere" in repr(OpenAIModel(spec(), None, KEY))
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert "api.openai.com" in repr(OpenAIModel(spec(), None, KEY))


# ---------------------------------------------------------------------------------------------- secrets


def test_keys_are_in_no_representation_and_no_log(provider: Provide, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    it, address = provider(failure(500, f"crash near {KEY}"))
    model = OpenAIModel(spec(), address, KEY, QUICK)
    with pytest.raises(InfraError) as caught:
        model.chat([Message(role="user", content="q")], max_output_tokens=9, seed=1, edit_format="whole")
    assert it.headers[0]["authorization"] == f"Bearer {KEY}"
    for text in (repr(model), str(model), str(caught.value), caplog.text):
        assert KEY not in text


def test_an_address_with_a_password_is_refused_because_addresses_are_recorded() -> None:
    with pytest.raises(ModelError, match="user name or password") as caught:
        OpenAIModel(spec(), "https://user:word@host/v1", KEY)
    assert "word@" not in str(caught.value)


# ---------------------------------------------------------------------------------------------- with the tuner


def test_the_tuner_is_told_the_edit_format() -> None:
    prompt = [Message(role="user", content="```\nint k = 1;  // tune: k in {1, 2}\n```")]
    with tuner.serve() as address:
        model = OpenAIModel(ModelSpec(provider="tuner", name="tuner"), address, "none")
        whole = model.chat(prompt, max_output_tokens=100, seed=1, edit_format="whole")
        edits = model.chat(prompt, max_output_tokens=100, seed=1, edit_format="search_replace")
    assert "int k = 2;" in whole.text and "SEARCH" not in whole.text
    assert "<<<<<<< SEARCH\nint k = 1;" in edits.text
    assert whole.usage.total > 0
