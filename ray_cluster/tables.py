"""What the command line shows: trials as a table or as lines, a verdict, standings. Text only, no decisions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table as RichTable

from leaderboard.standings import Table
from ray_cluster.progress import Progress, State
from suite.events import Evaluated, Event
from suite.score import Estimate, score

STYLES = {State.SUSPENDED: "red", State.FINISHED: "green", State.RUNNING: "cyan", State.MEASURING: "magenta"}


def times(value: float | None) -> str:
    """A speedup: "1.23x", "failed" for 0, a dash for none yet."""
    if value is None:
        return "–"
    return f"{value:.2f}×" if value > 0 else "failed"


def estimate(value: Estimate | None) -> str:
    if value is None or value.value <= 0:
        return times(value.value if value else None)
    interval = f" [{value.low:.2f}, {value.high:.2f}]" if value.low is not None and value.high is not None else ""
    return times(value.value) + interval


def dollars(value: float | None) -> str:
    return "unknown" if value is None else f"${value:.2f}" if value >= 0.01 or value == 0 else f"${value:.4f}"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"


def evaluations(trial: Progress) -> str:
    limit = trial.budget.evaluations
    return f"{trial.spent.evaluations}/{limit}" if limit is not None else str(trial.spent.evaluations)


def progress_table(trials: Sequence[Progress], elapsed_s: float | None = None, eta_s: float | None = None) -> RichTable:
    """The live table: one row a trial."""
    table = RichTable(caption=_caption(trials, elapsed_s, eta_s), caption_justify="left", header_style="bold")
    for name in ("method", "task", "seed", "state"):
        table.add_column(name, overflow="fold")
    for name in ("evaluations", "starter", "best", "champion", "held-out", "tokens", "cost", "time"):
        table.add_column(name, justify="right", no_wrap=True)
    for trial in trials:
        style = STYLES.get(trial.state, "")
        state = f"[{style}]{trial.state}[/]" if style else str(trial.state)
        speeds = [times(value) for value in (trial.starter, trial.best, trial.champion, trial.heldout)]
        spent = trial.spent
        cost = (str(spent.usage.total), dollars(spent.usd), duration(spent.wall_s))
        table.add_row(trial.method, trial.task, str(trial.seed), state, evaluations(trial), *speeds, *cost)
    return table


def _caption(trials: Sequence[Progress], elapsed_s: float | None, eta_s: float | None) -> str | None:
    if elapsed_s is None:
        return None
    finished = sum(trial.state is State.FINISHED for trial in trials)
    rest = f", about {duration(eta_s)} to go" if eta_s is not None and finished < len(trials) else ""
    return (
        f"{finished} of {len(trials)} trials finished, {duration(elapsed_s)} so far{rest}; speedups over the baseline"
    )


def progress_words(trial: Progress, event: Event) -> str:
    """One plain line for an event that moved a trial."""
    name = f"{trial.method} {trial.task} seed {trial.seed}"
    if isinstance(event, Evaluated):
        value = score(event.evaluation).value
        verdict = times(value) if value > 0 else str(event.evaluation.status)
        what = "starter" if event.number == 0 else f"evaluation {evaluations(trial)}"
        return f"{name}: {what} {verdict}, best {times(trial.best)}"
    if trial.state is State.FINISHED:
        return f"{name}: finished, champion {times(trial.champion)}, held-out {times(trial.heldout)} ({trial.reason})"
    reason = f" ({trial.reason})" if trial.reason else ""
    return f"{name}: {trial.state}{reason}"


def standings_table(table: Table) -> RichTable:
    """One comparison of the leaderboard, as the board shows it."""
    shown = RichTable(
        title=f"{table.partition.task}\n{table.partition.title}",
        caption="speedup over the baseline (1.00×); 95 % intervals",
        header_style="bold",
        title_justify="left",
        caption_justify="left",
    )
    shown.add_column("#", justify="right")
    shown.add_column("method", overflow="fold")
    for name in ("held-out", "search", "while searching", "evaluations", "tokens", "time", "GFLOPS", "GB/s"):
        shown.add_column(name, justify="right", no_wrap=True)
    shown.add_column("marks", overflow="fold")
    for row in table.rows:
        shown.add_row(
            str(row.rank) if row.rank is not None else "",
            table.label(row),
            estimate(row.heldout),
            estimate(row.search),
            times(row.search_time),
            *(number(value) for value in (row.evaluations, row.tokens)),
            duration(row.wall_s),
            *(number(value) for value in (row.gflops, row.gbytes_per_s)),
            ", ".join(row.marks),
        )
    return shown


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.1f}"


def rows_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> RichTable:
    """A plain table."""
    table = RichTable(*columns, header_style="bold")
    for row in rows:
        table.add_row(*row)
    return table
