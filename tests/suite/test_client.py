"""The client is the same workbench from the other side of the door: same answers, same endings."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pydantic import ValidationError

from suite.client import GATEWAY, TOKEN, GatewayBench
from suite.door import TaskReply
from suite.errors import BudgetExhausted, InfraError, ModelError, Stopped
from suite.events import Evaluated, Message
from suite.ledger import read
from suite.scripted import ScriptedModel
from suite.types import Budget, Prediction
from suite.workbench import Workbench
from tests.suite.stage import STARTER, candidate
from tests.suite.test_gateway import House, open_house
from tests.suite.test_workbench import Recording

ASK = [Message(role="user", content="faster, please")]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with open_house(tmp_path, ScriptedModel(["a reply"]), Budget(evaluations=2)) as opened:
        yield opened


@pytest.fixture
def bench(house: House) -> Iterator[GatewayBench]:
    with GatewayBench(house.url, house.token) as opened:
        yield opened


def test_the_client_is_a_workbench_equal_to_the_trials(house: House, bench: GatewayBench) -> None:
    here: Workbench = bench
    there: Workbench = house.bench
    for name in ("brief", "starter", "language", "seed", "folder", "concurrency"):
        assert getattr(here, name) == getattr(there, name)
    assert here.evaluate(candidate("// scripted: 1.7")) == there.history()[-1]
    assert here.history() == there.history()
    assert here.left() == there.left()


def test_a_reply_arrives_whole(tmp_path: Path) -> None:
    with (
        open_house(tmp_path, Recording(), Budget(tokens=10_000)) as house,
        GatewayBench(house.url, house.token) as bench,
    ):
        reply = bench.chat(ASK, "search_replace")
        assert reply.text.startswith("search_replace ")
        assert (reply.usage.input, reply.usage.output, reply.finish_reason) == (10, 5, "length")


def test_note_parent_and_prediction_reach_the_ledger(house: House, bench: GatewayBench) -> None:
    bench.evaluate(candidate("// a"), parent=STARTER.id, note="why", predicted=Prediction(speedup=1.5, value=0.7))
    event = read(house.bench.folder.parent / "ledger.jsonl")[-1].event
    assert isinstance(event, Evaluated)
    assert (event.parent, event.note, event.predicted) == (STARTER.id, "why", Prediction(speedup=1.5, value=0.7))
    with pytest.raises(ValueError, match="pattern"):
        bench.evaluate(candidate("// b"), parent="nobody")


def test_every_ending_has_its_exception(house: House, bench: GatewayBench) -> None:
    bench.evaluate(candidate("// a"))
    bench.evaluate(candidate("// b"))
    with pytest.raises(BudgetExhausted) as spent:
        bench.evaluate(candidate("// c"))
    assert spent.value.kind == "evaluations"
    house.stop.set()
    with pytest.raises(Stopped):
        bench.chat(ASK)


def test_a_model_out_of_reach_keeps_its_three_parts(tmp_path: Path) -> None:
    model = Recording([ModelError("no key", "a key", "set it")])
    with open_house(tmp_path, model, Budget(tokens=10_000)) as house, GatewayBench(house.url, house.token) as bench:
        with pytest.raises(ModelError) as refusal:
            bench.chat(ASK)
        assert (refusal.value.came, refusal.value.expected, refusal.value.todo) == ("no key", "a key", "set it")


def test_an_error_of_the_suite_is_not_the_methods(tmp_path: Path) -> None:
    model = Recording([ZeroDivisionError()])
    with (
        open_house(tmp_path, model, Budget(tokens=10_000)) as house,
        GatewayBench(house.url, house.token) as bench,
        pytest.raises(InfraError, match="the suite failed"),
    ):
        bench.chat(ASK)


def test_a_closed_door_and_a_wrong_token_are_sentences(house: House) -> None:
    with pytest.raises(InfraError, match="does not answer"):
        GatewayBench("http://127.0.0.1:1", "x")
    with pytest.raises(ValueError, match="token"):
        GatewayBench(house.url, "wrong")


def test_one_client_serves_many_threads(house: House, bench: GatewayBench) -> None:
    told = []

    def work() -> None:
        for _ in range(5):
            told.append(bench.chat(ASK).text)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == ["a reply"] * 30


@contextmanager
def one_answer_a_connection(reply: bytes) -> Iterator[tuple[str, threading.Semaphore]]:
    """A server that closes each connection after one answer, unasked; yields its address and a count of these ends."""
    cut = threading.Semaphore(0)

    def answer() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(reply), reply))
            cut.release()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", cut
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_an_idle_connection_that_was_cut_is_opened_anew(tmp_path: Path) -> None:
    told = TaskReply(brief="b", starter=STARTER, language=STARTER.spec.language, seed=0, folder=tmp_path, concurrency=1)
    with one_answer_a_connection(told.model_dump_json().encode()) as (url, cut), GatewayBench(url, "x") as bench:
        for _ in range(3):
            cut.acquire()
            with pytest.raises(ValidationError):  # it has been answered, if with a task
                bench.left()


def test_a_foreign_framework_finds_the_door_in_its_environment(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(GATEWAY, house.url)
    monkeypatch.setenv(TOKEN, house.token)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with GatewayBench.from_environment() as bench:
        assert bench.brief == house.bench.brief


def test_the_methods_side_loads_nothing_of_the_referees_side() -> None:
    heavy = (
        "{'scipy', 'numpy', 'torch', 'openai', 'uvicorn', 'starlette', 'suite.ledger', 'suite.trial', 'suite.score'}"
    )
    code = f"import sys, suite.host; print({heavy} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"
