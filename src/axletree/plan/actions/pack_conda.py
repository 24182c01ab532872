"""``pack-conda``: a conda package of a package's part of a tree."""

from __future__ import annotations

from axletree.core.values import Digest
from axletree.plan.actions.pack import WheelParameters
from axletree.plan.actions.packages import PackedFacts
from axletree.plan.actions.spec import ActionSpec
from axletree.recipe.conda import TargetConda


class CondaParameters(WheelParameters, frozen=True, kw_only=True):
    """How the package is written."""

    called: str
    """Name of the package for conda."""
    conda: TargetConda
    """Its form, with the constraints and run exports that follow from its siblings."""
    pins: dict[str, str] = {}
    """Sibling -> what a dependency on it becomes."""
    exported: tuple[str, ...] = ()
    """Dependencies that follow from the conda environments it was built in."""
    linked: bool = False
    """Whether it was linked against a conda environment: its libraries are beside those of that."""
    names: Digest | None
    """Digest of the table of conda names."""
    neighbours: Digest | None = None
    """Digest of the table of neighbours."""
    platform: str
    """Platform of the build machine, ``linux-x86_64``: for what has no machine code."""
    python: dict[str, str] | None = None
    """Identity of the Python that compiles the sources; without one they are not compiled."""


class PackedConda(PackedFacts, frozen=True, kw_only=True):
    """The package."""

    subdir: str
    depends: tuple[str, ...] = ()
    constrains: tuple[str, ...] = ()


SPEC = ActionSpec(
    module="axletree.execute.actions.pack_conda", revision=4, parameters=CondaParameters, facts=PackedConda, dated=True
)
