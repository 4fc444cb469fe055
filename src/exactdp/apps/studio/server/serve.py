"""The studio as a process: a socket on this machine, the application behind its checks, and an orderly end."""

from __future__ import annotations

import ipaddress
import os
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

from exactdp.census.releases import Release
from exactdp.errors import InvalidInputError, MissingExtraError
from exactdp.numbers import shown
from exactdp.threads import multiply_in_one_thread

if TYPE_CHECKING:
    import uvicorn

    from exactdp.apps.studio.server.scheduler import Scheduler

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # the protocol by its number: only then are small packets sent at once, instead of after up to 40 ms
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(256)
        return listening
    except (OSError, OverflowError, UnicodeError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInputError(
            f"The studio cannot listen at {host}, port {port}: {reason}. Choose another with --port, or --port 0."
        ) from None


def make_server(
    start: Release,
    listening: socket.socket,
    names: Iterable[str] = LOOPBACK,
    *,
    token: str = "",
    scheduler: Scheduler | None = None,
    ready: Callable[[], None] = lambda: None,
) -> uvicorn.Server:
    """A server for this socket that answers to these names; `ready` is called once it does. Run it with its socket.

    With a token, whoever asks must have it.
    """
    import uvicorn

    from exactdp.apps.studio.server.app import make_app
    from exactdp.apps.studio.server.connections import guarded
    from exactdp.apps.studio.server.scheduler import Scheduler
    from exactdp.apps.studio.server.security import SecurityMiddleware, addresses

    multiply_in_one_thread()  # the workers: there are as many processes as there is work for
    the_scheduler = scheduler or Scheduler()
    allowed = addresses(names, listening.getsockname()[1])
    config = uvicorn.Config(
        SecurityMiddleware(make_app(start, the_scheduler), allowed, the_scheduler.limits.body_seconds, token),
        http=guarded(the_scheduler.limits),
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="on",
        ws="none",
        timeout_keep_alive=30,
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=32 << 10,
    )

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready()

    return Server(config)


def _check_local(host: str, other_names: Sequence[str]) -> None:
    """Without a token the Host header is what keeps other sites out: no name but those of this machine will do."""
    if not is_loopback(host):
        raise InvalidInputError(
            f"Other machines could use the studio at this host. Found {host}; leave --host out, or add --allow-remote, "
            "which asks for a token."
        )
    if other_names:
        raise InvalidInputError(
            f"A name by which browsers reach the studio needs --allow-remote. Found --name {shown(other_names[0])}; leave it "
            "out, or add --allow-remote, which asks for a token."
        )


def serve(
    start: Release,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    other_names: Sequence[str] = (),
    remote: bool = False,
    browser: bool = True,
    told: Callable[[str], None] = print,
) -> None:
    """Serve until interrupted; `told` hears the address once the server answers there.

    Names of one's own and hosts that other machines reach need `remote`. Then there is a token, which is part of the address
    that is told and nowhere else; no browser is opened, as the token would stand in its command line for all users to see.
    """
    if not remote:
        _check_local(host, other_names)
    if any(find_spec(needed) is None for needed in ("fastapi", "uvicorn")):
        raise MissingExtraError("The studio", "studio")
    with bind(host, port) as listening:
        named = "127.0.0.1" if host in ("0.0.0.0", "") else f"[{host}]" if ":" in host else host
        token = secrets.token_urlsafe(32) if remote else ""
        address = f"http://{named}:{listening.getsockname()[1]}/" + (f"?token={token}" if token else "")

        def ready() -> None:
            told(address)
            if browser and not remote:
                threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

        server = make_server(start, listening, {*LOOPBACK, host, *other_names}, token=token, ready=ready)
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listening])
