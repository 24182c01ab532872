"""What a conda client says of channels that it cannot read, in plain words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from axletree.core.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

_REQUEST = re.compile(r"error sending request for url \((?P<url>[^)\s]+)\)")
_STATUS = re.compile(r"HTTP status (?:client|server) error \((?P<status>[^)]+)\) for url \((?P<url>[^)\s]+)\)")
_CAUSE = re.compile(r"^\s*Caused by:\s*(?P<cause>\S.*?)\s*$", re.MULTILINE)


def unreadable_channel(said: str, channels: Sequence[str]) -> Problem | None:
    """The problem that a client's last words name, if it is a channel that could not be downloaded.

    Args:
        said: what the client (rattler, so reqwest) printed.
        channels: names and addresses of the channels that it was given.
    """
    found = _STATUS.search(said) or _REQUEST.search(said)
    if found is None:
        return None
    url = found["url"]
    name = next((each for each in channels if f"/{each.strip('/')}/" in url or url.startswith(each)), url)
    if "status" in found.groupdict():
        message = f"channel {name} cannot be read: the server answered {found['status']} for {url}"
        return Problem(message=message, hint="check the name of the channel")
    causes = _CAUSE.findall(said)
    reason = f": {causes[-1]}" if causes else ""
    message = f"channel {name} cannot be reached{reason} ({url})"
    hint = (
        "check the network and HTTPS_PROXY, or set `channels` to a mirror or a folder: "
        "--set 'environments.NAME.channels=[\"file:///srv/mirror\"]'"
    )
    return Problem(message=message, hint=hint)
