"""The screen: refuses what no kernel needs, and never a kernel for what stands in its comments or strings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite import lexer
from suite.screen import FILE_LIMIT, SIZE_LIMIT, screen
from suite.types import Candidate, Language, SourceFile, Spec
from tests.suite.course import STARTER, TASK, cpp, python

RUN = 'extern "C" int run(int n) { return n; }\n'
PYTHON_RUN = "def run(x, index, factor, y):\n    y.copy_(x)\n"


def with_files(*paths: str) -> Candidate:
    spec = Spec(language=Language.CPP, entry_point="main.cpp::run")
    return Candidate(spec=spec, sources=tuple(SourceFile(path=path, content=RUN) for path in paths))


def refusal(candidate: Candidate) -> str:
    failure = screen(TASK, candidate)
    assert failure is not None and failure.stage == "screen"
    return failure.detail


# ---------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../out.cpp",
        "a/../b.cpp",
        ".hidden",
        "a/.git/config",
        "",
        "a//b",
        "a\\b",
        "a\0b",
        "ü.cpp",
        "a/",
        "x" * 300,
    ],
)
def test_names_that_leave_the_folder_or_hide_in_it_are_refused(path: str) -> None:
    assert "file name" in refusal(with_files("main.cpp", path))


def test_plain_relative_names_pass() -> None:
    assert screen(TASK, with_files("main.cpp", "inner/tile_4x8.h", "a-b.c++.h")) is None


@pytest.mark.parametrize("paths", [("main.cpp", "main.cpp"), ("main.cpp", "MAIN.cpp"), ("main.cpp", "a", "a/b")])
def test_names_that_collide_are_refused(paths: tuple[str, ...]) -> None:
    refusal(with_files(*paths))


def test_sizes_and_counts_are_limited() -> None:
    assert "bytes" in refusal(cpp(RUN + "//" + "x" * SIZE_LIMIT))
    assert "files" in refusal(with_files(*["main.cpp", *(f"f{number}.h" for number in range(FILE_LIMIT))]))
    assert "files" in refusal(Candidate(spec=cpp().spec, sources=()))


@pytest.mark.parametrize("entry", ["main.cpp", "main.cpp::", "main.cpp::a b", "other.cpp::run", "::run"])
def test_an_entry_point_must_name_a_file_and_a_symbol_of_it(entry: str) -> None:
    spec = Spec(language=Language.CPP, entry_point=entry)
    assert "entry point" in refusal(Candidate(spec=spec, sources=(SourceFile(path="main.cpp", content=RUN),)))


def test_a_language_the_task_does_not_take_is_refused() -> None:
    spec = Spec(language=Language.CUDA, entry_point="a.cu::run")
    assert "cuda" in refusal(Candidate(spec=spec, sources=(SourceFile(path="a.cu", content=RUN),)))
    assert "does not end in" in refusal(cpp(RUN, path="main.py"))


# ---------------------------------------------------------------------------------------------- C++


@pytest.mark.parametrize(
    "line",
    [
        '#include "/etc/passwd"',
        "#include </proc/self/environ>",
        "  #  include <../secret.h>",
        '#/* odd */include "/etc/passwd"',
        '%:include "/etc/passwd"',
        '#inc\\\nlude "/etc/passwd"',
        '#define HIDDEN "/etc/passwd"\n#include HIDDEN',
        '#embed "answers.bin"',
        "#pragma GCC plugin evil",
        '#pragma GCC dependency "/etc/passwd"',
        'asm(".incbin \\"/etc/passwd\\"");',
        'asm(".inc" "bin \\"/etc/passwd\\"");',
        'asm(R"x(.incbin "/etc/passwd")x");',
        'asm(".\\x69ncbin \\"/etc/passwd\\"");',
        'const char* maps = "/proc/self/maps";',
        "int f() { return system(0); }",
        "int f() { return ::fork(); }",
        "int f() { return std::system (0); }",
        "int f() { return ptrace(0, 0, 0, 0); }",
        'void* f() { return dlopen("x", 2); }',
        "int f() { return execve(0, 0, 0); }",
    ],
)
def test_what_no_cpp_kernel_needs_is_refused(line: str) -> None:
    refusal(cpp(f"{line}\n{RUN}"))


@pytest.mark.parametrize("line", ['#include "/\x1b[2J"', "#include \x1b[2J", "#pragma GCC plugin \x1b[2J"])
def test_a_refusal_commands_no_terminal(line: str) -> None:
    assert refusal(cpp(f"{line}\n{RUN}")).isprintable()


@pytest.mark.parametrize(
    "line",
    [
        '// system(0); fork(); /proc/self #include "/etc/passwd"',
        "/* .incbin \n dlopen(x) \n #include </etc/passwd> */",
        'const char* text = "call system(1) or fork() and #include </etc>";',
        'const char* raw = R"(\n#include "/etc/passwd"\nfork())";',
        "int ecosystem(int); int f() { return ecosystem(1); }",
        "struct S { int kind; int fork_join(); }; int f(S s) { return s.fork_join(); }",
        "template <class T> auto f(T t) { return t.fork() + (&t)->system(1); }",
        "constexpr int million = 1'000'000; const char quote = '\"'; // system(",
        '#include <omp.h>\n#include "tiles/inner.h"',
        '#pragma GCC optimize("O3")\n#pragma omp declare simd\nint g(int);',
        "#define CAT(a, b) a##b\nint CAT(x, y) = 1;",
        "// a comment that goes on \\\n system(0);",
        "#define LONG 1 /* over \n two lines with system(0) */",
        "int system = 3;",
    ],
)
def test_comments_strings_and_innocent_names_trip_nothing(line: str) -> None:
    assert screen(TASK, cpp(f"{line}\n{RUN}")) is None


@pytest.mark.parametrize(
    "source",
    [
        STARTER,
        'extern "C" {\nint run(int n);\nint run(int n) { return n; }\n}',
        'extern "C" int run(int n);\nint run(int n) { return n; }',
        'namespace a { int run(int n) { return n; } }\nextern "C" int run(int n) { return a::run(n); }',
        'namespace a {\nextern "C" int run(int n) noexcept { return n; }\n}',
        'extern "C" __attribute__((visibility("default"))) int run(int n) { return n; }',
        '#ifdef A\nextern "C" int run(int n) { return n; }\n#else\nextern "C" int run(int n) { return 1; }\n#endif',
        '#define EXPORT extern "C"\nEXPORT int run(int n) { return n; }',
        'struct A { int run(int) { return 1; } };\nextern "C" int run(int n) { return A{}.run(n); }',
        "int f(int n) { auto run = [](int m) { return m; }; return run(n); }\n"
        'extern "C" int run(int n) { return f(n); }',
    ],
)
def test_every_honest_way_to_define_the_entry_point_passes(source: str) -> None:
    assert screen(TASK, cpp(source)) is None


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("", "does not define"),
        ("int other() { return 0; }", "does not define"),
        ('extern "C" int run(int n);', "does not define"),
        ('// extern "C" int run(int n) { return n; }', "does not define"),
        ('const char* s = R"(extern "C" int run(int n) { return n; })";', "does not define"),
        ("int run(int n) { return n; }", 'without extern "C"'),
        ('extern "C" int other(int n) { return n; }\nint run(int n) { return n; }', 'without extern "C"'),
        (RUN + RUN, "2 times"),
    ],
)
def test_a_missing_or_doubled_entry_point_is_named(source: str, words: str) -> None:
    assert words in refusal(cpp(source))


@given(st.text(alphabet="ab\"'/*\\\n#(){};R.1 \0", max_size=80))
def test_any_text_can_be_screened(text: str) -> None:
    lexer.tokens(text)
    screen(TASK, cpp(text))
    screen(TASK, python(text))


@given(st.text(max_size=60))
def test_what_is_commented_out_has_no_tokens(text: str) -> None:
    body = text.replace("*/", "").replace("\\", "").rstrip("*")
    assert lexer.tokens(f"/*{body}*/") == ()


# ---------------------------------------------------------------------------------------------- Python


@pytest.mark.parametrize(
    "line",
    [
        "import subprocess",
        "import os, socket",
        "import ctypes.util",
        "from ctypes import CDLL",
        "from gc import get_objects as g",
        "import inspect as i",
        "import multiprocessing.shared_memory",
        "from os import _exit",
        "import builtins",
        "import os\nos.fork()",
        "import os\nos.execv('a', [])",
        "import os\nleave = os._exit",
        "import sys\nsys._getframe(1)",
        "from sys import _getframe",
        "text = input()\nexec(text)",
        "value = eval('1' + '1')",
        "code = compile(open('x').read(), 'x', 'exec')",
        "__import__('sub' + 'process')",
        "__import__('ctypes')",
        "import importlib\nimportlib.import_module('gc')",
        "b = __builtins__",
        "kinds = object.__subclasses__()",
        "g = (lambda: 0).__globals__",
        "text = open('/proc/self/maps')",
        "def helper():\n    import socket",
    ],
)
def test_what_no_python_kernel_needs_is_refused(line: str) -> None:
    assert "line " in refusal(python(f"{line}\n{PYTHON_RUN}"))


@pytest.mark.parametrize(
    "line",
    [
        "# import subprocess; exec(x)",
        '"""Never calls eval(x) nor reads /proc/self/maps."""',
        "text = 'import socket; os.fork()'",
        "import torch\nf = torch.compile(lambda x: x)",
        "import re\npattern = re.compile('a' + 'b')",
        "import os\nthreads = os.cpu_count()",
        "class M:\n    def eval(self): return self\nM().eval()",
        "from . import tiles",
        "odd = '\\d'",
    ],
)
def test_python_comments_strings_and_innocent_names_trip_nothing(line: str) -> None:
    assert screen(TASK, python(f"{line}\n{PYTHON_RUN}")) is None


@pytest.mark.parametrize(
    ("source", "in_place", "words"),
    [
        ("def walk(): ...", True, "no function run"),
        ("class A:\n    def run(x, index, factor, y): ...", True, "no function run"),
        (PYTHON_RUN + PYTHON_RUN, True, "2 times"),
        ("def run(x): ...", True, "the task passes 4"),
        (PYTHON_RUN, False, "the task passes 3"),
        ("def run(x, index, *, factor, y): ...", True, "keyword-only"),
    ],
)
def test_a_python_entry_point_must_fit_the_definition(source: str, in_place: bool, words: str) -> None:
    assert words in refusal(python(source, in_place=in_place))


@pytest.mark.parametrize(
    "source",
    [
        PYTHON_RUN,
        "def run(*arguments): ...",
        "def run(x, index, factor, y, block=64): ...",
        "import torch\ndef _run(x, i, f, y): ...\nrun = torch.compile(_run)",
        "try:\n    from fast import run\nexcept ImportError:\n    def run(x, i, f, y): ...",
        "if True:\n    def run(x, i, f, y): ...",
    ],
)
def test_every_honest_way_to_define_a_python_entry_point_passes(source: str) -> None:
    assert screen(TASK, python(source)) is None


@pytest.mark.parametrize("source", ["def run(:", "x = '\0'", "(" * 5000])
def test_what_python_cannot_read_is_left_to_the_judge_to_name(source: str) -> None:
    assert screen(TASK, python(source)) is None
