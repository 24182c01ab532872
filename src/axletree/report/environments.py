"""What became of an environment: made, left, given to another tool."""

from __future__ import annotations

import msgspec

from axletree.environment.apply import Change
from axletree.environment.description import Description
from axletree.environment.export import Format


class CreatedEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """A new environment: report of ``env create``."""

    file: str
    """Path of its description."""
    description: Description


class Deactivation(msgspec.Struct, frozen=True, kw_only=True):
    """Undoes the last activation: report of ``env deactivate``."""

    changes: tuple[Change, ...]


class ExportedEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """An environment as a file of another tool: report of ``env export``."""

    format: Format
    text: str
