"""Where a stage stands: what a report of its failure must know to name the line of the recipe that helps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from axletree.core.findings import Finding


LOCK = "axletree lock RECIPE"
"""How hints name the command that locks a recipe where nobody knows which one; whoever does puts it there."""


class StageSetting(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The recipe around a stage. In no key: it cannot change a result."""

    recipe: str
    """The recipe's file, as it was named."""
    table: str = ""
    """``stages.build``, ``tests.operators``, ``environments.test``; empty for a step that no table describes."""
    environment: str = ""
    """Name of the environment that its programs come from; empty where it has none."""
    gpu: str = ""
    """The variant's ``gpu``; empty where the recipe has no such axis."""
    action: str = ""
    """Of a stage: ``build``, ``compile`` and so on."""
    lines: dict[str, int] = {}
    """Key -> its line, or that of the table around it: ``stages.build.env``."""
    files: dict[str, str] = {}
    """Key -> where it was written, if not in ``recipe``: a file that the recipe extends, or ``--set KEY``."""
    unsaid: dict[str, tuple[str, ...]] = {}
    """Key of a list that only the defaults have -> its values: a list in the recipe replaces them."""
    lock: str = ""
    """The command that locks the recipe as it was built: with the same changes, for the same variants."""
    imported: str = ""
    """Where the table of an imported recipe's stage is, ``stages.lib in FILE, line N``; empty for the recipe's own."""
    network: bool = True
    """Whether it may use the network."""

    @property
    def is_test(self) -> bool:
        """Whether it is a test of the recipe."""
        return self.table.startswith("tests.")

    def is_set(self, key: str) -> bool:
        """Whether ``--set`` says it."""
        return self.files.get(key, "").startswith("--set ")

    def place(self, key: str) -> str:
        """``KEY in FILE, line N``."""
        line = self.lines.get(key)
        return f"{key} in {self.files.get(key, self.recipe)}" + (f", line {line}" if line is not None else "")


def placed(findings: tuple[Finding, ...], setting: StageSetting | None) -> tuple[Finding, ...]:
    """Findings whose place is a key of the recipe, with the file and line that the key has now.

    A record keeps the key: the line may be another one by the time that its result is used again.
    """
    if setting is None:
        return findings
    return tuple(_placed(finding, setting) for finding in findings)


def _placed(finding: Finding, setting: StageSetting) -> Finding:
    if not finding.where.startswith("stages."):
        return finding
    table, name, key = [*finding.where.split(".", 2), ""][:3]
    above = f"{table}.{name}.{key.partition('.')[0]}"
    line = setting.lines.get(finding.where, setting.lines.get(above))
    if line is None:
        return finding
    file = setting.files.get(finding.where, setting.files.get(above, setting.recipe))
    return msgspec.structs.replace(finding, where=f"{file}:{line}")
