"""The policies of platform tags that ship with auditwheel."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec

from axletree.core.errors import HostError
from axletree.core.values import Digest, digest_of
from axletree.package.libraries.policy import Policy, parse_policies

_OTHERS = ("musllinux-policy.json", "android-policy.json")


@cache
def read_policies() -> tuple[Policy, ...]:
    """All manylinux policies, lowest glibc first. Reads a data file; nothing of auditwheel's code runs.

    Raises:
        HostError: the installed auditwheel has no such file.
    """
    return _read("manylinux-policy.json")


@cache
def read_all_policies() -> tuple[Policy, ...]:
    """The manylinux policies, then those of musllinux and Android tags as far as the installed auditwheel has them.

    Raises:
        HostError: the installed auditwheel has no manylinux policies.
    """
    return (*read_policies(), *(policy for name in _present() for policy in _read(name)))


@cache
def policy_digest() -> Digest:
    """What stands for all policies in keys.

    Raises:
        HostError: the installed auditwheel has no manylinux policies.
    """
    return digest_of(b"".join(_text(name) for name in ("manylinux-policy.json", *_present())))


def _present() -> tuple[str, ...]:
    folder = files("auditwheel") / "policy"
    return tuple(name for name in _OTHERS if (folder / name).is_file())


def _read(name: str) -> tuple[Policy, ...]:
    try:
        return parse_policies(msgspec.json.decode(_text(name)))
    except msgspec.MsgspecError as error:
        raise _unreadable(error) from error


@cache
def _text(name: str) -> bytes:
    try:
        return (files("auditwheel") / "policy" / name).read_bytes()
    except OSError as error:
        raise _unreadable(error) from error


def _unreadable(error: Exception) -> HostError:
    return HostError(f"auditwheel's platform policies cannot be read: {error}", hint="reinstall auditwheel")
