"""Links by which a second folder has what is in another: for who looks for files where wheels have them.

A folder as a whole is not linked, since it may hold files of other packages, or the link itself.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from axletree.core.errors import IntegrityError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def folder_links(rules: Mapping[str, str], paths: Iterable[str]) -> dict[str, str]:
    """Path of each link -> its target.

    Args:
        rules: folder with the entries -> folder that gets the links. Of two entries of one name the first is linked.
        paths: all files and links of the tree and of those that it is installed beside.

    Raises:
        IntegrityError: a folder with nothing to link. Names all.
    """
    known = list(paths)
    taken = {above for path in known for above in _with_folders(path)}
    found: dict[str, str] = {}
    problems: list[Problem] = []
    for folder, place in rules.items():
        start = f"{folder}/"
        names = sorted({path[len(start) :].partition("/")[0] for path in known if path.startswith(start)})
        linked = [name for name in names if not f"{place}/".startswith(f"{folder}/{name}/")]
        if not linked:
            message = "there is nothing to link: neither the new tree nor a sibling has such a folder with files in it"
            problems.append(Problem(key=f"link.{folder}", message=message))
        for name in linked:
            path = f"{place}/{name}"
            if path not in taken:
                found.setdefault(path, posixpath.relpath(f"/{folder}/{name}", f"/{place}"))
    if problems:
        raise IntegrityError(*problems)
    return found


def _with_folders(path: str) -> Iterable[str]:
    while path:
        yield path
        path = posixpath.dirname(path)
