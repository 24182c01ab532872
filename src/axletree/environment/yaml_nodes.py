"""YAML text of others as nodes with their lines. Nothing is constructed: no tag runs code, no alias is copied."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import yaml

from axletree.core.errors import Problem, RecipeError
from axletree.recipe.toml import excerpt_of, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

_BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
"""What ends a line for YAML 1.1."""
_PLAIN = "tag:yaml.org,2002:"
_KINDS = {
    "bool": "a string",
    "float": "a number",
    "int": "a number",
    "map": "a mapping",
    "null": "nothing",
    "seq": "a list",
    "str": "a string",
    "timestamp": "a string",
    "value": "a string",
}
"""Tag -> what it is in a file that has only texts: `y` is a name there."""


class YamlText:
    """A text whose nodes are read; :attr:`problems` collects what is wrong with it."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.lines = _BREAK.split(text)
        self.problems: list[Problem] = []
        self.root = self._compose(text)

    def _compose(self, text: str) -> yaml.Node | None:
        try:
            root: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            message = f"the file is not a text file: it contains the character U+{ord(text[error.position]):04X}"
            raise RecipeError(Problem(file=self.file, line=line, message=message)) from None
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            parts = [error.context, error.problem]
            message = f"the file is not valid YAML: {shown(', '.join(filter(None, parts)))}"
            hint = "indent with spaces instead of tabs" if "'\\t'" in message else None
            raise RecipeError(self._problem(mark.line + 1 if mark else None, message, hint)) from None
        except RecursionError:
            message = "the lists and mappings in the file are nested too deeply"
            raise RecipeError(Problem(file=self.file, message=message)) from None
        return root

    def _problem(self, line: int | None, message: str, hint: str | None) -> Problem:
        return Problem(file=self.file, line=line, message=message, hint=hint, excerpt=excerpt_of(self.lines, line))

    def wrong(self, node: yaml.Node, message: str, hint: str | None = None) -> None:
        """Note a problem at a node."""
        self.problems.append(self._problem(line_of(node), message, hint))

    def pairs(self, node: yaml.MappingNode) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
        """Keys of a mapping with their nodes and values; a key that is there twice is a problem."""
        seen: dict[str, int] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.wrong(key, f"expected a string as key, found {kind_of(key)}")
            elif key.tag == f"{_PLAIN}merge":
                self.wrong(key, "merge keys are not supported", "write the keys themselves")
            elif key.value in seen:
                self.wrong(key, f"the key {shown(key.value)!r} is set twice; the first is in line {seen[key.value]}")
            else:
                seen[key.value] = line_of(key)
                yield key.value, key, value

    def items(self, key: str, node: yaml.Node) -> list[yaml.Node]:
        """The items of a list; something else is a problem, except nothing."""
        if isinstance(node, yaml.SequenceNode) and kind_of(node) == "a list":
            return list(node.value)
        if kind_of(node) != "nothing":
            self.wrong(node, f"expected a list as {key}, found {kind_of(node)}", "begin each line with `- `")
        return []

    def text(self, node: yaml.Node, expected: str) -> str | None:
        """The text of a node; something else is a problem."""
        if kind_of(node) == "a string" and isinstance(node, yaml.ScalarNode) and node.value.strip():
            return str(node.value).strip()
        self.wrong(node, f"expected {expected}, found {'nothing' if kind_of(node) == 'a text' else kind_of(node)}")
        return None

    def comment_behind(self, node: yaml.Node) -> str:
        """The comment in a node's last line, without its ``#``."""
        rest = self.lines[min(node.end_mark.line, len(self.lines) - 1)][node.end_mark.column :].strip()
        return rest.lstrip("#").strip() if rest.startswith("#") else ""

    def comments_above(self, node: yaml.Node) -> tuple[str, ...]:
        """The comments in the lines directly above a node, without their ``#``."""
        end = begin = line_of(node) - 1
        while begin > 0 and self.lines[begin - 1].lstrip().startswith("#"):
            begin -= 1
        return tuple(filter(None, (line.strip().lstrip("#").strip() for line in self.lines[begin:end])))


def line_of(node: yaml.Node) -> int:
    """The line where a node begins."""
    return int(node.start_mark.line) + 1


def kind_of(node: yaml.Node) -> str:
    """What a node is, as messages say it."""
    kind = _KINDS.get(node.tag.removeprefix(_PLAIN)) if node.tag.startswith(_PLAIN) else None
    return kind or f"the tag {shown(node.tag[:60])}"
