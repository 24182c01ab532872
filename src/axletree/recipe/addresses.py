"""Addresses that a recipe may name: one rule for ``check``, ``lock`` and the fetch."""

from __future__ import annotations

import re

GIT_PROTOCOLS = {"https": ("https",), "file": ("https", "file")}
"""Protocol of a git repository -> those that its submodules may have. One of a network names none of this machine."""
COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
"""A commit's whole digest, SHA-1 or SHA-256."""
_GIT_ADDRESS = re.compile(rf"({'|'.join(GIT_PROTOCOLS)})://\S+")
_LOGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*@")


def is_git_address(text: str) -> bool:
    """Whether git may be called with it. A leading ``-`` would be an option, and ``ext::`` a program that git runs."""
    return _GIT_ADDRESS.fullmatch(text) is not None


def has_login(text: str) -> bool:
    """Whether an address holds a user name or a password (RFC 3986, section 3.2.1)."""
    return _LOGIN.match(text) is not None
