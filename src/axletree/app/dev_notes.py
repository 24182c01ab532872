"""What a user of an editable tree is told beside the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.errors import HostError
from axletree.core.setting import placed
from axletree.host.worktree import open_worktree

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from axletree.app.recipes import LoadedRecipe
    from axletree.execute.context import Context


def unlike(context: Context) -> tuple[str, ...]:
    """What CMake did not configure as the recipe asks."""
    found = (each for each in context.notes.findings if each.rule.startswith("build/option-"))
    findings = placed(tuple(found), context.request.local.setting)
    return tuple(f"{each.where}: {each.message} [{each.rule}]" for each in findings)


def unpatched(loaded: LoadedRecipe, tree: Path, environ: Mapping[str, str]) -> list[str]:
    """Patches of the recipe that the tree does not have: they are the user's to apply."""
    git = open_worktree(tree, url=tree.as_uri(), environ=environ)
    notes: list[str] = []
    for patch in loaded.recipe.patches:
        if patch.when:
            continue  # whether it applies at this variant, its author knows
        file = loaded.file(patch.file).resolve()
        try:
            done = git.attempt("apply", "--reverse", "--check", f"-p{patch.strip}", str(file))
        except HostError:
            return notes
        if done.code != 0:
            command = f"git -C {tree} apply -p{patch.strip} {file}"
            notes.append(f"the recipe's {patch.file} is not applied to the tree; apply it with: {command}")
    return notes
