"""What git prints for programs: the listing of a commit's tree, and what its ``.gitmodules`` says (gitmodules(5))."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urljoin

GITLINK = "160000"
"""Mode of a submodule in a tree."""


class TreeItem(NamedTuple):
    """One line of ``git ls-tree``."""

    mode: str
    kind: str
    digest: str


def tree_listing(commit: str) -> tuple[str, ...]:
    """The arguments of git that list everything in a commit's tree; :func:`parse_tree` reads what comes."""
    return ("ls-tree", "-r", "-z", "--full-tree", commit)


def parse_tree(output: str) -> dict[str, TreeItem]:
    """Path -> what lies there."""
    found = {}
    for entry in output.split("\0"):
        head, tab, path = entry.partition("\t")
        if tab:
            mode, kind, digest = head.split()
            found[path] = TreeItem(mode, kind, digest)
    return found


def modules_listing(commit: str) -> tuple[str, ...]:
    """The arguments of git that list a commit's ``.gitmodules``; it fails where there is none."""
    pattern = r"^submodule\..*\.(path|url|branch)$"
    return ("config", f"--blob={commit}:.gitmodules", "--no-includes", "-z", "--get-regexp", pattern)


def parse_modules(output: str) -> dict[str, dict[str, str]]:
    """Name of a submodule -> its ``path``, ``url`` and ``branch``, as far as they are there."""
    found: dict[str, dict[str, str]] = {}
    for entry in output.split("\0"):
        key, newline, value = entry.partition("\n")
        section, _, name = key.rpartition(".")
        if newline:
            found.setdefault(section.removeprefix("submodule."), {})[name] = value
    return found


def module_address(url: str, address: str) -> str:
    """A submodule's address; a relative one starts from its repository's, as git has it."""
    return urljoin(f"{url.rstrip('/')}/", address).rstrip("/") if address.startswith(("./", "../")) else address
