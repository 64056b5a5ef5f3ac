"""What a trial's ledger already answers: verdicts by candidate, model replies by request; what replays are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from suite.events import Evaluated, Event, Message, ModelCalled
from suite.feedback import feedback
from suite.score import score
from suite.types import Candidate, Split, Task, digest_of
from suite.workbench import EditFormat, Feedback, Reply


class Memory:
    """Grows with the ledger. Not thread-safe: its owner serialises the calls.

    A method that starts over asks again for what it once got. It is answered from here, as the first time, until all
    that was recorded has been asked for.
    """

    def __init__(self, task: Task, seed: int, events: Iterable[Event]) -> None:
        self._task, self._seed = task, seed
        self._verdicts: dict[str, Evaluated] = {}
        self._feedback: dict[str, Feedback] = {}
        self._replies: dict[str, ModelCalled] = {}
        for event in events:
            self.take(event)
        self.rewind()

    def take(self, event: Event) -> None:
        """Remember a line of the ledger that answers something."""
        if isinstance(event, Evaluated):
            self._verdicts[event.candidate.id] = event
            self._feedback[event.candidate.id] = feedback(event, self._task)
        elif isinstance(event, ModelCalled):
            self._replies[event.request] = event

    def rewind(self) -> None:
        """The method starts over: everything recorded is to be replayed to it."""
        self._unasked = {key for key, event in self._verdicts.items() if event.number > 0}
        self._unread = set(self._replies)
        self._asked: Counter[str] = Counter()
        self._told = [key for key, event in self._verdicts.items() if event.number == 0]

    @property
    def last_number(self) -> int:
        return max((event.number for event in self._verdicts.values()), default=-1)

    def starter(self) -> Evaluated | None:
        return next((event for event in self._verdicts.values() if event.number == 0), None)

    def champion(self) -> Candidate | None:
        """The best score on search workloads; ties go to the earliest; None if nothing passed."""
        ranked = [(score(event.evaluation, Split.SEARCH).value, event) for event in self._verdicts.values()]
        passed = [(value, -event.number, event.candidate) for value, event in ranked if value > 0]
        return max(passed, key=lambda item: item[:2])[2] if passed else None

    def verdict(self, candidate: str) -> Feedback | None:
        """What is known of a candidate; `free` unless it is replayed."""
        known = self._feedback.get(candidate)
        if known is None:
            return None
        if candidate in self._unasked:
            self.tell(candidate)
            return known
        return known.model_copy(update={"free": True})

    def tell(self, candidate: str) -> Feedback:
        """The method is told of this verdict for the first time since it started."""
        self._unasked.discard(candidate)
        self._told.append(candidate)
        return self._feedback[candidate]

    def told(self) -> tuple[Feedback, ...]:
        """The verdicts the method has been told since it started, by number."""
        return tuple(sorted((self._feedback[key] for key in self._told), key=lambda item: item.number))

    def request(self, messages: Sequence[Message], edit_format: EditFormat) -> tuple[str, int]:
        """The key of a model request and the seed it is to be asked with.

        The same prompt asked again is another request with another seed, the n-th time the same in every run.
        """
        words: list[JsonValue] = [message.model_dump(mode="json") for message in messages]
        prompt = digest_of([edit_format, words])
        times = self._asked[prompt]
        self._asked[prompt] += 1
        key = digest_of([self._seed, times, prompt])
        return key, int(key[:7], 16)

    def reply(self, request: str) -> Reply | None:
        """The recorded answer to a request the method has not asked since it started."""
        if request not in self._unread:
            return None
        self._unread.discard(request)
        called = self._replies[request]
        return Reply(text=called.reply, usage=called.usage, finish_reason=called.finish_reason)
