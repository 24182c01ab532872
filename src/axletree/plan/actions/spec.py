"""The declaration of an action: the types that planning and execution share, and what keys must know of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import msgspec

from axletree.recipe.target import TargetStage

if TYPE_CHECKING:
    from axletree.core.records import StageRecord


class Parameters(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Everything of a recipe that can change an action's result, and nothing else.

    A field at its default is in no key, so a new field with a default changes the keys of nobody who does not use it.
    msgspec compares a value with its default by identity: a default is ``None``, a truth value, or something empty.
    """


class Facts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Small results of an action that later stages, publishing and the report read."""


class ActionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """An action as the planner sees it."""

    module: str
    """Module with the function ``run(context)``, which does the work. Only the process of a stage imports it."""
    revision: int
    """Part of each key: results of older code are not served."""
    parameters: type[Parameters]
    facts: type[Facts] = Facts
    of_stage: Callable[[TargetStage], Parameters] | None = None
    """Makes the parameters of a recipe's stage; ``None`` for what no recipe asks for by name."""
    network: bool = False
    """Whether it may use the network; all others run without one where the system allows it."""
    compiles: bool = False
    """Whether it starts many processes: it shares the job budget and its peak memory is learned."""
    host: bool = False
    """Whether its result depends on the host's facts (tests do)."""
    dated: bool = False
    """Whether it writes a date, ``SOURCE_DATE_EPOCH``, into what it makes. What compiles does in any case."""
    distribution: str = ""
    """Name and version of the distribution that brings it, ``name 1.0``; empty for those of Axletree."""


_F = TypeVar("_F", bound=Facts)


def facts_of(record: StageRecord, kind: type[_F]) -> _F:
    """The facts of a record, typed.

    Raises:
        msgspec.ValidationError: they are another action's; what a store returned for this one's type fits.
    """
    return msgspec.convert(record.facts, kind)
