"""The manylinux policies that ship with auditwheel."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec

from axletree.core.errors import HostError
from axletree.package.policy import Policy, parse_policies


@cache
def read_policies() -> tuple[Policy, ...]:
    """All manylinux policies, lowest glibc first. Reads a data file; nothing of auditwheel's code runs.

    Raises:
        HostError: the installed auditwheel has no such file.
    """
    source = files("auditwheel") / "policy" / "manylinux-policy.json"
    try:
        data = msgspec.json.decode(source.read_bytes())
    except (OSError, msgspec.MsgspecError) as error:
        raise HostError(
            f"auditwheel's manylinux policies can't be read: {error}", hint="reinstall auditwheel"
        ) from error
    return parse_policies(data)
