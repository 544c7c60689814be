"""Command `physvision open`: the application on a clip, in the browser."""

from __future__ import annotations

import argparse
import contextlib
import ipaddress
import secrets
import socket
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Sequence
from pathlib import Path


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command's options."""
    description = "Open a page in the browser: drop a clip, see what moves in it, and find its physics."
    parser = argparse.ArgumentParser(prog="physvision open", description=description, allow_abbrev=False)
    parser.add_argument("clip", nargs="?", help="video to open first")
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on; 0.0.0.0 admits other devices of the network, by a token in the printed address",
    )
    parser.add_argument("--port", type=int, default=0, help="port to listen on; a free one by default")
    parser.add_argument("--browser", action=argparse.BooleanOptionalAction, default=True, help="open the browser")
    return parser


def run_command(arguments: Sequence[str]) -> int:
    """Run the application until it is interrupted, and return the exit status."""
    options = build_parser().parse_args(arguments)
    clip = None if options.clip is None else Path(options.clip)
    if clip is not None and not clip.is_file():
        return _fail(f"{options.clip}: no such file; expected a video")
    try:
        import uvicorn

        from physvision.app.server import make_app
        from physvision.app.worker_process import WorkerProcess
    except ImportError as error:
        return _fail(f"needs the package {error.name}; pip install 'physvision[app]'")
    try:
        listener = socket.create_server((options.host, options.port), family=_family(options.host))
    except (OSError, OverflowError) as error:
        return _fail(f"cannot listen on {options.host}, port {options.port}: {error}; choose another --host or --port")
    token = None if _is_loopback(options.host) else secrets.token_urlsafe(16)
    address = _address(options.host, listener.getsockname()[1], token)
    print(f"physvision is open at {address}\nEnd it with Ctrl+C.", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        if options.browser:
            threading.Timer(0.3, webbrowser.open, (address,)).start()
        folder = Path(tempfile.mkdtemp(prefix="physvision-"))
        app = make_app(folder, WorkerProcess(), token, clip)
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=1
        )
        uvicorn.Server(config).run([listener])
    return 0


def _fail(message: str) -> int:
    print(f"physvision open: {message}", file=sys.stderr)
    return 1


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _address(host: str, port: int, token: str | None) -> str:
    """Return the address of the page; that of this machine in its network where it listens on all of them."""
    if host in ("0.0.0.0", "::"):
        host = _network_address() or socket.gethostname()
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}/" + (f"?token={token}" if token else "")


def _network_address() -> str | None:
    """Return this machine's address in its network; connecting a datagram socket sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # an address that is reserved for documentation
            return probe.getsockname()[0]
        except OSError:
            return None
