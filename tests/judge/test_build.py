"""A build is a function of its sources, keeps what it may not read out, and ends in time."""

from __future__ import annotations

import ctypes
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from suite.errors import UserError
from suite.judge import build
from suite.judge.build import Builder, BuildFailed, Limits
from suite.types import Candidate, Language, SourceFile, Spec

ADD_ONE = 'extern "C" int run(int x) { return x + 1; }\n'
ROOT = Path(__file__).parents[2]


def candidate(*sources: str, language: Language = Language.CPP, names: tuple[str, ...] = ()) -> Candidate:
    """Sources in files named kernel.cpp (or .py), then file1, file2, unless `names` says otherwise."""
    suffix = "cpp" if language == Language.CPP else "py"
    paths = names or (f"kernel.{suffix}", *(f"file{number}.{suffix}" for number in range(1, len(sources))))
    files = tuple(SourceFile(path=path, content=text) for path, text in zip(paths, sources, strict=True))
    return Candidate(spec=Spec(language=language, entry_point=f"{paths[0]}::run"), sources=files)


@pytest.fixture(scope="module")
def builder(fresh_cache: Callable[[], Path]) -> Builder:
    return Builder(fresh_cache())


def test_a_library_is_built_once(builder: Builder) -> None:
    first, second = builder.build(candidate(ADD_ONE)), builder.build(candidate(ADD_ONE))
    assert (first.cached, second.cached) == (False, True)
    assert first.path == second.path
    assert ctypes.CDLL(str(first.path)).run(41) == 42


def test_another_builder_finds_the_same_entry(builder: Builder) -> None:
    builder.build(candidate(ADD_ONE))
    assert Builder(builder.cache).build(candidate(ADD_ONE)).cached


def test_other_sources_or_declarations_are_another_entry(builder: Builder) -> None:
    paths = {
        builder.build(candidate(ADD_ONE)).path,
        builder.build(candidate(ADD_ONE + "\n")).path,
        builder.build(candidate(ADD_ONE), abi="#include <cstdint>").path,
    }
    assert len(paths) == 3


def test_entries_are_read_only_and_whole(builder: Builder) -> None:
    artifact = builder.build(candidate(ADD_ONE))
    entry = artifact.path.parent
    assert {path.name for path in entry.iterdir()} == {"kernel.so", "log", "sources"}
    assert not any(path.stat().st_mode & stat.S_IWUSR for path in [entry, *entry.rglob("*")])


def test_several_files_and_headers_make_one_library(builder: Builder) -> None:
    main = '#include "deep/one.h"\nextern "C" int run(int x) { return helper(x) + ONE; }\n'
    helper = '#include "deep/one.h"\nint helper(int x) { return x; }\n'
    made = candidate(
        main, helper, "int helper(int);\n#define ONE 1\n", names=("kernel.cpp", "helper.cpp", "deep/one.h")
    )
    assert ctypes.CDLL(str(builder.build(made).path)).run(41) == 42


def test_python_sources_are_copied_as_they_are(builder: Builder) -> None:
    made = candidate("import part\n", "ONE = 1\n", language=Language.PYTHON, names=("kernel.py", "lib/part.py"))
    artifact = builder.build(made)
    assert (artifact.path / "kernel.py").read_text() == "import part\n"
    assert (artifact.path / "lib" / "part.py").read_text() == "ONE = 1\n"
    assert builder.build(made).cached


def test_warnings_of_the_compiler_are_kept_with_the_entry(builder: Builder) -> None:
    noisy = candidate("#warning look here\n" + ADD_ONE)
    assert "look here" in builder.build(noisy).log
    assert "look here" in builder.build(noisy).log


def test_a_prototype_that_differs_from_the_declared_one_does_not_compile(builder: Builder) -> None:
    with pytest.raises(BuildFailed, match="conflicting declaration"):
        builder.build(candidate(ADD_ONE), abi='extern "C" int run(const float*, float*);')


FORBIDDEN = {
    "include": '#include "/etc/shadow"\n',
    "include of the judge": f'#include "{ROOT}/suite/errors.py"\n',
    "incbin": 'asm(".incbin \\"/etc/shadow\\"");\n',
    "incbin of the judge": f'asm(".incbin \\"{ROOT}/suite/errors.py\\"");\n',
    "include through a link": '#include "/proc/self/root/etc/shadow"\n',
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_a_candidate_may_not_read_does_not_build(builder: Builder, name: str) -> None:
    with pytest.raises(BuildFailed, match=r"Permission denied|file not found"):
        builder.build(candidate(FORBIDDEN[name] + ADD_ONE))


def test_a_compile_error_names_the_candidates_own_file(builder: Builder) -> None:
    with pytest.raises(BuildFailed) as failed:
        builder.build(candidate("int run( { return 1; }\n"))
    assert failed.value.log.startswith("./kernel.cpp:1:")


@pytest.mark.parametrize("name", ["-Tkernel.cpp", "-v.cpp", "@kernel.cpp"])
def test_a_file_named_like_an_option_is_a_file(builder: Builder, name: str) -> None:
    assert builder.build(candidate('extern "C" int run() { return 1; }\n', names=(name,))).path.is_file()


def test_a_log_commands_no_terminal(builder: Builder) -> None:
    with pytest.raises(BuildFailed) as failed:
        builder.build(candidate("#error \x1b]0;title\x07 \x1b[2J \N{RIGHT-TO-LEFT OVERRIDE}\n"))
    assert failed.value.log.replace("\n", "").isprintable()


def test_a_flood_of_errors_is_cut(builder: Builder) -> None:
    flood = "\n".join(f"#warning {'x' * 200} {number}" for number in range(2000))
    with pytest.raises(BuildFailed) as failed:
        builder.build(candidate(flood + "\nint broken = ;"))
    assert 60_000 < len(failed.value.log) < 70_000


def test_an_endless_compilation_is_stopped(builder: Builder) -> None:
    endless = (
        "template <int N, int M> struct A { static constexpr int v = A<N - 1, 2 * M>::v + A<N - 1, 2 * M + 1>::v; };\n"
        "template <int M> struct A<0, M> { static constexpr int v = M; };\nint big = A<28, 0>::v;\n"
    )
    with pytest.raises(BuildFailed, match=r"stopped after 0\.5 s"):
        Builder(builder.cache, Limits(seconds=0.5)).build(candidate(endless))


def test_a_compilation_without_memory_fails(builder: Builder) -> None:
    with pytest.raises(BuildFailed):
        Builder(builder.cache, Limits(memory_bytes=20 << 20)).build(candidate("#include <regex>\n" + ADD_ONE))


def test_a_library_larger_than_allowed_fails(builder: Builder) -> None:
    with pytest.raises(BuildFailed):
        Builder(builder.cache, Limits(file_bytes=1 << 20)).build(candidate(ADD_ONE + "char big[32 << 20] = {1};\n"))


def test_a_failed_build_leaves_nothing(
    fresh_cache: Callable[[], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = fresh_cache()
    # The machine's own folder of temporary files holds the builds of tests that run beside this one.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(BuildFailed):
        Builder(cache).build(candidate("int x = ;"))
    assert list(tmp_path.iterdir()) == []
    assert all(entry.name.startswith("prelude-") for entry in cache.iterdir() if any(entry.iterdir()))


def test_standard_headers_are_there_and_compiled_once(builder: Builder) -> None:
    artifact = builder.build(candidate("int sum = std::vector<int>(3, 1).size();\n" + ADD_ONE))
    assert artifact.path.is_file()
    for prelude in builder.cache.glob("prelude-*"):
        assert {path.name for path in prelude.iterdir()} == {"prelude.h", "prelude.h.gch"}


@pytest.mark.parametrize(
    "text",
    [
        "std::atomic<int> count;",
        "using namespace std; std::unique_ptr<int> one;",
        "auto order = std::memory_order_relaxed;",
        "float* whole(float* p) { return std::assume_aligned<64>(p); }",
        "void* home(int& x) { return std::addressof(x); }",
        "std::allocator<int> room;",
        "void fill(int* p) { std::uninitialized_fill_n(p, 3, 1); std::construct_at(p, 2); std::destroy_at(p); }",
        "std::atomic_flag flag; std::atomic_ref<int>* other;",
        "auto made() { return std::make_shared<int>(1); }",
    ],
)
def test_headers_that_cost_every_build_are_there_for_sources_that_need_them(builder: Builder, text: str) -> None:
    assert builder.build(candidate(f"{text}\n{ADD_ONE}")).path.is_file()


@pytest.mark.slow
def test_without_the_quick_linker_the_compilers_own_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "g++").symlink_to(shutil.which("g++") or "")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    artifact = Builder(tmp_path / "cache").build(candidate(ADD_ONE))
    assert ctypes.CDLL(str(artifact.path)).run(1) == 2


@pytest.mark.parametrize(
    "path", ["/etc/stray.cpp", "../stray.cpp", "a/../../stray.cpp", "", "x" * 300 + ".cpp", "a\0b"]
)
def test_a_path_outside_the_candidate_does_not_build(builder: Builder, path: str) -> None:
    with pytest.raises(BuildFailed, match=r"is no path|can't be written"):
        builder.build(candidate(ADD_ONE, "int x;", names=("kernel.cpp", path)))


def test_no_cpp_file_is_said(builder: Builder) -> None:
    with pytest.raises(BuildFailed, match=r"no C\+\+ file"):
        builder.build(candidate("int x;", names=("kernel.h",)))


@pytest.mark.parametrize("warm", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["headers", "no headers"])
def test_builders_at_the_same_time_agree(fresh_cache: Callable[[], Path], tmp_path: Path, warm: bool) -> None:
    made: list[Path] = []
    cache = fresh_cache() if warm else tmp_path
    threads = [
        threading.Thread(target=lambda: made.append(Builder(cache).build(candidate(ADD_ONE)).path)) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 3
    assert len(set(made)) == 1
    assert ctypes.CDLL(str(made[0])).run(1) == 2


def test_without_a_compiler_the_user_is_told_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"apt-get install g\+\+"):
        Builder(tmp_path / "cache").build(candidate(ADD_ONE))


def test_the_processor_is_part_of_the_key() -> None:
    words = build.cpu_model()
    assert words
    assert "MHz" not in words
