"""The `derby` command. Each command loads what it needs when it runs: `check` knows neither Ray nor MLflow."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ray_cluster.console import Exit, MissingEnvironment, exit_code, say, show_error
from suite.errors import InfraError, UserError
from suite.judge.plan import Timing

app = typer.Typer(
    name="derby",
    help="Races methods that search for fast kernels, and judges single kernels.",
    epilog="Begin with: derby demo. Judge one kernel: derby check gqa_paged_decode_h32_kv4_d128_ps1 my_kernel.cpp",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

Runs = Annotated[Path, typer.Option("--runs", envvar="DERBY_RUNS", help="Folder of races and their records.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON (with a schema_version) instead of a table.")]
RaceName = Annotated[str, typer.Argument(help="Name of a race in the runs folder.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Begin again; the old race folder is moved to .aside.")]
RUNS = Path("runs")


@app.command()
def demo(runs: Runs = RUNS, fresh: Fresh = False) -> None:
    """Race four methods on two tasks on this machine, under five minutes, then show the standings."""
    from ray_cluster.demo import run_demo

    raise typer.Exit(run_demo(runs, fresh))


@app.command()
def run(
    card: Annotated[Path, typer.Argument(help="A race card (TOML); `derby list races` shows those of the suite.")],
    runs: Runs = RUNS,
    fresh: Fresh = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show trials, calls and cost; run nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run the race on CARD, or go on with it: what is done already is not done again."""
    if dry_run:
        from ray_cluster.dry_run import show_plan

        raise typer.Exit(show_plan(card, runs, as_json))
    from ray_cluster.run import run_card

    raise typer.Exit(run_card(card, runs, fresh, as_json))


@app.command()
def check(
    task: Annotated[str, typer.Argument(help="Name of a task (`derby list tasks`) or its folder.")],
    files: Annotated[list[Path], typer.Argument(help="The kernel; the first file holds `run`.")],
    champion: Annotated[bool, typer.Option("--champion", help="Time long and on held-out shapes too.")] = False,
    lane: Annotated[str, typer.Option(help="Lane of the task.")] = "cpu",
    timing: Annotated[Timing, typer.Option(hidden=True)] = "standard",
    as_json: AsJson = False,
) -> None:
    """Judge one kernel: is it right, and how fast is it against the task's baseline? Exit code 3 if it fails."""
    from ray_cluster.check import check as judge
    from ray_cluster.check import report
    from suite.types import Tier

    evaluation = judge(task, files, Tier.CHAMPION if champion else Tier.SEARCH, lane, timing)
    raise typer.Exit(report(evaluation, as_json))


@app.command()
def status(
    race: Annotated[str | None, typer.Argument(help="Name of a race; left out: all races.")] = None,
    runs: Runs = RUNS,
    as_json: AsJson = False,
) -> None:
    """Show where the trials of a race stand; works while it runs."""
    from ray_cluster.status import show_status

    raise typer.Exit(show_status(runs, race, as_json))


@app.command()
def stop(race: RaceName, runs: Runs = RUNS) -> None:
    """Ask a running race to suspend its trials and end; the same `derby run` goes on with it later."""
    from ray_cluster.status import stop_race

    raise typer.Exit(stop_race(runs, race))


@app.command("list")
def list_(
    what: Annotated[str, typer.Argument(help="methods, tasks or races")],
    runs: Runs = RUNS,
    as_json: AsJson = False,
) -> None:
    """List the methods and tasks of this installation, or the races of the runs folder and the cards of the suite."""
    from ray_cluster.listing import show_list

    raise typer.Exit(show_list(what, runs, as_json))


@app.command()
def standings(
    race: Annotated[str | None, typer.Argument(help="Only this race.")] = None,
    runs: Runs = RUNS,
    as_json: AsJson = False,
) -> None:
    """Print the standings that the board shows."""
    from ray_cluster.board import show_standings

    raise typer.Exit(show_standings(runs, race, as_json))


@app.command()
def board(
    runs: Runs = RUNS, port: Annotated[int, typer.Option(help="Port of the page.", min=1, max=65535)] = 8501
) -> None:
    """Open the board in a browser, and say how to open MLflow's own page."""
    from ray_cluster.board import run_board

    raise typer.Exit(run_board(runs, port))


@app.command()
def rebuild(runs: Runs = RUNS) -> None:
    """Write MLflow's records again from the ledgers, e.g. after its server could not be reached."""
    from ray_cluster.board import rebuild_records

    raise typer.Exit(rebuild_records(runs))


@app.command()
def admit(
    task: Annotated[str, typer.Argument(help="Name of a task or its folder.")],
    lane: Annotated[str, typer.Option(help="Lane of the task.")] = "cpu",
    as_json: AsJson = False,
) -> None:
    """Examine a task before it may be raced: starter, variants, mutants and the choice of its baseline."""
    from ray_cluster.admit import admit_task

    raise typer.Exit(admit_task(task, lane, as_json))


def main() -> None:
    """Entry point: user errors in three parts and without traceback, exit codes as `Exit` lists them."""
    try:
        app()
    except UserError as error:
        show_error(error)
        sys.exit(exit_code(error))
    except OSError as error:
        show_error(
            MissingEnvironment(
                f"{error.filename or 'the machine'}: {error.strerror or error}",
                "files and folders that this user may read and write, and room on the disk",
                "mend it, then give the same command again: what is done already is kept",
            )
        )
        sys.exit(Exit.ENVIRONMENT)
    except InfraError as error:
        say(f"failure of ours: {error}")
        sys.exit(Exit.INTERNAL)
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)


if __name__ == "__main__":
    main()
