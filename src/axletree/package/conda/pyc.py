"""Which sources of a package get a compiled file beside them, and where it goes.

The compiled files are of the kind that holds a hash of its source, checked at import (PEP 552). The usual kind has the
source's date and length instead. All files of a package have one date, so that its bytes are the same on any day, and
then a date tells nothing: a source that was replaced by one as long would go on running in its old form; and where an
environment is copied without its dates, Python would compile everything again at each start. A hash that is not
checked would hide the edits of whoever debugs an installed package. Checking costs nothing that can be measured
(importing the 528 modules of sympy: 0.35 s of CPU time with each kind).
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
        return "the file contains the prefix, so its text changes during installation"
    return None
