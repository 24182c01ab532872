"""A kind of failure: what its logs say, why it happens, what to do. The values come from TOML files.

The files lie in ``axletree/check/diagnosis/kinds``; :mod:`axletree.host.shipped_data` reads them.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Stage = Literal["fetch", "configure", "compile", "link", "package", "import", "runtime", "env", "cache"]

GENERIC = 20
"""Kinds that are no more specific say what the tool itself says: they count only where something failed."""

MAX_WINDOW = 200
"""Lines around a match that a kind may ask about."""


class Kind(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    """One kind of failure, or of a silent downgrade."""

    id: str
    """``configure/cmake-policy-removed``: the stage in which it shows, and what is wrong."""
    stage: Stage
    severity: Literal["error", "warning"] = "error"
    """``warning``: the build goes on, but without something."""
    title: str
    patterns: tuple[str, ...]
    """Regular expressions, any of which may match the normalised log; named groups are kept.

    :mod:`axletree.check.diagnosis.linear` says which grammar they have.
    """
    needs: tuple[str, ...] = ()
    """Regular expressions that must all match within ``window`` lines of the match, too."""
    unless: tuple[str, ...] = ()
    """Regular expressions none of which may match within ``window`` lines."""
    window: int = 40
    specific: int = 50
    """0 to 100: of several matches of one place the higher counts."""
    cause: str
    """Why; ``{name}`` stands for a named group, ``{name|words}`` has words for when the group took no part."""
    fix: str
    """What to do. Commands stand on lines of their own that begin with ``$ ``."""
    fix_in_stage: str = ""
    """What to do in a stage of a recipe, where it is not ``fix`` with variables and packages as lines of the recipe.

    May also name ``{stage}``, ``{environment}``, ``{recipe}``, and ``{distribution}``: that of the module. A line
    ``$ tools NAME`` stands for the recipe's ``tools``.
    """
    needs_network: bool = False
    """Whether a stage without a network always ends so: then that is said instead."""
    needs_toolkit: bool = False
    """Whether a toolkit for GPUs is missing: for a CPU it is not needed, and that is said instead."""
    see: tuple[str, ...] = ()
    """Rules about hosts that may tell its reason on a host whose facts are known: ``host/memory-for-jobs``."""
    references: tuple[str, ...] = ()
    samples: tuple[str, ...]
    """Logs in which it is found."""
    silent: tuple[str, ...] = ()
    """Logs that look like it and are not."""
