"""HTTP as Axletree does it: one pool, the system's certificates, the environment's proxies, one error for no network.

Credentials come from the address or from ``.netrc`` and are sent to that host only; no message shows them.
"""

from __future__ import annotations

import functools
import netrc
import os
import ssl
import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

import urllib3
from urllib3.exceptions import HTTPError, ProxyError

from axletree.core.errors import HostError
from axletree.host.indexes import redact

if TYPE_CHECKING:
    from collections.abc import Mapping

CERTIFICATE_VARIABLES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Variables that name a file of certificates, the first that is set counts."""

RETRY_STATUS = frozenset({408, 429, 500, 502, 503, 504})
"""Answers that may be another one a moment later."""

TIMEOUT = urllib3.Timeout(connect=15.0, read=60.0)
_REDIRECTS = 10


class StatusError(HostError):
    """A server answers with a status that is no success."""

    def __init__(self, shown: str, status: int, *, hint: str | None = None) -> None:
        """``shown`` is the address, fit for people; the status has a hint of its own where there is none."""
        self.status = status
        asked = urlsplit(shown).hostname or "the server"
        message = f"{asked} answered with HTTP status {status} (requested {shown})"
        super().__init__(message, hint=hint or _status_hint(status))


def _status_hint(status: int) -> str | None:
    if status in {401, 403}:
        return "set the credentials in the URL or in ~/.netrc"
    if status == 407:
        return "set the credentials of the proxy in https_proxy"
    if status in {404, 410}:
        return "check the URL: the server does not have this file"
    if status in RETRY_STATUS or status >= 500:
        return "the server is overloaded or has a fault: try again later"
    return None


def retries() -> urllib3.Retry:
    """Retry what a moment can mend: connections, cut answers, overload. Redirects are followed by :func:`get`."""
    return urllib3.Retry(total=3, redirect=0, backoff_factor=0.5, status_forcelist=RETRY_STATUS, raise_on_status=False)


def get(
    url: str, *, headers: Mapping[str, str] | None = None, retry: urllib3.Retry | None = None, method: str = "GET"
) -> tuple[urllib3.BaseHTTPResponse, str]:
    """Ask for an address and follow redirects; the body is not read yet.

    Returns the answer, whatever its status, and the address that gave it. Credentials stay with the host that they
    were meant for.

    Raises:
        urllib3.exceptions.HTTPError: no answer; :func:`no_answer` turns it into an error for people.
        HostError: redirects that do not end, or lead to something else than HTTP.
    """
    for _ in range(_REDIRECTS):
        bare, login = _split_login(url)
        if urlsplit(bare).scheme not in {"http", "https"}:
            raise HostError(f"not an http or https URL: {redact(url)}")
        sent = {"Accept-Encoding": "identity", "User-Agent": "axletree"} | dict(headers or {}) | login
        answer = _pool(bare).request(
            method,
            bare,
            headers=sent,
            retries=retries() if retry is None else retry,
            timeout=TIMEOUT,
            redirect=False,
            preload_content=False,
            decode_content=False,
        )
        target = answer.get_redirect_location()
        if not target:
            return answer, bare
        answer.drain_conn()
        answer.release_conn()
        url = urljoin(bare, target)
    raise HostError(f"more than {_REDIRECTS} redirects: {redact(url)}")


def no_answer(url: str, error: Exception) -> HostError:
    """The error that people see when a server gives no answer."""
    reason: object = getattr(error, "reason", None) or error
    asked = urlsplit(url).hostname or url
    if isinstance(reason, ProxyError):
        reason, asked = reason.original_error, f"the proxy for {asked}"
    text = str(reason).rpartition(": ")[2] if isinstance(reason, HTTPError) else str(reason)
    return HostError(
        f"no response from {asked}: {text} (requested {redact(url)})",
        hint=(
            "set https_proxy if this network needs a proxy, set SSL_CERT_FILE if the server has its own "
            "certificate, or set AXLETREE_INDEX_URL to a mirror"
        ),
    )


def _split_login(url: str) -> tuple[str, dict[str, str]]:
    """An address without its credentials, and the header that carries them."""
    parts = urlsplit(url)
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment=""))
    name, password = parts.username, parts.password
    if name is None and parts.hostname:
        name, password = _netrc_login(parts.hostname)
    if not name:
        return bare, {}
    return bare, urllib3.make_headers(basic_auth=f"{unquote(name)}:{unquote(password or '')}")


@functools.lru_cache(maxsize=64)
def _netrc_login(host: str) -> tuple[str | None, str | None]:
    path = os.environ.get("NETRC") or os.path.expanduser("~/.netrc")  # noqa: PTH111 (as curl and pip find it)
    try:
        found = netrc.netrc(path).authenticators(host)
    except (OSError, netrc.NetrcParseError):
        return None, None
    return (found[0], found[2]) if found else (None, None)


def _pool(url: str) -> urllib3.PoolManager:
    """The pool for an address: through a proxy where the environment names one for it."""
    parts = urlsplit(url)
    proxies = urllib.request.getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if proxy and urllib.request.proxy_bypass(parts.hostname or ""):
        proxy = None
    certificates = next((os.environ[name] for name in CERTIFICATE_VARIABLES if os.environ.get(name)), None)
    return _make_pool(proxy, certificates)


@functools.lru_cache(maxsize=8)
def _make_pool(proxy: str | None, certificates: str | None) -> urllib3.PoolManager:
    try:
        context = ssl.create_default_context()
        if certificates:
            folder = os.path.isdir(certificates)  # noqa: PTH112 (a plain question)
            context.load_verify_locations(
                cafile=None if folder else certificates, capath=certificates if folder else None
            )
    except OSError as error:
        raise HostError(f"cannot read the certificates in {certificates}: {error}") from error
    options: dict[str, Any] = {"ssl_context": context, "maxsize": 4}
    if not proxy:
        return urllib3.PoolManager(**options)
    address, login = _split_login(proxy if "://" in proxy else f"http://{proxy}")
    token = login.get("authorization")
    return urllib3.ProxyManager(address, proxy_headers={"proxy-authorization": token} if token else None, **options)
