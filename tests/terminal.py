"""A command in a real pseudo-terminal of a given width."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

_COMMAND = [sys.executable, "-c", "from exactdp.apps.cli import main; main()"]
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(columns: int, *arguments: str, timeout: float = 240) -> tuple[int, list[str]]:
    """The exit code and the lines that a terminal of so many columns shows, standard error left out."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    environment["TERM"] = "xterm-256color"
    try:
        process = subprocess.Popen(
            [*_COMMAND, *arguments], stdin=slave, stdout=slave, stderr=subprocess.DEVNULL, env=environment
        )
        os.close(slave)
        shown = _read(master, process, time.monotonic() + timeout)
        return process.wait(timeout=30), _ESCAPES.sub("", shown).replace("\r\n", "\n").split("\n")
    finally:
        os.close(master)


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
