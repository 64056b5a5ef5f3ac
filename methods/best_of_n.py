"""The control: shows the model the same starter again and again, remembers nothing, lets the ledger keep the best."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

from methods.reply import ReplyTrouble, candidate_in
from suite.events import Message
from suite.workbench import Workbench

PROMPT = """{brief}
## The kernel to start from

It is correct. Make it faster.

```
{source}
```

Answer with one code block that holds the complete new file, and nothing else in a code block.
"""


@dataclass(frozen=True)
class BestOfN:
    """Independent samples of the model, each asked to improve the starter."""

    give_up_after: int = 10
    """Answers without a kernel in a row after which asking on is a waste of tokens."""

    uses_model: ClassVar[bool] = True

    def search(self, bench: Workbench) -> None:
        """Samples until the budget is spent, in as many threads as calls may run at once."""
        with ThreadPoolExecutor(bench.concurrency) as pool:
            for lane in [pool.submit(self._sample, bench) for _ in range(bench.concurrency)]:
                lane.result()

    def _sample(self, bench: Workbench) -> None:
        starter = bench.starter
        prompt = PROMPT.format(brief=bench.brief, source=starter.text().rstrip("\n"))
        without_kernel = 0
        while without_kernel < self.give_up_after:
            reply = bench.chat([Message(role="user", content=prompt)], edit_format="whole")
            candidate = candidate_in(reply.text, starter)
            if isinstance(candidate, ReplyTrouble):
                without_kernel += 1
                continue
            without_kernel = 0
            bench.evaluate(candidate, parent=starter.id)
