"""Python files of others as syntax trees: what they assign, call and read. Nothing of them is run."""

from __future__ import annotations

import ast
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ENVIRON_CALLS = frozenset({"os.getenv", "getenv", "os.environ.get", "environ.get", "os.environ.pop", "environ.pop"})
_ENVIRONS = frozenset({"os.environ", "environ"})


def parse_python(text: str) -> ast.Module:
    """The syntax tree of a file; an empty one where it is no Python that can be read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that Python dislikes, in a file that is not run
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module(body=[], type_ignores=[])


def assigned(module: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Names and what is assigned to them, keyword arguments too."""
    for node in ast.walk(module):
        if isinstance(node, ast.Assign):
            yield from ((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            yield node.target.id, node.value
        elif isinstance(node, ast.keyword) and node.arg is not None:
            yield node.arg, node.value


def texts_in(node: ast.expr) -> Iterator[tuple[str, ast.Constant]]:
    """All texts that stand in an expression."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value, part


def called(node: ast.expr) -> str:
    """The dotted name of a function or attribute: ``os.environ.get``; empty where it has none."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def constants(module: ast.Module) -> dict[str, ast.expr]:
    """Names that a file assigns once, and their values."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def text_of(node: ast.expr | None, known: Mapping[str, ast.expr]) -> tuple[str, int] | None:
    """A text and its line, where an expression is one, or the name of one."""
    if isinstance(node, ast.Name):
        node = known.get(node.id)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value, node.lineno
    return None


def list_of(node: ast.expr | None, known: Mapping[str, ast.expr]) -> list[tuple[str, int]] | None:
    """Texts and their lines, where an expression is a list of them, or the name of one; ``None`` where it is not."""
    if isinstance(node, ast.Name):
        node = known.get(node.id)
    if not isinstance(node, ast.List | ast.Tuple):
        return None
    found = [text_of(each, known) for each in node.elts]
    return [each for each in found if each is not None] if None not in found else None


def variables_read(module: ast.Module) -> Iterator[tuple[str, int]]:
    """Names of environment variables that a file reads, with their lines."""
    for node in ast.walk(module):
        name: ast.expr | None = None
        if isinstance(node, ast.Call) and called(node.func) in _ENVIRON_CALLS and node.args:
            name = node.args[0]
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and called(node.value) in _ENVIRONS:
            name = node.slice
        elif isinstance(node, ast.Compare) and any(called(each) in _ENVIRONS for each in node.comparators):
            name = node.left
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield name.value, name.lineno


def variable_asked(test: ast.expr, known: Mapping[str, ast.expr]) -> tuple[str, int, str] | None:
    """The environment variable that has to be set for a condition to be true: its name, line and value.

    ``None`` where the condition asks for something else, or is true while the variable is not set.
    """
    if isinstance(test, ast.Name):
        test = known.get(test.id, test)
    read, value = test, "1"
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq):
        read, wanted = test.left, test.comparators[0]
        value = str(wanted.value) if isinstance(wanted, ast.Constant) else value
    if not isinstance(read, ast.Call) or (len(read.args) > 1 and not _is_off(read.args[1])):
        return None
    found = next(variables_read(ast.Module(body=[ast.Expr(value=read)], type_ignores=[])), None)
    return (*found, value) if found is not None else None


def _is_off(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in {"", "0", "false", "False", "no", 0, None}


def imported(module: ast.Module) -> Iterator[tuple[str, int]]:
    """Modules that a file imports, anywhere in it."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module, node.lineno
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
