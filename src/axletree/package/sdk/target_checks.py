"""What can be wrong with what a manifest says of its GPU targets and families."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from axletree.package.sdk.targets import bare_target, is_family, is_target
from axletree.recipe.faults import Fault, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from axletree.package.sdk.manifest import Manifest
    from axletree.recipe.faults import Path

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_KNOWN = "use a name such as gfx90a, gfx9_0, gfx115x, gfx11, gfx110X-all, sm_90 or sm_9x"


def target_faults(manifest: Manifest) -> Iterator[Fault]:
    """Faults of the families, of their members and of the default."""
    section = manifest.targets
    if section.table and section.maker != "hip":
        yield Fault(path=("targets", "table"), message=f"table {section.table!r} is only valid if maker is 'hip'")
    groups = section.groups
    for name, inner in groups.items():
        path: Path = ("targets", "groups", name)
        if canonicalize_name(name) != name.lower() or not _NAME.fullmatch(name.lower()):
            hint = "use letters, digits and '-': it becomes part of a distribution's name"
            yield Fault(path=path, message=f"{name!r} is not a valid family name", hint=hint)
        elif is_target(bare_target(name)):
            yield Fault(path=path, message=f"{name!r} is already the name of a GPU target")
        if not inner:
            yield Fault(path=path, message="the family has no members")
        for place, member in enumerate(inner):
            if not _is_known(member, groups):
                known = suggestion(member, groups, "groups of this manifest") or _KNOWN
                message = f"{member!r} is not a target, a family or a group"
                yield Fault(path=(*path, place), message=message, hint=known)
        if _inside(name, name, groups, set()):
            yield Fault(path=path, message="the family is a member of itself")
    if section.default and not _is_known(section.default, groups):
        hint = suggestion(section.default, groups, "groups of this manifest") or _KNOWN
        message = f"{section.default!r} is not a target, a family or a group"
        yield Fault(path=("targets", "default"), message=message, hint=hint)


def _is_known(name: str, groups: Mapping[str, tuple[str, ...]]) -> bool:
    return name in groups or is_family(name) or is_target(bare_target(name))


def _inside(wanted: str, name: str, groups: Mapping[str, tuple[str, ...]], seen: set[str]) -> bool:
    for member in groups.get(name, ()):
        if member == wanted:
            return True
        if member not in seen:
            seen.add(member)
            if _inside(wanted, member, groups, seen):
                return True
    return False
