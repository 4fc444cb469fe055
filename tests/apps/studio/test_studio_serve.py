"""The command `exactdp studio`: it serves, ends with Ctrl-C, and refuses in one sentence."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from exactdp.apps.cli import app
from exactdp.apps.studio.server import serve as server
from exactdp.apps.studio.server.serve import bind, is_loopback
from exactdp.census.budget_files import parse_budget
from exactdp.errors import InvalidInputError, MissingExtraError
from studio_server import TEXT, Studio, alive, refused, until


@pytest.mark.posix
def test_the_command_serves_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("# title: Mine\nlevel,sex\nUS,1/3\n")
    run = "from exactdp.apps.cli import main; main()"
    command = [sys.executable, "-c", run, "studio", "mine.csv", "--port", "0", "--no-browser", "--verbose"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert address, line
        with httpx.Client(base_url=address[0] + "api/v1") as client:
            start = client.get("/start").json()
            assert start["design"]["title"] == "Mine"
            assert client.post("/pair", json={"design": start["design"]}).status_code == 200
        workers = _children(process.pid)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode in (0, 130)
    assert "Traceback" not in out + err
    assert re.search(r"POST \S*/pair 200", err)  # older starlettes tell the whole path
    assert "Mine" not in err
    assert until(lambda: not any(map(alive, workers)))


def _children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found += [int(entry.parent.name), *_children(int(entry.parent.name))]
    return found


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--host", "0.0.0.0"], "--allow-remote"),
        (["--name", "evil.example"], "--allow-remote"),
        (["--host", "localhost", "--name", "evil.example"], "Found --name evil.example; leave it out"),
        (["--port", "70000"], "--port must be at most 65535"),
        (["--port", "TAKEN"], "Choose another"),
        (["nothing"], "DESIGN is a .toml, .csv or .json file"),
        (["missing.csv"], "cannot be read"),
        (["--host", "no such host", "--allow-remote"], "cannot listen"),
    ],
)
def test_the_command_refuses_in_one_sentence(
    studio: Studio, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    with pytest.raises(SystemExit) as end:
        app(["studio", "--no-browser", *(str(studio.port) if a == "TAKEN" else a for a in arguments)])
    assert end.value.code == 2
    assert sentence in capsys.readouterr().err.splitlines()[-1]


def test_a_remote_studio_prints_its_token_once_and_logs_none() -> None:
    run = "from exactdp.apps.cli import main; main()"
    command = [
        sys.executable,
        "-c",
        run,
        "studio",
        "--port",
        "0",
        "--allow-remote",
        "--name",
        "studio.example",
        "--verbose",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = re.search(r"(http://127\.0\.0\.1:(\d+)/)\?token=([\w-]{43}) ", process.stdout.readline())
            assert address
            own, port, token = address.groups()
            with httpx.Client(base_url=own) as client:
                refused(client.get("/api/v1/start"), 401)
                assert client.get("/", params={"token": token}).status_code == 200
                assert client.get("/api/v1/start", headers={"host": f"studio.example:{port}"}).status_code == 200
                refused(client.get("/api/v1/start", headers={"host": f"evil.example:{port}"}), 403)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert "not encrypted" in err
    assert "GET /api/v1/start 200" in err or "GET /start 200" in err
    assert token not in out + err


def test_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.1.2.3", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "192.168.1.1", "::", "example.org")))


def test_a_missing_extra_names_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'exactdp\[studio\]'"):
        server.serve(parse_budget(TEXT, "small.toml"))
    with pytest.raises(InvalidInputError, match="cannot listen"):
        bind("127.0.0.1", 99_999)
