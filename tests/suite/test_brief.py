"""The brief: says all a kernel's author needs, in exact signatures, and nothing of what must stay secret."""

from __future__ import annotations

import pytest

from suite.brief import brief, c_prototype, python_signature
from suite.types import DType, Language, TensorSpec
from tests.suite.course import CHECK_SIZE, DEFINITION, TASK

BOTH = pytest.mark.parametrize("language", [Language.CPP, Language.PYTHON])


@BOTH
def test_it_is_the_same_text_every_time(language: Language) -> None:
    assert brief(TASK, language) == brief(TASK.model_copy(), language)


@BOTH
def test_it_names_the_mathematics_every_argument_and_axis_and_the_hints(language: Language) -> None:
    text = brief(TASK, language)
    assert TASK.title in text
    assert DEFINITION.description in text
    assert "- Rows are contiguous." in text
    assert "0 <= index < rows" in text
    assert "| `x` (input) | [rows, width] | bfloat16 | what is scaled |" in text
    assert "| `factor` (input) | scalar | float32 |" in text
    assert "| `y` (output) | [rows, width] | float32 |" in text
    assert "| `width` | 64 |" in text
    assert "| `rows` | varies | how many rows |" in text
    assert "rows = 4096" in text


@BOTH
def test_it_keeps_check_shapes_heldout_ranges_tolerances_and_the_reference_to_itself(language: Language) -> None:
    text = brief(TASK, language)
    for secret in (str(CHECK_SIZE), "777", "0.0123", "0.0456", "w-check", "x[index].float()"):
        assert secret not in text


def test_the_c_prototype_lists_inputs_outputs_then_var_axes() -> None:
    prototype = " ".join(c_prototype(DEFINITION).split())
    assert prototype == (
        'extern "C" int run( const uint16_t* x, const int32_t* index, float factor, float* y, int64_t rows);'
    ).replace("( ", "(")
    assert c_prototype(DEFINITION) in brief(TASK, Language.CPP)


def test_a_long_prototype_is_wrapped_and_still_whole() -> None:
    many = {f"argument_{number}": TensorSpec(shape=("rows",), dtype=DType.INT64) for number in range(12)}
    definition = DEFINITION.model_copy(update={"inputs": many})
    lines = c_prototype(definition).split("\n")
    assert max(map(len, lines)) <= 110
    assert lines[0].endswith("(")
    assert lines[-1].endswith("int64_t rows);")
    assert all(f"const int64_t* {name}," in c_prototype(definition) for name in many)


@pytest.mark.parametrize("dtype", list(DType))
def test_every_dtype_has_a_c_type(dtype: DType) -> None:
    definition = DEFINITION.model_copy(update={"outputs": {"y": TensorSpec(shape=("rows",), dtype=dtype)}})
    assert "* y, int64_t rows);" in c_prototype(definition)


def test_the_python_signature_is_that_of_destination_passing() -> None:
    assert python_signature(DEFINITION) == "def run(x, index, factor, y):"
    assert "run(x, index, factor)`" in brief(TASK, Language.PYTHON)


def test_each_language_is_told_its_own_rules() -> None:
    assert "g++ -O3 -march=native -fopenmp" in brief(TASK, Language.CPP)
    assert "g++" not in brief(TASK, Language.PYTHON)


def test_a_task_without_hints_has_no_empty_section() -> None:
    assert "Hints" not in brief(TASK.model_copy(update={"hints": ""}), Language.CPP)
