"""Command lines with wrong values: an answer, or exit code 2 with one sentence; never a traceback, never NaN."""

from __future__ import annotations

import contextlib
import random
import re
import tempfile
from pathlib import Path

from typer.testing import CliRunner

from campaigns.tally import Tally
from exactdp.apps import cli

_NUMBERS = [
    *("0", "1", "-1", "0.5", "3", "1e-10", "1e10", "1e-324", "1e-5000", "1e5000", "-0", "1/3", "1/0", "1e999999999"),
    *("", " ", "x", "nan", "inf", "-inf", "1,5", "½", "1__0", "0x10", "True", "1" * 5000, "1e-3 ", "٣"),
]
_MECHANISMS = [
    *("1*10", "5/2", "4:2", "1/10*3", "0", "-1", "1*0", "1*-2", "1*1e3", "1:0", ":", "*", "", "x", "nan", "1e-5000"),
    *("1e5000", "1*99999999999999999999", "1:2:3", "1*2*3", "sigma=2", "laplace(2)*3", "{", "[1]", "1" * 5000),
]
_FILES = [
    *(
        b"",
        b"\x00\xff",
        b"[levels]\n",
        b'[levels.Nation]\nsex = "1/2"\n',
        b'[levels.Nation]\nsex = "1/0"\n',
        b"{}",
        b"[]",
    ),
    *(b'[levels.Nation]\nsex = -1\n[bypassed]\n1 = ["Nation"]\n', b'{"levels": {"a": {"b": 1e999}}}', b"level,query\n"),
]

_DESIGN = b'[levels.Nation]\nsex = "1/2"\nage = "1/3"\n[levels.State]\nsex = "1/4"\n'


def wrong_values(seed: int) -> Tally:
    """Fifty command lines in one process."""
    tally, rng = Tally(), random.Random(seed)
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        for _ in range(50):
            arguments = _command(rng, Path(name))
            done = CliRunner().invoke(cli.app, arguments)
            shown = " ".join(a if len(a) < 60 else f"{a[:20]}... ({len(a)} characters)" for a in arguments)
            calm = done.exception is None or isinstance(done.exception, SystemExit)
            tally.check(calm, f"seed {seed}: exactdp {shown}: {done.exception!r}")
            if calm:
                text = re.sub(r"Found .*|.*must be.*", "", done.output)
                fine = done.exit_code in (0, 2) and "Traceback" not in text
                fine &= done.exit_code != 0 or not re.search(r"\bnan\b", text)
                tally.check(fine, f"seed {seed}: exactdp {shown}: exit code {done.exit_code}: {done.output[-300:]}")
    return tally


def _command(rng: random.Random, folder: Path) -> list[str]:
    """Most values are fine, so that a wrong one is seen in the company of right ones."""

    def number(usual: str) -> str:
        return usual if rng.random() < 0.6 else rng.choice(_NUMBERS)

    file = folder / rng.choice(["a.toml", "a.toml", "b.json", "c.csv", "d.txt", "...toml"])
    file.write_bytes(_DESIGN if rng.random() < 0.6 else rng.choice(_FILES))
    mechanisms = ["-m", rng.choice(_MECHANISMS[:4] if rng.random() < 0.7 else _MECHANISMS)]
    given = rng.choice(["--epsilon", "--delta"])
    output = rng.choice(["", ".", str(folder), str(folder / "out"), str(folder / "no" / "out.html")])
    return rng.choice(
        [
            ["certify", *mechanisms, rng.choice(["--alpha", given]), number("1/3"), "--digits", number("12")],
            ["compare", *mechanisms, "--delta", number("1e-6")],
            ["calibrate", *mechanisms, "--epsilon", number("3"), "--delta", number("1e-6")],
            ["risk", *mechanisms, "--prior", number("1/10")],
            ["convert", rng.choice(["--rho", "--mu"]), number("1"), given, number("1/5")],
            ["account", str(file), "--delta", number("1e-6")],
            ["census", "--release", str(file), "--delta", number("1e-6"), "-o", output, "--no-figures"],
            ["sweep", str(file), "--delta", number("1e-6")],
            ["verify", str(file)],
            ["release", str(file), str(file), "-o", output],
            ["report", str(file), "-o", output],
        ]
    )
