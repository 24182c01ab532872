"""Lines of a recipe, with a comment where a line does not speak for itself."""

from __future__ import annotations

import textwrap

from axletree.recipe.faults import visible
from axletree.recipe.writing import toml_value

_WIDTH = 118


class Writer:
    """Lines of a recipe; comments stand behind a line, or above one that is long."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def key(self, key: str, value: object, comment: str = "") -> None:
        """A key, dotted as it is written, and its value."""
        line, note = f"{key} = {toml_value(value)}", f"# {visible(comment)}" if comment else ""
        if note and len(line) + 2 + len(note) > _WIDTH:
            self._wrapped(note)
            note = ""
        self.lines.append(f"{line}  {note}".rstrip())

    def example(self, key: str, value: object, comment: str) -> None:
        """A key that is not in force."""
        self.lines.append(f"# {key} = {toml_value(value)}  # {visible(comment)}")

    def comment(self, text: str) -> None:
        """A comment of its own."""
        self._wrapped(f"# {visible(text)}")

    def add(self, *lines: str) -> None:
        """Lines as they are."""
        self.lines += lines

    def text(self) -> str:
        """All of it."""
        return "\n".join(self.lines) + "\n"

    def _wrapped(self, note: str) -> None:
        self.lines += textwrap.wrap(note, _WIDTH, subsequent_indent="# ", break_on_hyphens=False)
