"""Archives for C++ users, as PyTorch publishes Libtorch: ``NAME-shared-with-deps-VERSION.zip``.

Everything lies below one folder: ``lib``, ``include``, ``share``, ``bin``, and the files ``build-version`` and
``build-hash`` (upstream's ``.ci/libtorch`` scripts and those who read them). Such archives have no links, since not
every unpacker makes them: what a link leads to lies there again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.errors import IntegrityError, Problem
from axletree.core.trees import file_behind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from axletree.core.trees import Entry


def archive_name(name: str, version: str) -> str:
    """File name of an archive."""
    return f"{name}-shared-with-deps-{version}.zip"


def own_files(*, folder: str, version: str, source: str) -> dict[str, bytes]:
    """The files that say what the archive is: path -> content.

    Args:
        folder: where everything lies.
        version: full version with its local label.
        source: what stands for the source: a commit, else a digest.
    """
    return {f"{folder}/build-version": f"{version}\n".encode(), f"{folder}/build-hash": f"{source}\n".encode()}


def lay_out(entries: Mapping[str, Entry], paths: Iterable[str], *, folder: str) -> dict[str, str]:
    """Path in the archive -> path of the file in the tree, links followed.

    Raises:
        IntegrityError: links that lead out of the tree, to no file, or around in a circle. Lists all.
    """
    places: dict[str, str] = {}
    problems: list[Problem] = []
    for path in paths:
        end = file_behind(path, entries)
        if end is None:
            target = entries[path].target
            problems.append(
                Problem(key=path, message=f"the path is a link to {target!r}, which is not a file in the tree")
            )
        else:
            places[f"{folder}/{path}"] = end
    if problems:
        raise IntegrityError(
            *problems,
            hint="archives contain copies instead of links: exclude these links, or add the files that they point to",
        )
    return places
