"""Files that have nothing but environments: ``axletree env`` needs no name, version and source."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from axletree.recipe.toml import table_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from axletree.recipe.documents import Document

KEYS = (
    "axes",
    "data",
    "environments",
    "license",
    "matrix",
    "name",
    "override",
    "properties",
    "schema",
    "summary",
    "version",
)
"""Keys that such a file may have."""
_NOT_NAME = re.compile(r"[^a-z0-9._-]+")


def has_only_environments(values: Mapping[str, Any]) -> bool:
    """Whether a file has environments and no source: then nothing can be built from it."""
    return bool(table_of(dict(values), "environments")) and values.keys() <= {*KEYS}


def stood_in(document: Document, *, stem: str) -> Document:
    """The document with a name, a version and a source that stand in for those that it need not have.

    Args:
        document: The recipe's.
        stem: Name of its file.
    """
    if not has_only_environments(document.values):
        return document
    name = _NOT_NAME.sub("-", stem.lower()).strip("._-") or "environments"
    given = {"name": name, "version": "0", "source": {"path": "."}}
    return msgspec.structs.replace(document, values=given | document.values)
