"""Every text of the sources that a user may read, with its place: messages, hints, help, rules and kinds of failure."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2] / "src"
_WORD = re.compile(r"[A-Za-z]{2,}")
_NOT_PROSE = re.compile(
    r"[{}\n]|\(\?|\\[sSdwb]|^\s*[#;(<]|\$\("
)  # programs, patterns and markup are not read as English
_TOLD = ("title", "cause", "fix")
"""What a kind of failure tells."""
GAP = "X"
"""Stands in a text for a value that is only known at run time."""


class Text(NamedTuple):
    """One text, its values as :data:`GAP`."""

    place: str
    text: str


def user_texts() -> list[Text]:
    """The texts of all modules and of all tables of failures, in order."""
    found = [text for path in sorted(ROOT.rglob("*.py")) for text in _of_module(path)]
    tables = sorted((ROOT / "axletree/check/diagnosis/kinds").glob("*.toml"))
    return [*found, *(text for path in tables for text in _of_table(path))]


def _of_module(path: Path) -> list[Text]:
    """Strings of two words and more, and the help of commands."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped, found = set[int](), list[Text]()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in ast.walk(node)} - {id(node)}
        elif isinstance(node, ast.Expr):
            skipped.add(id(node.value))  # a docstring, of a field too
        elif isinstance(node, ast.FunctionDef) and _is_command(node):
            text = ast.get_docstring(node) or ""
            found += [_text(path, node.lineno, part) for part in text.split("\n\n")]
    for node in ast.walk(tree):
        if id(node) in skipped or not isinstance(node, ast.Constant | ast.JoinedStr):
            continue
        content = node.value if isinstance(node, ast.Constant) else _joined(node)
        if isinstance(content, str) and is_prose(content):
            found.append(_text(path, node.lineno, content))
    return sorted(found, key=lambda each: int(each.place.rpartition(":")[2]))


def is_prose(text: str) -> bool:
    """Whether a string is read as English, rather than by a program."""
    return len(_WORD.findall(text)) > 1 and " " in text.strip() and not _NOT_PROSE.search(text)


def _is_command(node: ast.FunctionDef) -> bool:
    called = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    return any(isinstance(each, ast.Attribute) and each.attr in {"command", "group"} for each in called)


def _joined(node: ast.JoinedStr) -> str:
    return "".join(str(part.value) if isinstance(part, ast.Constant) else GAP for part in node.values)


def _of_table(path: Path) -> list[Text]:
    kinds = tomllib.loads(path.read_text(encoding="utf-8"))["kind"]
    told = [(kind["id"], kind[key]) for kind in kinds for key in _TOLD if key in kind]
    return [Text(f"{path.relative_to(ROOT)}:{name}", " ".join(text.split())) for name, text in told]


def _text(path: Path, line: int, text: str) -> Text:
    return Text(f"{path.relative_to(ROOT)}:{line}", " ".join(text.split()))
