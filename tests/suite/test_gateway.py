"""The door lets in only who has the token, survives whatever is pushed through it, and speaks OpenAI's protocol."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from suite.bench import TrialBench
from suite.door import BODY_LIMIT
from suite.errors import InfraError, ModelError
from suite.events import ModelCalled
from suite.gateway import serve
from suite.ledger import Ledger, read
from suite.loopback import MOST_CONNECTIONS
from suite.scripted import ScriptedEvaluator, ScriptedModel
from suite.types import Budget
from tests.suite.stage import candidate, order
from tests.suite.test_workbench import Recording

Json = dict[str, Any]


class House:
    """A bench behind its open door."""

    def __init__(self, bench: TrialBench, stop: threading.Event, url: str, token: str) -> None:
        self.bench, self.stop, self.url, self.token = bench, stop, url, token
        self.http = httpx2.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=20)

    def ask(self, **changes: Any) -> httpx2.Response:
        messages = [{"role": "user", "content": "hello"}]
        return self.http.post("/v1/chat/completions", json={"model": "m", "messages": messages, **changes})

    def judge(self, **changes: Any) -> httpx2.Response:
        body = {"candidate": candidate("// a").model_dump(mode="json"), **changes}
        return self.http.post("/derby/evaluate", json=body)

    def alive(self) -> bool:
        return self.http.get("/derby/left").status_code == 200


@contextmanager
def open_house(folder: Path, model: Any, budget: Budget) -> Iterator[House]:
    stop = threading.Event()
    trial = order(folder, budget=budget)
    with Ledger.open(folder / "ledger.jsonl") as ledger:
        bench = TrialBench.over(trial, ledger, ScriptedEvaluator(), model, stop)
        bench.judge_starter()
        bench.start()
        with serve(bench) as (url, token):
            house = House(bench, stop, url, token)
            yield house
            house.http.close()


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with open_house(tmp_path, ScriptedModel(["a reply"]), Budget(evaluations=3, tokens=100_000)) as opened:
        yield opened


def trouble(response: httpx2.Response, status: int) -> Json:
    assert response.status_code == status
    error = response.json()["error"]
    assert isinstance(error, dict) and isinstance(error["message"], str) and error["message"]
    return error


# ---------------------------------------------------------------------------------------------- the lock


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer wrong", "Basic abc", "Bearer \xe9"])
@pytest.mark.parametrize("place", ["/derby/task", "/v1/models", "/nowhere"])
def test_nobody_enters_without_the_token(house: House, header: str | None, place: str) -> None:
    headers = {} if header is None else {b"Authorization": header.encode("latin-1")}
    trouble(httpx2.get(house.url + place, headers=headers), 401)


def test_every_trial_has_a_door_and_a_token_of_its_own(tmp_path: Path, house: House) -> None:
    with open_house(tmp_path / "other", None, Budget(evaluations=1)) as other:
        assert other.url != house.url and other.token != house.token
        trouble(httpx2.get(other.url + "/derby/task", headers=house.http.headers), 401)


def test_the_door_is_on_loopback_and_closed_after_the_trial(tmp_path: Path) -> None:
    with open_house(tmp_path, None, Budget(evaluations=1)) as house:
        url = house.url
    assert url.startswith("http://127.0.0.1:")
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(url)


# ---------------------------------------------------------------------------------------------- hostile requests


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"null", 422),
        (b"{}", 422),
        (b"[" * 100_000, 422),
        (b'{"a":' * 50_000, 422),
        (b'{"candidate": ' + b"9" * 100_000 + b"}", 422),
        (b"\xff\xfe\x00", 422),
        (b'"\\ud800"', 422),
        (b"x" * (BODY_LIMIT + 1), 413),
    ],
)
@pytest.mark.parametrize("place", ["/derby/evaluate", "/v1/chat/completions"])
def test_hostile_bodies_are_refused(house: House, place: str, body: bytes, status: int) -> None:
    assert trouble(house.http.post(place, content=body), status)["type"] == "invalid_request_error"
    assert house.alive()
    assert house.bench.left().evaluations == 3


def test_a_body_without_a_stated_length_is_limited_too(house: House) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(BODY_LIMIT // 65536 + 10):
            yield b"x" * 65536

    with suppress(httpx2.TransportError):  # refused while it was still being sent
        assert house.http.post("/derby/evaluate", content=endless()).status_code == 413
    assert house.alive()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=JSON, field=st.sampled_from(["candidate", "parent", "note", "messages", "stream", "n", "tools"]))
def test_no_json_brings_the_door_down(house: House, value: Any, field: str) -> None:
    assert house.judge(**{"candidate": None, field: value}).status_code == 422
    assert house.ask(**{"messages": [], field: value}).status_code in (200, 402, 422)


@pytest.mark.parametrize(
    "changes",
    [
        {"parent": "../../etc"},
        {"parent": "A" * 16},
        {"extra": 1},
        {"candidate": {"sources": []}},
        {"predicted": {"speedup": -1}},
        {"predicted": {"value": 1.5}},
    ],
)
def test_unknown_or_malformed_fields_are_named(house: House, changes: Json) -> None:
    message = trouble(house.judge(**changes), 422)["message"]
    assert next(iter(changes)) in message


def test_wrong_places_and_methods_are_json_too(house: House) -> None:
    trouble(house.http.get("/nowhere"), 404)
    trouble(house.http.get("/derby/evaluate"), 405)
    trouble(house.http.post("/v1/responses", json={}), 404)


def test_rubbish_instead_of_http_hurts_nobody(house: House) -> None:
    port = int(house.url.rsplit(":", 1)[1])
    for rubbish in (
        b"\x00" * 1000,
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /derby/evaluate HTTP/1.1\r\nContent-Length: 9\r\n",
    ):
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(rubbish)
    assert house.alive()


# ---------------------------------------------------------------------------------------------- our words


def test_a_candidate_is_judged(house: House) -> None:
    told = house.judge(note="first").json()
    assert told["number"] == 1 and told["status"] == "PASSED" and not told["free"]
    assert house.judge().json()["free"]
    assert [item["number"] for item in house.http.get("/derby/history").json()] == [0, 1]
    assert house.http.get("/derby/left").json()["evaluations"] == 2


def test_the_task_is_told_without_what_is_undisclosed(house: House) -> None:
    text = house.http.get("/derby/task").text
    assert json.loads(text).keys() == {"brief", "starter", "language", "seed", "folder", "concurrency"}
    assert "hidden" not in text and "held" not in text


def test_a_spent_budget_is_402_and_names_itself(house: House) -> None:
    for step in range(3):
        assert house.judge(candidate=candidate(f"// {step}").model_dump(mode="json")).status_code == 200
    error = trouble(house.judge(candidate=candidate("// more").model_dump(mode="json")), 402)
    assert (error["type"], error["code"]) == ("budget_exhausted", "evaluations")


def test_a_stop_is_503(house: House) -> None:
    house.stop.set()
    response = house.judge()
    assert trouble(response, 503)["type"] == "stopped"
    assert response.headers["x-should-retry"] == "false"


def test_an_error_of_the_suite_is_500_and_the_trials_to_know(tmp_path: Path) -> None:
    with open_house(tmp_path, Recording([ZeroDivisionError("secret")]), Budget(evaluations=1)) as house:
        error = trouble(house.ask(), 500)
        assert "secret" not in json.dumps(error) and error["type"] == "server_error"
        assert isinstance(house.bench.desk.crash, ZeroDivisionError)


def test_a_model_out_of_reach_is_503_in_three_parts(tmp_path: Path) -> None:
    with open_house(tmp_path, Recording([ModelError("no key", "a key", "set it")]), Budget(evaluations=1)) as house:
        error = trouble(house.ask(), 503)
        assert (error["type"], error["message"], error["todo"]) == ("model_unavailable", "no key", "set it")


# ---------------------------------------------------------------------------------------------- OpenAI's words


def client(house: House) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{house.url}/v1", api_key=house.token)


def test_openais_client_gets_its_completion(house: House) -> None:
    with client(house) as api:
        done = api.chat.completions.create(
            model="whatever", messages=[{"role": "user", "content": "hello"}], temperature=2.0, max_tokens=7, seed=1
        )
        assert done.choices[0].message.content == "a reply" and done.choices[0].finish_reason == "stop"
        assert done.model == "canned" and done.usage is not None and done.usage.total_tokens == 2
        assert [model.id for model in api.models.list()] == ["canned"]


def test_openais_client_can_stream(house: House) -> None:
    with client(house) as api:
        chunks = list(
            api.chat.completions.create(model="m", messages=[{"role": "user", "content": "hello"}], stream=True)
        )
    assert [chunk.choices[0].delta.content for chunk in chunks] == ["a reply"]
    assert chunks[0].choices[0].finish_reason == "stop"


def test_text_in_parts_and_newer_roles_are_understood(tmp_path: Path) -> None:
    with open_house(tmp_path, Recording(), Budget(evaluations=1)) as house:
        messages = [
            {"role": "developer", "content": [{"type": "text", "text": "be "}, {"type": "text", "text": "quick"}]},
            {"role": "assistant", "content": None},
            {"role": "user", "content": "go", "name": "x"},
        ]
        assert house.ask(messages=messages).status_code == 200
        events = [entry.event for entry in read(tmp_path / "ledger.jsonl")]
        called = next(event for event in events if isinstance(event, ModelCalled))
        assert [(message.role, message.content) for message in called.messages] == [
            ("system", "be quick"),
            ("assistant", ""),
            ("user", "go"),
        ]


@pytest.mark.parametrize(
    "changes",
    [
        {"tools": [{"type": "function"}]},
        {"n": 2},
        {"messages": []},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
        {"messages": [{"role": "tool", "content": "x"}]},
    ],
)
def test_what_can_not_be_honoured_is_refused(house: House, changes: Json) -> None:
    trouble(house.ask(**changes), 422)


def test_the_edit_format_is_passed_on(tmp_path: Path) -> None:
    with open_house(tmp_path, Recording(), Budget(evaluations=1)) as house:
        house.http.headers["X-Derby-Edit-Format"] = "search_replace"
        assert house.ask().json()["choices"][0]["message"]["content"].startswith("search_replace")
        house.http.headers["X-Derby-Edit-Format"] = "haiku"
        trouble(house.ask(), 422)


def test_a_client_without_headers_names_the_edit_format_in_the_path(tmp_path: Path) -> None:
    with open_house(tmp_path, Recording(), Budget(evaluations=1)) as house:
        with openai.OpenAI(base_url=f"{house.url}/search_replace/v1", api_key=house.token, max_retries=0) as api:
            said = api.chat.completions.create(model="m", messages=[{"role": "user", "content": "hello"}])
            assert (said.choices[0].message.content or "").startswith("search_replace")
            assert [model.id for model in api.models.list()]
        body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
        trouble(house.http.post("/haiku/v1/chat/completions", json=body), 422)


def test_openais_client_does_not_ask_again_once_the_trial_is_suspended(tmp_path: Path) -> None:
    model = Recording([InfraError("overload")] * 3)
    with open_house(tmp_path, model, Budget(tokens=10_000)) as house:
        with client(house) as api, pytest.raises(openai.InternalServerError) as stopped:
            api.chat.completions.create(model="m", messages=[{"role": "user", "content": "hello"}])
        assert stopped.value.status_code == 503 and len(model.seeds) == 3
        assert house.bench.desk.suspended is not None


def test_connections_beyond_a_number_are_cut_and_the_others_served(tmp_path: Path) -> None:
    with open_house(tmp_path, ScriptedModel(["x"]), Budget(evaluations=1)) as house, ExitStack() as held:
        assert house.alive()
        address = "127.0.0.1", int(house.url.rpartition(":")[2])
        crowd = [held.enter_context(socket.create_connection(address, timeout=10)) for _ in range(MOST_CONNECTIONS)]
        with suppress(ConnectionResetError):
            assert crowd[-1].recv(1) == b""
        assert house.alive()
