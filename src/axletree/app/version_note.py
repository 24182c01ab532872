"""Whether git calls the commit that is built by a later version than the recipe."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from axletree.package.project.versions import is_version_variable
from axletree.package.wheel.metadata import parse_version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from axletree.app.planning import PlanRequest, Prepared
    from axletree.recipe.model import Recipe


def version_note(prepared: Prepared, request: PlanRequest, environ: Mapping[str, str]) -> Iterator[str]:
    """A line about a version from git that the recipe still has of an earlier tag; nothing where it is chosen by hand.

    A stage cannot see git, so the wheel would be called by the recipe's version without a word.
    """
    loaded = prepared.loaded
    folder = request.source or loaded.source_folder
    chosen = request.release is not None or any(text.partition("=")[0] == "version" for text in loaded.sets)
    if folder is None or chosen or not _is_from_git(loaded.recipe):
        return
    from axletree.host.project_source import described_version  # noqa: PLC0415 (start-up time: few ask git)

    version, at = described_version(folder, environ)
    now, then = parse_version(version or ""), parse_version(loaded.recipe.version)
    if now is None or then is None or now <= then:
        return
    keep = f"change `version` in {loaded.path}"
    if "version" not in loaded.stated.values:
        keep = f"run `{shlex.join(['axletree', 'lock', *loaded.words, '--upgrade'])}`"
    says = f"the version is {loaded.recipe.version}, but git calls this commit {version} ({at})"
    yield f"{says}: {keep}, or use --set version={version}"


def _is_from_git(recipe: Recipe) -> bool:
    """Whether a stage tells the tool that would ask git for the version which one it is."""
    return any(
        is_version_variable(name) and value == "{version}"
        for stage in recipe.stages.values()
        for name, value in stage.env.items()
    )
