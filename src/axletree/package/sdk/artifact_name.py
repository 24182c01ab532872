"""Names of TheRock's artifacts: ``<name>_<component>_<target>``, a folder or an archive.

Its own reader takes any three words, so that ``rand_lib_dev`` became a package for the GPU family ``dev``. Here a
component is one of six, and a target is ``generic`` or looks like a GPU or a family of them.
"""

from __future__ import annotations

import re
from typing import get_args

import msgspec

from axletree.core.errors import IntegrityError, Problem
from axletree.package.sdk.entries import GENERIC, Component

COMPONENTS: tuple[Component, ...] = get_args(Component)
"""In the order in which each claims files; see :data:`~axletree.package.sdk.components.DEFAULT_INCLUDES`."""
MANIFEST = "artifact_manifest.txt"
"""The file that lists, one a line, the folders of an artifact that are laid one over the other."""
SUFFIXES = (".tar.zst", ".tar.xz")
"""Of archives, the one that is read faster first."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*")
_TARGET = re.compile(
    r"generic"
    r"|gfx[0-9]+[0-9a-fX]*(?:-[a-z0-9]+)*(?::(?:xnack|sramecc)[+-])*"  # a GPU, a family, one of these with a suffix
    r"|(?:dgpu|igpu|dcgpu)-all"
    r"|sm[0-9]{2,3}[a-z]?"
)


class ArtifactName(msgspec.Struct, frozen=True, order=True):
    """What the name of an artifact says."""

    name: str
    component: Component
    target: str = GENERIC

    @property
    def folder(self) -> str:
        """The name itself."""
        return f"{self.name}_{self.component}_{self.target}"


def parse_artifact_name(text: str) -> ArtifactName:
    """Read the name of a folder, or of an archive without its suffix.

    Raises:
        IntegrityError: it is no such name; what is wrong with it, and what could stand there.
    """
    parts = text.split("_")
    if len(parts) != 3:
        raise _wrong(text, "the name does not have the form NAME_COMPONENT_TARGET (three parts without '_')")
    name, component, target = parts
    if not _NAME.fullmatch(name):
        raise _wrong(
            text, f"the artifact's name is {name!r}, but it may contain only letters, digits, '.', '+' and '-'"
        )
    found = next((known for known in COMPONENTS if known == component), None)
    if found is None:
        raise _wrong(
            text, f"the name has the unknown component {component!r} (expected one of {', '.join(COMPONENTS)})"
        )
    if not may_be_target(target):
        raise _wrong(
            text, f"the name has the target {target!r}, which is neither 'generic', nor a GPU, nor a GPU family"
        )
    return ArtifactName(name, found, target)


def archive_stem(filename: str) -> str | None:
    """Name of the artifact in an archive's file name; ``None`` for other files."""
    return next((filename.removesuffix(suffix) for suffix in SUFFIXES if filename.endswith(suffix)), None)


def may_be_target(text: str) -> bool:
    """Whether a text has the form of an artifact's target: ``generic``, ``gfx90a:xnack+``, ``gfx94X-dcgpu``, ``sm90``.

    Names of one GPU are told by :func:`~axletree.package.sdk.targets.is_target`.
    """
    return _TARGET.fullmatch(text) is not None


def base_target(target: str) -> str:
    """A target without its features: ``gfx90a`` of ``gfx90a:xnack+``."""
    return target.partition(":")[0]


def in_group(target: str, group: str) -> bool:
    """Whether artifacts of a target belong to an artifact group.

    A group is a family with an optional variant behind it, ``gfx94X-dcgpu-asan``; files are named by the family alone.
    """
    bare, wanted = base_target(target), base_target(group)
    return target == GENERIC or bare == wanted or wanted.startswith(f"{bare}-")


def _wrong(text: str, message: str) -> IntegrityError:
    return IntegrityError(
        Problem(file=repr(text)[1:-1][:200], message=message, hint="use an artifact name such as rand_lib_gfx942")
    )
