"""Admission says all that speaks against a task, and nothing against a good one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from suite.admission import AdmissionReport, admit, mutants, save, trusted
from suite.judge.build import Builder
from suite.judge.judge import Judge
from suite.task import load
from suite.types import Status
from tests.judge.conftest import FIXTURE
from tests.judge.kernels import ADD, CPP, PYTHON

pytestmark = pytest.mark.slow

WRAPPED = """// Wrong: {what}.
#include "correct.h"
extern "C" int run(const float* x, const float* y, float alpha, float* out, float* total, int64_t rows) {{
    {body}
}}
"""
MUTANTS = {
    "zeros": CPP.replace("BODY", ""),
    "no_alpha": WRAPPED.format(what="alpha is 1", body="return correct(x, y, 1.0f, out, total, rows);"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = Path(shutil.copytree(FIXTURE, tmp_path / FIXTURE.name))
    for kind in ("trusted", "mutants"):
        (folder / kind).mkdir()
    (folder / "trusted" / "torch_add.py").write_text(PYTHON)
    for name, text in MUTANTS.items():
        (folder / "mutants" / f"{name}.cpp").write_text(text)
    return folder


def report(folder: Path, judge: Judge) -> AdmissionReport:
    return admit(folder, judge, Builder(judge.settings.cache), seeds=2)


def numerical(objections: tuple[str, ...]) -> list[str]:
    """Without those about speed: the tests' timing plans are too short for any."""
    return [one for one in objections if "faster than the baseline" not in one]


def test_a_good_task_meets_no_objection_and_its_figures_are_kept(folder: Path, judge: Judge) -> None:
    found = report(folder, judge)
    assert numerical(found.objections) == []
    assert set(found.starters.values()) == {Status.PASSED}
    assert {one.name for one in found.contenders} == set(trusted(load(folder)))
    assert all(one.speedup > 0 for one in found.contenders)
    assert {one.output for one in found.margins} == {"out", "total"}
    assert min(one.elements for one in found.margins) > 3
    assert {one.name: one.status for one in found.mutants} == dict.fromkeys(MUTANTS, Status.INCORRECT_NUMERICAL)
    path = save(found, folder)
    assert AdmissionReport.model_validate_json(path.read_text()) == found
    assert load(folder).digest == found.digest, "the figures are no part of the task's digest"


def test_everything_wrong_is_objected_to(folder: Path, judge: Judge) -> None:
    (folder / "trusted" / "broken.py").write_text(PYTHON.replace("alpha=alpha", "alpha=2 * alpha"))
    (folder / "mutants" / "harmless.cpp").write_text(CPP.replace("BODY", ADD))
    objections = "\n".join(report(folder, judge).objections)
    assert "broken, which is trusted, ended as INCORRECT_NUMERICAL" in objections
    assert "out: rtol and atol are" in objections
    assert "mutant harmless passed" in objections
    assert "mutant harmless misses the tolerance by a factor of" in objections


def test_a_task_without_mutants_or_trusted_kernels_is_objected_to(folder: Path, judge: Judge) -> None:
    shutil.rmtree(folder / "mutants")
    shutil.rmtree(folder / "trusted")
    assert mutants(load(folder)) == {}
    objections = report(folder, judge).objections
    assert "there are no mutants" in objections
    assert "only 2 trusted implementations; calibration needs 3" in objections
