"""What became of an environment: made, left, given to another tool."""

from __future__ import annotations

import msgspec

from axletree.environment.apply import Change
from axletree.environment.description import Description
from axletree.environment.export import Format
from axletree.environment.imported import Note


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


class ImportedEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """An environment of another tool as a table of a recipe: report of ``env import``."""

    file: str
    """What was read."""
    name: str
    table: str
    """The text of ``[environments.NAME]``."""
    notes: tuple[Note, ...]
    """What was not carried over as it stands."""
    recipe: str | None = None
    """The recipe that it was added to."""
