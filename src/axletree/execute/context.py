"""What an action gets to work with, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import msgspec

from axletree.core.findings import Finding
from axletree.core.values import Digest
from axletree.plan.actions.spec import Facts, Parameters
from axletree.recipe.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.core.events import ProgressUnit
    from axletree.core.records import CacheCounts, Grant, Ingredients, StageRequest
    from axletree.core.trees import Tree
    from axletree.execute.process import Log
    from axletree.store.store import Store


P_co = TypeVar("P_co", bound=Parameters, covariant=True)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What an action made."""

    tree: Digest
    """Digest of a tree that is in the store."""
    facts: Facts = Facts()
    """Small results for later stages, publishing and the report, of the type that the action declares."""
    findings: tuple[Finding, ...] = ()


class Progress(Protocol):
    """Tells how far a stage is."""

    def __call__(
        self, message: str, *, done: int | None = None, total: int | None = None, unit: ProgressUnit = "steps"
    ) -> None:
        """Say it: a phase, or ``done`` of ``total`` steps or bytes."""


@dataclass(kw_only=True)
class Notes:
    """What is found out on the way, beside what the action itself returns."""

    cache_use: CacheCounts | None = None
    """What came from the compiler cache."""
    findings: list[Finding] = field(default_factory=list)
    cache_expected: str = ""
    """Why much of what is compiled should come from the compiler cache; empty where nobody knows."""


@dataclass(frozen=True, kw_only=True)
class Context:
    """The surroundings of one run of one action, whichever it is."""

    request: StageRequest
    store: Store
    work: Path
    """A folder of the stage's own, empty at the start; its path is the same each time this key is run."""
    log: Log
    progress: Progress
    environ: dict[str, str] = field(default_factory=dict)
    """The user's environment, for what other programs are configured by: what reaches children is composed."""
    settings: Settings = field(default_factory=Settings)
    notes: Notes = field(default_factory=Notes)

    @property
    def ingredients(self) -> Ingredients:
        """What the stage's key was made from."""
        return self.request.ingredients

    @property
    def grant(self) -> Grant:
        """Jobs and memory that the stage may use."""
        return self.request.grant

    def tree(self, name: str) -> Tree:
        """The tree of an input."""
        return self.store.get_tree(self.request.inputs[name])

    def materialise(self, name: str, folder: str) -> Path:
        """Lay the tree of an input out in a folder below ``work``, writable, and return its path."""
        path = self.work / folder
        self.store.materialise(self.request.inputs[name], path)
        return path


@dataclass(frozen=True, kw_only=True)
class ActionContext(Context, Generic[P_co]):
    """The same, with the parameters of the action."""

    parameters: P_co


ActionFunction = Callable[[ActionContext[Any]], Outcome]
"""An action: gets its surroundings, returns what it made, raises :class:`~axletree.core.errors.StageError`."""
