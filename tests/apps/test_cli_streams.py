"""The command as a process whose streams, limits and files are out of order: a sentence or silence, never a traceback."""

from __future__ import annotations

import os
import re
import shlex
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from command_line import refused, run
from exactdp.apps import cli

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="descriptors, limits and /dev/full are those of Linux")

COMMAND = [sys.executable, "-c", "import sys; sys.argv[0] = 'exactdp'; from exactdp.apps.cli import main; main()"]
EXACTDP = shlex.join(COMMAND)
CONVERT = f"{EXACTDP} convert --rho 1 --delta 1e-6"
CERTIFY = f"{EXACTDP} certify -m 1*10 --epsilon 3 --digits 5"
DESIGN = '[levels.Nation]\nsex = "1/2"\n'
COUNTS = "level,query,cell,count\nNation,sex,female,51234\nNation,sex,male,50111\n"


def bash(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script and see that nothing in it gave a traceback."""
    environment = {**os.environ, "COLUMNS": "200"}
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False, env=environment
    )
    assert "Traceback" not in done.stderr + done.stdout, done.stderr
    assert "Exception ignored" not in done.stderr, done.stderr
    return done


def less_telling(*case: object) -> object:
    """What another case, through the same code, tells as well."""
    return pytest.param(*case, marks=pytest.mark.soak)


def is_a_sentence(text: str) -> bool:
    return text.startswith("exactdp: ") and text.endswith(".\n") and text.count("\n") == 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place with a certificate that holds and one that does not."""
    place = tmp_path_factory.mktemp("streams")
    assert bash(f'{CERTIFY} -o good.json && sed \'s/"value": "3"/"value": "4"/\' good.json > bad.json', place)
    (place / "survey.toml").write_text(DESIGN)
    (place / "counts.csv").write_text(COUNTS)
    return place


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        (f"{CONVERT} > /dev/full", 2, "Standard output cannot be written: No space left on device."),
        (f"{CONVERT} >&-", 2, "Standard output cannot be written: it is closed."),
        less_telling(f"{EXACTDP} --help > /dev/full", 2, "No space left"),
        less_telling(f"{EXACTDP} sweep survey.toml --jobs 2 >&-", 2, "it is closed."),
        less_telling(f"{EXACTDP} verify good.json > /dev/full", 2, "No space left"),
        (f"{EXACTDP} verify bad.json >&-", 2, "it is closed."),
        (f"{CERTIFY} -o /dev/full", 2, "/dev/full cannot be read or written: No space left on device. Make room"),
        (f"ulimit -v 100000; {CONVERT}", 2, "Raise the limit (ulimit -v)"),
        (
            f"ulimit -v 400000; {EXACTDP} report survey.toml -o r.html",
            2,
            "Raise the limit (ulimit -v) to half a gigabyte",
        ),
        (f"ulimit -n 20; timeout 60 {EXACTDP} sweep survey.toml --dask local", 2, "256 open files, and 20 are allowed"),
    ],
)
def test_what_is_wrong_with_streams_files_and_limits_is_a_sentence(
    script: str, code: int, said: str, folder: Path
) -> None:
    before = stat.S_IFMT(Path("/dev/full").stat().st_mode)
    done = bash(script, folder)
    lines = [line for line in done.stderr.splitlines(keepends=True) if not line.startswith("OpenBLAS")]
    assert done.returncode == code
    assert is_a_sentence("".join(lines)), done.stderr
    assert said in done.stderr
    assert stat.S_IFMT(Path("/dev/full").stat().st_mode) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("certify -m 1*10 --epsilon 3 --digits 5 -o ''", "an empty text names no file"),
        ("census -o ''", "an empty text names no file"),
        ("certify -m 1*10 --epsilon 3 --digits 5 -o .", "Is a directory"),
        ("account ...toml --delta 1e-6", "must have a name before its ending"),
    ],
)
def test_names_of_no_file_are_refused_in_a_sentence(
    arguments: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "...toml").write_text(DESIGN)
    monkeypatch.chdir(tmp_path)
    assert is_a_sentence(refused(run(*shlex.split(arguments)), said))


@pytest.mark.parametrize(
    ("script", "codes"),
    [
        less_telling(f"{EXACTDP} verify good.json 2>&-", [0]),
        (f"{EXACTDP} verify bad.json 2>&-", [1]),
        less_telling(f"{EXACTDP} verify nowhere.json 2>/dev/full", [2]),
        (f"{EXACTDP} verify nowhere.json <&- >&- 2>&-", [2]),
        less_telling(f"{EXACTDP} verify good.json | true; exit ${{PIPESTATUS[0]}}", [0, 141]),
        (f"{EXACTDP} --help | head -1 > /dev/null; exit ${{PIPESTATUS[0]}}", [0, 141]),
        (f"{CERTIFY} -o /dev/null | true; exit ${{PIPESTATUS[0]}}", [0, 141]),
    ],
)
def test_closed_errors_and_readers_that_leave_end_quietly(script: str, codes: list[int], folder: Path) -> None:
    done = bash(script, folder)
    assert done.returncode in codes
    assert done.stderr == ""


def test_output_through_descriptors_goes_where_they_lead(folder: Path) -> None:
    done = bash(f"echo first > log; {CERTIFY} -o /dev/stdout >> log; head -2 log; grep -c . log", folder)
    assert done.stdout.startswith("first\n{")
    assert int(done.stdout.split()[-1]) > 20
    assert "sha256" in bash(f"{CERTIFY} -o /dev/stdout | cat", folder).stdout
    assert "sha256" in bash(f"{CERTIFY} -o >(cat >&2); sleep 0.2", folder).stderr


def test_numbers_that_python_would_not_print_are_answered(folder: Path) -> None:
    for command in (
        "calibrate -m 1 --epsilon 1 --grid 1 --json",
        "compare -m 1 --json",
        "report survey.toml -o r.html --no-figures",
    ):
        assert bash(f"{EXACTDP} {command} --delta 1e-5000", folder).returncode == 0, command
    assert (folder / "r.html").stat().st_size > 10_000
    few = "PYTHONINTMAXSTRDIGITS=640"
    assert bash(f"{few} {EXACTDP} certify -m 1 --delta 1e-1000 --digits 5 -o few.json", folder).returncode == 0
    assert bash(f"{few} {EXACTDP} verify few.json", folder).returncode == 0


def test_a_name_that_is_no_text_can_be_written_and_told(folder: Path) -> None:
    done = bash(f"PYTHONIOENCODING=utf-8:strict {CERTIFY} -o $'caf\\xe9.json'", folder)
    assert done.returncode == 0
    assert "caf\\udce9.json: delta" in done.stdout


@pytest.mark.parametrize("lost", ["> /dev/full", ">&- 2>&-", pytest.param("| true", marks=pytest.mark.soak)])
def test_a_release_that_is_on_disk_succeeded_whoever_can_read_about_it(folder: Path, lost: str, tmp_path: Path) -> None:
    pytest.importorskip("opendp")
    table = tmp_path / "noisy.csv"
    script = f"{EXACTDP} release counts.csv survey.toml --digits 5 -o {table} {lost}; exit ${{PIPESTATUS[0]}}"
    done = bash(script, folder)
    assert (done.returncode, table.exists()) == (0, True)
    assert done.stderr == "" if "2>" in lost else f"exactdp: {table} is there, complete" in done.stderr
    again = bash(script, folder)
    assert again.returncode == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "noisy.certificate.json",
        "noisy.csv",
        "noisy.noise.json",
    ]


def test_an_interrupt_while_modules_are_loaded_is_quiet(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("import time\nprint('loading', flush=True)\ntime.sleep(600)\n")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    with subprocess.Popen(
        COMMAND, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"loading\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate() == (b"", b"")
    assert process.returncode == 130


def test_nothing_that_takes_time_is_loaded_before_interrupts_are_quiet() -> None:
    """Until then Ctrl-C is a traceback; from the first module on that `main` needs it is none."""
    code = "import sys; before = {*sys.modules}; import exactdp.apps.cli; print(*sorted({*sys.modules} - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["exactdp", "exactdp.apps", "exactdp.apps.cli"]
    code = "import signal, sys; from exactdp.apps.cli import main\n"
    code += "class Finder:\n def find_spec(self, *_): signal.raise_signal(signal.SIGINT)\n"
    code += "sys.meta_path.insert(0, Finder()); main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_an_interrupt_of_a_command_is_quiet(folder: Path) -> None:
    pipe = folder / "waiting"
    os.mkfifo(pipe)
    with (
        subprocess.Popen([*COMMAND, "verify", str(pipe)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process,
        pipe.open("wb"),  # opened only once the command reads it
    ):
        process.send_signal(signal.SIGINT)
        assert process.communicate() == (b"", b"")
    assert process.returncode == 130


def test_a_package_that_cannot_be_loaded_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("raise ImportError('libblas.so: failed to map segment\\nfrom shared object')\n")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(COMMAND, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert is_a_sentence(done.stderr)
    assert "libblas.so: failed to map segment from shared object." in done.stderr


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "memory"),
        (OSError(24, "Too many open files"), "ulimit -n"),
        (OSError(24, "Too many open files", "x.json"), "x.json"),
        (RuntimeError("can't start new thread"), "thread"),
        (ImportError("x.so: failed to map segment"), "x.so"),
        (BrokenPipeError(32, "Broken pipe", "pipe"), "pipe cannot"),
        (BrokenPipeError(32, "Broken pipe"), "A file cannot"),
    ],
)
def test_what_the_system_refuses_is_a_sentence(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(_: object) -> None:
        raise error

    monkeypatch.setattr(cli.certificates, "load_certificate", refused)
    with pytest.raises(SystemExit) as end:
        cli.app(["verify", "x.json"])
    assert end.value.code == 2
    told = capsys.readouterr().err
    assert is_a_sentence(told)
    assert said in told


def test_what_nobody_foresaw_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence with the place, without the text of the error, which may hold a count."""

    def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError("51234 persons")

    monkeypatch.setattr("exactdp.apps.cli.certificates.certify", fails)
    done = CliRunner().invoke(cli.app, ["certify", "-m", "1", "--epsilon", "1"])
    assert done.exit_code == 70
    assert re.fullmatch(r"exactdp: This is a defect of exactdp \(ZeroDivisionError in fails, .*\n", done.stderr)
    assert "51234" not in done.output
