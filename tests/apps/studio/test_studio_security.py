"""Who may ask the studio, how much may be sent, and which headers every answer carries."""

from __future__ import annotations

import hashlib
import json
import re
import socket
from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest

from exactdp.apps.studio.limits import AT_MOST, WorkLimits
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


@pytest.fixture(scope="module")
def remote() -> Iterator[Studio]:
    one = Studio(WorkLimits(), token=TOKEN)
    yield one
    one.close()


TOKEN = "a-token-of-this-test"
EVERY_PLACE = [
    "/",
    "/static/main.js",
    "/api/v1/start",
    "/api/v1/docs",
    "/api/v1/docs.css",
    "/api/v1/openapi.json",
    "/nowhere",
]


@pytest.mark.parametrize("path", EVERY_PLACE)
def test_a_remote_studio_refuses_everything_without_its_token(remote: Studio, path: str) -> None:
    own = {"Host": remote.host}
    for more in (
        {},
        {"Authorization": "Bearer"},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Cookie": f"exactdp-studio={TOKEN}; token={TOKEN}"},
    ):
        status, headers, body = raw(remote, "GET", path, {**own, **more})
        assert status == 401
        assert headers["www-authenticate"] == "Bearer"
        assert "set-cookie" not in headers
        assert "Open the address that it printed" in json.loads(body)["error"]
    assert raw(remote, "GET", f"{path}?token={TOKEN}x", own)[0] == 401
    assert raw(remote, "GET", path, {**own, "Authorization": f"Bearer {TOKEN}"})[0] == (
        404 if "nowhere" in path else 200
    )
    assert raw(remote, "GET", path, {"Host": "evil.example", "Authorization": f"Bearer {TOKEN}"})[0] == 403


def test_the_printed_address_is_exchanged_for_a_cookie(remote: Studio) -> None:
    own = {"Host": remote.host}
    status, headers, body = raw(remote, "GET", f"/?token={TOKEN}", own)
    assert status == 200
    assert TOKEN.encode() not in body  # and leads on to an address without it
    assert b'content="0; url=/"' in body
    cookie, *attributes = headers["set-cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} == set(attributes)
    assert raw(remote, "GET", "/", {**own, "Cookie": f"other=1; {cookie}"})[0] == 200
    assert raw(remote, "GET", "/", {**own, "Cookie": f"{cookie}x"})[0] == 401
    body = json.dumps({"design": SMALL}).encode()
    kind = {"Content-Type": "application/json", "Content-Length": str(len(body))}
    assert raw(remote, "POST", "/api/v1/check", {**own, **kind, "Cookie": cookie}, body)[0] == 200
    assert raw(remote, "POST", "/api/v1/check", {**own, **kind}, body)[0] == 401
    assert raw(remote, "GET", f"/api/v1/start?token={TOKEN}", own)[0] == 401  # the address is for the page only


def test_a_studio_of_this_machine_asks_for_no_token(studio: Studio) -> None:
    status, headers, _ = raw(studio, "GET", "/?token=any", {"Host": studio.host})
    assert status == 200
    assert "set-cookie" not in headers


def test_files_of_the_page_are_checked_each_time(studio: Studio) -> None:
    origin = f"http://{studio.host}"
    for path in ("/", "/static/main.js", "/static/style/studio.css", "/static/mark.svg"):
        first = studio.client.get(origin + path)
        assert first.headers["cache-control"] == "no-cache"
        tag = first.headers["etag"]
        assert (
            tag == f'"{hashlib.sha256(first.content).hexdigest()}"'
        )  # of the content: two versions may share time and size
        again = studio.client.get(origin + path, headers={"if-none-match": f'"old", W/{tag}'})
        assert again.status_code == 304
        assert again.headers["cache-control"] == "no-cache"
        assert studio.client.get(origin + path, headers={"if-none-match": '"old"'}).content == first.content
    assert studio.client.get(f"{origin}/static/main.js").headers["content-type"].startswith("text/javascript")
    for path in ("/docs", "/docs.css"):
        assert studio.client.get(path).headers["cache-control"] == "no-cache"
