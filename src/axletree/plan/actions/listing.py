"""What the actions share that list packages: ``index``, ``channel`` and ``archives``."""

from __future__ import annotations

from typing import Literal

import msgspec

from axletree.core.values import Digest
from axletree.plan.actions.spec import Facts, Parameters


class ListingParameters(Parameters, frozen=True, kw_only=True):
    """Where packages are listed."""

    root: str
    """Index root below the output folder."""


class ListedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A package that is listed."""

    filename: str
    """Relative to the root."""
    sha256: Digest
    size: int
    """Bytes."""


class ListingFacts(Facts, frozen=True, kw_only=True):
    """What is listed where: all that publishing needs beside the tree."""

    kind: Literal["index", "channel", "archives"]
    root: str
    files: tuple[ListedFile, ...]
