"""A command in a real pseudo-terminal, at one width after the other."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Sequence

_RUN = """
import fcntl, struct, sys, termios
from exactdp.apps.cli import main
widths, sys.argv = sys.argv[1], ["exactdp", *sys.argv[2:]]
for columns in map(int, widths.split()):
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code or 0
    print(end=f"{code}\\f", flush=True)
"""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(widths: Sequence[int], *arguments: str, timeout: float = 240) -> list[tuple[int, list[str]]]:
    """For each number of columns the exit code and the lines that the terminal shows, standard error left out."""
    master, slave = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    environment["TERM"] = "xterm-256color"
    command = [sys.executable, "-c", _RUN, " ".join(map(str, widths)), *arguments]
    try:
        process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=subprocess.DEVNULL, env=environment)
        os.close(slave)
        shown = _read(master, process, time.monotonic() + timeout)
        assert process.wait(timeout=30) == 0
    finally:
        os.close(master)
    *runs, rest = _ESCAPES.sub("", shown).replace("\r\n", "\n").split("\f")
    assert (len(runs), rest) == (len(widths), "")
    return [(int(lines[-1]), lines[:-1]) for lines in (run.split("\n") for run in runs)]


def _read(master: int, process: subprocess.Popen[bytes], deadline: float) -> str:
    parts = []
    while time.monotonic() < deadline:
        ready, _, _ = select.select([master], [], [], 0.2)
        if ready:
            try:
                part = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            parts.append(part)
        elif process.poll() is not None:
            break
    else:
        process.kill()
    return b"".join(parts).decode()
