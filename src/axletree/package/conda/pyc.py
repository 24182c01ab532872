"""Which sources of a package get a compiled file beside them, and where it goes.

The compiled files are of the kind that holds a hash of its source, checked at import (PEP 552). Those with a date, as
``py_compile`` makes them, are stale as soon as an installer copies the source instead of linking it (another file
system, a prefix written into a text, copy on write), because that gives it a new date; Python then compiles again at
each start wherever it may not write. Those with an unchecked hash hide it when somebody edits a source.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from axletree.package.conda.model import CondaFile, Late
from axletree.package.conda.prefix import holds_prefix

if TYPE_CHECKING:
    from collections.abc import Iterable

_SOURCE = re.compile(r"lib/python(\d+\.\d+t?)/(?:[^\W\d]\w*/|site-packages/)*[^\W\d]\w*\.py")


def cache_path(source: str, tag: str) -> str:
    """Where Python looks for the compiled form of a source: ``a/__pycache__/b.cpython-311.pyc`` for ``a/b.py``."""
    folder, _, name = source.rpartition("/")
    return f"{folder}/__pycache__/{name.removesuffix('.py')}.{tag}.pyc"


def cache_tag(python: str) -> str:
    """What such files of a Python are marked with: ``cpython-311`` for ``3.11``."""
    return f"cpython-{python.replace('.', '')}"


def plan_pyc(files: Iterable[CondaFile], *, python: str) -> tuple[CondaFile, ...]:
    """The sources that can be imported by a Python of a version and have no compiled file yet, sorted by path.

    Those below a folder whose name is no identifier can't be imported, so they are left out.
    """
    tag = cache_tag(python)
    known = {file.path: file for file in files}
    return tuple(
        known[path]
        for path in sorted(known)
        if (found := _SOURCE.fullmatch(path))
        and found[1] == python
        and known[path].link is None
        and not isinstance(known[path].data, Late)
        and cache_path(path, tag) not in known
    )


def unfit_source(data: bytes, placeholder: str | None) -> str | None:
    """Why a source must not be compiled beforehand; ``None`` where it may be."""
    if holds_prefix(data, placeholder):
        return "holds the prefix: its text changes when it is installed"
    return None
