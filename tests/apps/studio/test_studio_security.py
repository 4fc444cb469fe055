"""Who may ask the studio, how much may be sent, and which headers every answer carries."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest

from exactdp.apps.studio.limits import AT_MOST
from exactdp.apps.studio.server.security import addresses
from studio_server import SMALL, Studio, raw, refused


@pytest.mark.parametrize("path", ["/", "/static/x.js", "/api/v1/start", "/api/v1/openapi.json", "/nowhere"])
def test_other_hosts_and_origins_are_refused(studio: Studio, path: str) -> None:
    for host in ("evil.example", f"evil.example:{studio.port}", "127.0.0.1", f"127.0.0.1:{studio.port}.evil.example"):
        assert raw(studio, "GET", path, {"Host": host})[0] == 403
    assert raw(studio, "GET", path, {})[0] in (400, 403)
    for origin in (
        "http://evil.example",
        "null",
        f"https://{studio.host}",
        "http://127.0.0.1",
        f"http://localhost:{studio.port}",
    ):
        status, headers, body = raw(studio, "GET", path, {"Host": studio.host, "Origin": origin})
        assert status == 403
        assert b"own page" in body
        assert "access-control-allow-origin" not in headers


def test_the_own_page_may_ask(studio: Studio) -> None:
    for host in (studio.host, f"localhost:{studio.port}", f"LOCALHOST:{studio.port}", f"[::1]:{studio.port}"):
        headers = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
        assert raw(studio, "GET", "/api/v1/health", headers)[0] == 200
    elsewhere = {"Host": studio.host, "Sec-Fetch-Site": "cross-site"}
    assert raw(studio, "GET", "/api/v1/health", elsewhere)[0] == 403
    assert addresses(["localhost"], 80) == {"localhost:80", "localhost"}


def test_only_json_and_only_known_methods(studio: Studio) -> None:
    body = json.dumps({"design": SMALL}).encode()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp"):
        refused(studio.client.post("/check", content=body, headers={"content-type": kind}), 415)
    refused(studio.client.post("/check", content=body), 415)
    gzip = {"content-type": "application/json", "content-encoding": "gzip"}
    refused(studio.client.post("/check", content=body, headers=gzip), 415)
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE"):
        refused(studio.client.request(method, "/check"), 405)
    refused(studio.client.get("/check"), 405)
    refused(studio.client.get("/nothing"), 404)


def test_every_answer_has_the_headers(studio: Studio) -> None:
    origin = f"http://{studio.host}"
    for response in (
        studio.client.get(f"{origin}/"),
        studio.client.get("/start"),
        studio.client.get("/nothing"),
        studio.client.get("/start", headers={"origin": "null"}),
        studio.post("/pair", {}),
        studio.client.get("/docs"),
        studio.client.get(f"{origin}/static/nothing.js"),
    ):
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "style-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "no-referrer"
        assert response.headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in response.headers
        assert "server" not in response.headers


def test_the_page_for_people_has_everything_and_no_scripts(studio: Studio) -> None:
    page = studio.client.get("/docs").text
    for path in studio.client.get("/openapi.json").json()["paths"]:
        assert path.replace("{", "").replace("}", "") in page.replace("{", "").replace("}", "")
    assert "<script" not in page
    assert not re.findall(r"(?:src|href)=[\"']?(?:https?:)?//", page)
    assert studio.client.get("/docs.css").headers["content-type"].startswith("text/css")


def test_files_of_the_machine_are_out_of_reach(studio: Studio) -> None:
    for path in (
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static//etc/passwd",
        "/..%2f..%2fetc/passwd",
    ):
        assert raw(studio, "GET", path, {"Host": studio.host})[0] in (400, 404)


def test_bodies_that_are_too_large(studio: Studio) -> None:
    headers = {"content-type": "application/json"}
    large = b" " * (AT_MOST.body_bytes + 1)
    assert "1,500,000 bytes" in refused(studio.client.post("/check", content=large, headers=headers), 413)

    def chunks() -> Iterator[bytes]:
        for _ in range(AT_MOST.body_bytes // 10_000 + 2):
            yield b" " * 10_000

    with suppress(httpx.WriteError):  # the server may hang up before the end, which will do as well
        assert "1,500,000 bytes" in refused(studio.client.post("/check", content=chunks(), headers=headers), 413)
    for length in ("-1", "x", "9" * 30):
        status = raw(
            studio,
            "POST",
            "/api/v1/check",
            {"Host": studio.host, "Content-Type": "application/json", "Content-Length": length},
        )
        assert status[0] in (400, 413)


def test_a_body_that_does_not_come(hasty: Studio) -> None:
    head = f"POST /api/v1/check HTTP/1.1\r\nHost: {hasty.host}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
    with socket.create_connection(("127.0.0.1", hasty.port), timeout=10) as slow:
        slow.sendall(head.encode())
        assert slow.recv(1000).startswith(b"HTTP/1.1 408")
