"""A picture of the board: `python -m leaderboard.screenshot board.png [--runs runs] [--page matrix] [--dark]`."""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Page, sync_playwright

from suite.errors import UserError

START_S = 60
PAGE_MS = 120_000
# Without them Chromium wants a sandbox it cannot have as root, and asks its maker for updates.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def board(runs: Path) -> Iterator[str]:
    """Serves the board of a runs folder on a free loopback port; yields its address."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    app = Path(__file__).with_name("app.py")
    flags = ["--server.port", str(port), "--server.address", "127.0.0.1", "--server.headless", "true"]
    server = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", str(app), *flags, "--browser.gatherUsageStats", "false"],
        env={**os.environ, "DERBY_RUNS": str(runs.resolve())},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        address = f"http://127.0.0.1:{port}"
        _await(f"{address}/_stcore/health", server)
        yield address
    finally:
        server.terminate()
        server.wait()


def _await(address: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=1).close()
            return
        except OSError:
            time.sleep(0.2)
    raise UserError(
        "the board did not start", f"an answer within {START_S} s", "run `streamlit run leaderboard/app.py` and read on"
    )


def shoot(address: str, picture: Path, dark: bool = False, width: int = 1500) -> None:
    """Saves the whole page at `address` as a PNG."""
    chromium = shutil.which("chromium")
    if chromium is None:
        raise UserError("no chromium on this machine", "a browser to draw the page", "apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        size = {"width": width, "height": 1000}
        page = browser.new_page(viewport=size, color_scheme="dark" if dark else "light", device_scale_factor=1)  # type: ignore[arg-type]
        page.set_default_timeout(PAGE_MS)
        page.goto(address)
        page.wait_for_selector("text=data as of")
        _settle(page)
        # Streamlit scrolls an inner element, so a picture of the whole page needs a window as tall as what is in it.
        page.set_viewport_size({"width": width, "height": _bottom(page)})
        _settle(page)
        page.set_viewport_size({"width": width, "height": _bottom(page)})  # tables may have grown
        _settle(page)
        picture.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=picture)
        browser.close()


def _settle(page: Page) -> None:
    """Waits for the script to end, for the last placeholder to go and for canvases to draw."""
    # Closed expanders keep their placeholders; those have no box on the page.
    waiting = "[...document.querySelectorAll('[data-testid=stStatusWidget], [data-testid=stSkeleton]')]"
    page.wait_for_function(f"{waiting}.every(item => item.getClientRects().length === 0)")
    page.wait_for_timeout(1500)


def _bottom(page: Page) -> int:
    """Where the footer ends, in pixels from the top of the page."""
    footer = page.get_by_text("data as of").last.bounding_box()
    return int(footer["y"] + footer["height"]) + 40 if footer else 1000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m leaderboard.screenshot", description="Draw the board as a PNG.")
    parser.add_argument("picture", type=Path)
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--page", default="", help="path and query of another page, as matrix or trial?view=source")
    parser.add_argument("--trial", help="draw this trial's page instead of the standings")
    asked = parser.parse_args()
    page = f"trial?{urlencode({'trial': asked.trial})}" if asked.trial else asked.page
    with board(asked.runs) as address:
        shoot(f"{address}/{page}", asked.picture, asked.dark)


if __name__ == "__main__":
    main()
