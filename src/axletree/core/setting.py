"""Where a stage stands: what a report of its failure must know to name the line of the recipe that helps."""

from __future__ import annotations

import msgspec


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
    network: bool = True
    """Whether it may use the network."""

    @property
    def is_test(self) -> bool:
        """Whether it is a test of the recipe."""
        return self.table.startswith("tests.")

    def place(self, key: str) -> str:
        """``KEY in FILE, line N``."""
        line = self.lines.get(key)
        return f"{key} in {self.recipe}" + (f", line {line}" if line is not None else "")
