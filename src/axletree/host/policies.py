"""The manylinux policies that ship with auditwheel."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec

from axletree.core.errors import HostError
from axletree.core.values import Digest, digest_of
from axletree.package.policy import Policy, parse_policies


@cache
def read_policies() -> tuple[Policy, ...]:
    """All manylinux policies, lowest glibc first. Reads a data file; nothing of auditwheel's code runs.

    Raises:
        HostError: the installed auditwheel has no such file.
    """
    try:
        data = msgspec.json.decode(_text())
    except msgspec.MsgspecError as error:
        raise _unreadable(error) from error
    return parse_policies(data)


@cache
def policy_digest() -> Digest:
    """What stands for the policies in keys.

    Raises:
        HostError: the installed auditwheel has no such file.
    """
    return digest_of(_text())


@cache
def _text() -> bytes:
    try:
        return (files("auditwheel") / "policy" / "manylinux-policy.json").read_bytes()
    except OSError as error:
        raise _unreadable(error) from error


def _unreadable(error: Exception) -> HostError:
    return HostError(f"auditwheel's manylinux policies can't be read: {error}", hint="reinstall auditwheel")
