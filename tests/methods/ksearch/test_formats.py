"""Kernels out of answers: one fenced file, or CUDA's three parts, of which none may be missing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from methods.ksearch.formats import OneFile, ThreeFiles, format_for
from suite.types import Candidate, Language, SourceFile, Spec

STARTER = Candidate(
    spec=Spec(language=Language.CUDA, entry_point="starter.cu::run", dependencies=("x",)),
    sources=(SourceFile(path="starter.cu", content="int run() { return 0; }\n"),),
)
HEADER = '<header_file name="kernel.h">\nvoid launch();\n</header_file>'
KERNEL = '<cuda_file name="kernel.cu">\n```cuda\n#include "kernel.h"\nvoid launch() {}\n```\n</cuda_file>'
MAIN = '<cpp_file name=\'main.cpp\' >\n#include "kernel.h"\nextern "C" int run() { launch(); return 0; }\n</cpp_file>'


def test_three_parts_make_a_candidate_whose_entry_is_the_last() -> None:
    found = ThreeFiles().read(f"<think>{HEADER}</think>Here:\r\n{HEADER}\n{KERNEL}\n\n{MAIN}\nDone.", STARTER)
    assert found is not None
    assert [source.path for source in found.sources] == ["kernel.h", "kernel.cu", "main.cpp"]
    assert found.text("kernel.cu") == '#include "kernel.h"\nvoid launch() {}\n'
    assert found.spec == STARTER.spec.model_copy(update={"entry_point": "main.cpp::run"})


@pytest.mark.parametrize("parts", [(HEADER, KERNEL), (HEADER, MAIN), (KERNEL, MAIN), (), (HEADER, "<cuda_file>", MAIN)])
def test_a_missing_part_makes_none(parts: tuple[str, ...]) -> None:
    assert ThreeFiles().read("\n".join(parts), STARTER) is None


def test_an_empty_part_is_a_missing_one() -> None:
    assert ThreeFiles().read(f'{HEADER}{KERNEL}<cpp_file name="main.cpp">\n \n</cpp_file>', STARTER) is None


def test_what_was_read_is_shown_in_the_same_form_and_read_again() -> None:
    format = ThreeFiles()
    found = format.read(HEADER + KERNEL + MAIN, STARTER)
    assert found is not None
    assert format.read(format.show(found), STARTER) == found
    assert all(tag in format.instructions for tag in ("header_file", "cuda_file", "cpp_file"))


def test_a_starter_of_other_files_is_shown_fenced_by_name() -> None:
    assert ThreeFiles().show(STARTER) == "```cuda starter.cu\nint run() { return 0; }\n```"


def test_only_cuda_asks_for_three_and_only_if_not_told_otherwise() -> None:
    assert isinstance(format_for(Language.CUDA, one_file=False), ThreeFiles)
    assert format_for(Language.CUDA, one_file=True) == OneFile(Language.CUDA)
    assert {format_for(language, False) for language in (Language.CPP, Language.TRITON)} == {
        OneFile(Language.CPP),
        OneFile(Language.TRITON),
    }


@pytest.mark.parametrize(("language", "info"), [(Language.TRITON, "python"), (Language.CPP, "cpp")])
def test_one_file_keeps_prose_out(language: Language, info: str) -> None:
    starter = STARTER.model_copy(update={"spec": STARTER.spec.model_copy(update={"language": language})})
    found = OneFile(language).read(f"I would do this:\n```{info}\nint run() {{ return 1; }}\n```\nFast!", starter)
    assert found is not None and found.text() == "int run() { return 1; }\n"
    assert OneFile(language).show(found) == f"```{info}\nint run() {{ return 1; }}\n```"
    assert OneFile(language).read("no code", starter) is None


@given(st.text(max_size=80))
def test_no_answer_raises(text: str) -> None:
    ThreeFiles().read(text, STARTER)
    ThreeFiles().read(f'{HEADER}{KERNEL}<cpp_file name="main.cpp">{text}</cpp_file>', STARTER)
