"""Libraries of this machine that stages may copy into packages: inputs of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from axletree.recipe.relocation import Relocate
    from axletree.recipe.target import Target


def host_libraries(targets: Iterable[Target], relocations: Mapping[tuple[str, ...], Relocate]) -> dict[str, Any]:
    """What stages may copy from this host: most recipes copy nothing."""
    bundled = any(package.bundle for target in targets for package in target.packages)
    if not bundled and not relocations:
        return {}
    from axletree.host.grafts import graft_folders, libraries_digest, list_libraries  # noqa: PLC0415 (start-up time)

    found = {key: list_libraries(rules.graft, graft_folders(rules.graft_from)) for key, rules in relocations.items()}
    return {"libraries": found, "host_libraries": libraries_digest(graft_folders()) if bundled else ""}
