"""Requests that are let in: of this machine's page, or with the token of the address; everything else is refused."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response

COOKIE = "physvision_token"
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
        "media-src 'self' blob:; frame-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """ASGI middleware that checks where a request comes from, and adds the headers that confine the page.

    A page of another site can make a browser send requests here. They are told by their Origin and by the browser's
    Sec-Fetch-Site; a name that another site's owner has pointed at this machine is told by its Host.
    """

    def __init__(self, app: Any, token: str | None = None) -> None:
        """Wrap an application with checks.

        Args:
            app: ASGI application.
            token: Token that every request must carry as a cookie, or in the address of the page; None where only this
                machine can connect.
        """
        self._app, self._token = app, token

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a refused request, or pass it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no WebSockets
            return
        refusal = self._refuse(scope)

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await (refusal or self._app)(scope, receive, send_with_headers)

    def _refuse(self, scope: Any) -> Response | None:
        connection = HTTPConnection(scope)
        headers, host = connection.headers, connection.headers.get("host", "")
        if not self._is_host(host):
            return PlainTextResponse("this name does not belong to the application; use its printed address", 421)
        site, origin = headers.get("sec-fetch-site", "none"), headers.get("origin")
        is_page = scope["method"] == "GET" and scope["path"] == "/"
        if origin is not None and origin != f"http://{host}":
            return PlainTextResponse("requests of other sites are refused", 403)
        if site not in ("none", "same-origin") and not (is_page and headers.get("sec-fetch-mode") == "navigate"):
            return PlainTextResponse("requests of other sites are refused", 403)
        if scope["method"] not in ("GET", "HEAD") and headers.get("x-physvision") != "1":
            return PlainTextResponse("requests that change something need the header X-Physvision: 1", 403)
        return None if self._token is None else self._check_token(scope, headers, is_page)

    def _check_token(self, scope: Any, headers: Mapping[str, str], is_page: bool) -> Response | None:
        """Let in the token's cookie; the token in the page's address is exchanged for the cookie."""
        assert self._token is not None
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            cookies = SimpleCookie()
        if COOKIE in cookies and hmac.compare_digest(cookies[COOKIE].value.encode(), self._token.encode()):
            return None
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if is_page and hmac.compare_digest(given.encode(), self._token.encode()):
            response = RedirectResponse("/", 303)
            response.set_cookie(COOKIE, self._token, httponly=True, samesite="strict")
            return response
        return PlainTextResponse("open the address that the command printed, with its token", 403)

    def _is_host(self, host: str) -> bool:
        try:
            name = urlsplit(f"http://{host}").hostname or ""
        except ValueError:
            return False
        if self._token is None:
            return name in LOCAL_NAMES
        # The token protects the rest: other machines know this one by its address or by its name.
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return bool(name) and all(letter.isalnum() or letter in ".-" for letter in name)
        return True
