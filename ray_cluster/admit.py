"""`derby admit`: measures whether a task may be raced, and keeps the report beside it."""

from __future__ import annotations

from pathlib import Path

from ray_cluster.console import Exit, data_console, print_json, say
from ray_cluster.find import task_folder
from ray_cluster.judging import LocalJudge, builder, need_compiler
from ray_cluster.placement_plan import cores_here
from ray_cluster.tables import rows_table, times
from suite.admission import AdmissionReport, admit, save


def admit_task(name: str, lane: str, as_json: bool) -> Exit:
    """Examine the task and store calibration.json in its folder; exit code 3 if something speaks against it."""
    need_compiler()
    folder = task_folder(name)
    say(f"examining {folder.name}: every trusted variant and mutant is judged, this takes minutes")
    with LocalJudge()(cores_here(1)[0]) as judge:
        report = admit(folder, judge, builder(), lane)
    path = save(report, Path(folder))
    if as_json:
        print_json("admission", admitted=report.admitted, report=report.model_dump(mode="json"))
    else:
        _show(report)
    say(f"the report is kept in {path}")
    return Exit.OK if report.admitted else Exit.FAILED


def _show(report: AdmissionReport) -> None:
    console = data_console()
    contenders = [(one.name, str(one.status), times(one.speedup), one.detail) for one in report.contenders]
    console.print(rows_table(("trusted", "verdict", "speedup", "detail"), contenders))
    mutants = [(one.name, str(one.status), f"{one.overshoot:.0f}×", one.detail) for one in report.mutants]
    console.print(rows_table(("mutant", "verdict", "over the tolerance", "detail"), mutants))
    for objection in report.objections:
        console.print(f"objection: {objection}", markup=False)
    console.print("admitted" if report.admitted else f"not admitted: {len(report.objections)} objections")
