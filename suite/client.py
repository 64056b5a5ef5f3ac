"""The workbench as a method's process has it: a thin client of the gateway."""

from __future__ import annotations

import json
import os
import select
from collections import deque
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import TracebackType
from typing import NoReturn
from urllib.parse import urlsplit

from pydantic import ValidationError

from suite.door import EDIT_FORMAT_HEADER, HISTORY, EvaluateRequest, TaskReply, TroubleBody, reply_of
from suite.errors import BudgetExhausted, InfraError, ModelError, Stopped
from suite.events import Message
from suite.types import Candidate, Language, Prediction
from suite.workbench import EditFormat, Feedback, Left, Reply

GATEWAY = "DERBY_GATEWAY"
"""Environment variable with the gateway's address; "/v1" beneath it is OpenAI's protocol."""

TOKEN = "DERBY_TOKEN"
"""Environment variable with the bearer token."""


class GatewayBench:
    """A `Workbench` over loopback HTTP. Thread-safe: each call under way has a connection of its own.

    No call has a timeout: it lasts as long as what it asks for, and a gateway that dies takes this process with it.
    """

    def __init__(self, url: str, token: str) -> None:
        """`url` is the gateway's address; asks it at once for what does not change. Raises `InfraError`."""
        address = urlsplit(url)
        self._host, self.port = address.hostname or "", address.port or 80
        self._authorization = {"Authorization": f"Bearer {token}"}
        self._idle: deque[HTTPConnection] = deque()
        try:
            task = TaskReply.model_validate_json(self._call("GET", "/derby/task"))
        except BaseException:
            self.close()
            raise
        self.brief: str = task.brief
        self.starter: Candidate = task.starter
        self.language: Language = task.language
        self.seed: int = task.seed
        self.folder: Path = task.folder
        self.concurrency: int = task.concurrency

    @classmethod
    def from_environment(cls) -> GatewayBench:
        """The bench of this process's trial: every method has its address and token in the environment."""
        return cls(os.environ[GATEWAY], os.environ[TOKEN])

    def evaluate(
        self, candidate: Candidate, parent: str | None = None, note: str = "", predicted: Prediction | None = None
    ) -> Feedback:
        """See `Workbench.evaluate`. Raises `ValueError` for what the gateway can not read."""
        request = EvaluateRequest(candidate=candidate, parent=parent, note=note, predicted=predicted)
        return Feedback.model_validate_json(self._call("POST", "/derby/evaluate", request.model_dump_json()))

    def chat(self, messages: Sequence[Message], edit_format: EditFormat = "whole") -> Reply:
        """See `Workbench.chat`."""
        body = {"model": "", "messages": [message.model_dump(mode="json") for message in messages]}
        headers = {EDIT_FORMAT_HEADER: edit_format}
        return reply_of(json.loads(self._call("POST", "/v1/chat/completions", json.dumps(body), headers)))

    def left(self) -> Left:
        """See `Workbench.left`."""
        return Left.model_validate_json(self._call("GET", "/derby/left"))

    def history(self) -> tuple[Feedback, ...]:
        """See `Workbench.history`."""
        return HISTORY.validate_json(self._call("GET", "/derby/history"))

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def __enter__(self) -> GatewayBench:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _call(self, method: str, path: str, body: str = "", headers: Mapping[str, str] | None = None) -> bytes:
        """The body of the gateway's answer."""
        connection = self._connection()
        try:
            told = {**self._authorization, "Content-Type": "application/json", **(headers or {})}
            connection.request(method, path, body.encode(), told)
            response = connection.getresponse()
            status, content = response.status, response.read()
        except (OSError, HTTPException) as failure:
            connection.close()
            raise InfraError(f"the gateway does not answer: {failure}") from failure
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        if status != 200:
            _refuse(status, content)
        return content

    def _connection(self) -> HTTPConnection:
        """One that no other call uses; an idle one is taken up again unless the gateway has given it up."""
        try:
            connection = self._idle.pop()
        except IndexError:
            return HTTPConnection(self._host, self.port)
        if connection.sock is not None and select.select([connection.sock], [], [], 0)[0]:
            connection.close()  # opens itself again
        return connection


def _refuse(status: int, content: bytes) -> NoReturn:
    try:
        trouble = TroubleBody.model_validate_json(content).error
    except ValidationError:
        raise InfraError(f"the gateway answered {status}") from None
    match trouble.type:
        case "budget_exhausted":
            raise BudgetExhausted(trouble.code or "unknown")
        case "stopped":
            raise Stopped(trouble.message)
        case "model_unavailable":
            raise ModelError(trouble.message, trouble.expected, trouble.todo)
        case "invalid_request_error":
            raise ValueError(trouble.message)
        case _:
            raise InfraError(trouble.message)
