"""The tuner: same question, same answer; admissible values only; OpenAI's protocol to the letter a client needs."""

from __future__ import annotations

from collections.abc import Sequence

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.events import Message
from suite.fences import fenced
from suite.tunables import find
from suite.tuner import NAME, NOTHING, answer, serve
from tests.suite.course import STARTER

PROMPT = (
    f"Make it faster.\n\n```cpp\nint old = 1;  // tune: old in {{1, 2}}\n```\n\nNow:\n```cpp main.cpp\n{STARTER}```\n"
)


def client(address: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=address, api_key="none", max_retries=0)


@given(st.integers(0, 2**40))
def test_a_whole_answer_is_the_last_kernel_with_other_admissible_values(seed: int) -> None:
    (block,) = fenced(answer([PROMPT], seed, "whole"))
    before, after = find(STARTER), find(block.text)
    assert block.info == "cpp main.cpp"
    assert [(dial.name, dial.values) for dial in after] == [(dial.name, dial.values) for dial in before]
    assert [dial.current for dial in after] != [dial.current for dial in before]
    untuned = [line for line in STARTER.split("\n") if "tune:" not in line]
    assert [line for line in block.text.split("\n") if "tune:" not in line] == untuned


def test_every_value_is_drawn_sooner_or_later() -> None:
    drawn = {
        tuple(dial.current for dial in find(fenced(answer([PROMPT], seed, "whole"))[0].text)) for seed in range(99)
    }
    assert drawn == {(u, s) for u in ("1", "2", "4") for s in ("false", "true")} - {("2", "false")}


@given(st.integers(0, 2**40))
def test_edits_name_whole_lines_of_the_kernel(seed: int) -> None:
    text = answer([PROMPT], seed, "search_replace")
    edits = text.split("<<<<<<< SEARCH\n")[1:]
    assert edits
    for edit in edits:
        search, rest = edit.split("\n=======\n")
        assert search in STARTER.split("\n")
        assert rest.split("\n>>>>>>> REPLACE")[0] != search


def test_the_answer_depends_on_question_seed_and_format_alone() -> None:
    assert answer([PROMPT], 1, "whole") == answer([PROMPT], 1, "whole")
    assert len({answer([PROMPT], seed, "whole") for seed in range(20)}) > 1
    assert len({answer([PROMPT, "x" * n], 1, "whole") for n in range(20)}) > 1


@pytest.mark.parametrize("prompt", ["", "Hello", "```\nint x;\n```", "```\nint x = 3; // tune: x in {1}\n```"])
def test_a_prompt_without_dials_gets_a_sentence(prompt: str) -> None:
    assert answer([prompt], 0, "whole") == NOTHING


def test_a_kernel_that_holds_fences_itself_comes_back_whole() -> None:
    source = 'BLOCK = 1  # tune: block in {1, 2}\ntext = """\n```\n"""\n'
    (block,) = fenced(answer([f"````python\n{source}````"], 0, "whole"))
    assert block.text == source.replace("BLOCK = 1", "BLOCK = 2")


def test_it_speaks_openais_protocol() -> None:
    with serve() as address:
        ask = client(address).chat.completions.create
        parts = [{"type": "text", "text": PROMPT}]
        first = ask(model="any", messages=[{"role": "user", "content": parts}], seed=7)  # type: ignore[list-item,misc]
        assert [model.id for model in client(address).models.list()] == [NAME]
    assert first.choices[0].message.content == answer([PROMPT], 7, "whole")
    assert first.choices[0].finish_reason == "stop"
    assert first.usage is not None
    assert first.usage.prompt_tokens == -(-len(PROMPT.encode()) // 4)
    assert first.usage.total_tokens == first.usage.prompt_tokens + first.usage.completion_tokens


def test_the_header_chooses_the_edit_format_and_the_limit_cuts() -> None:
    messages: list[openai.types.chat.ChatCompletionMessageParam] = [{"role": "user", "content": PROMPT}]
    with serve() as address:
        ask = client(address).chat.completions.create
        edits = ask(model="any", messages=messages, extra_headers={"X-Derby-Edit-Format": "search_replace"})
        cut = ask(model="any", messages=messages, max_tokens=5)
    assert "<<<<<<< SEARCH" in (edits.choices[0].message.content or "")
    assert cut.choices[0].finish_reason == "length"
    assert cut.usage is not None and cut.usage.completion_tokens == 5


def test_planners_are_asked_first_and_may_leave_a_question_to_the_tuner() -> None:
    def plan(messages: Sequence[Message]) -> str | None:
        return f"{messages[0].role}: a plan" if "PLAN" in messages[-1].content else None

    system: openai.types.chat.ChatCompletionMessageParam = {"role": "system", "content": "be brief"}
    with serve((lambda messages: None, plan)) as address:
        ask = client(address).chat.completions.create
        planned = ask(model="any", messages=[system, {"role": "user", "content": "PLAN"}])
        tuned = ask(model="any", messages=[system, {"role": "user", "content": PROMPT}], seed=3)
    assert planned.choices[0].message.content == "system: a plan"
    assert tuned.choices[0].message.content == answer(["be brief", PROMPT], 3, "whole")


@pytest.mark.parametrize(
    ("body", "header", "words"),
    [
        ({"messages": []}, "diff", "edit format"),
        ({"messages": "hello"}, "whole", "messages"),
        ({"messages": [], "stream": True}, "whole", "stream"),
        ({"messages": [{"role": "user"}], "seed": "x"}, "whole", "seed"),
    ],
)
def test_refusals_have_openais_shape(body: dict[str, object], header: str, words: str) -> None:
    with serve() as address, pytest.raises(openai.BadRequestError, match=words) as caught:
        client(address).post(
            "/chat/completions", body=body, cast_to=object, options={"headers": {"X-Derby-Edit-Format": header}}
        )
    assert caught.value.type == "invalid_request_error"


def test_two_tuners_run_side_by_side_and_end_with_their_block() -> None:
    with serve() as one, serve() as two:
        assert one != two
        client(one).models.list()
    with pytest.raises(openai.APIConnectionError):
        client(one).models.list()
