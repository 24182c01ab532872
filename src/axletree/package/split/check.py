"""The check at import that all distributions of a split package are there and belong together.

Installers can't see to it: a part must stay usable without the others, so it can't pin them, and a single part can be
upgraded or removed at any time. So each part carries a small marker file, and the package itself begins with a few
lines that read them. They cost a fraction of a millisecond and import nothing.
"""

from __future__ import annotations

import io
import itertools
import json
import tokenize
from typing import TYPE_CHECKING

from axletree.core.errors import IntegrityError, Problem
from axletree.package.install import PIP_ALONE, UV_ALONE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Everything happens inside a function, so that no name is left in the package; only the error path imports.
_CHECK = """\
def _axletree_check_parts():
    # This package is split into several distributions (by axletree): see that they belong together.
    from os.path import abspath, dirname

    folder = {up} + {markers}
    wrong = []
    for name, content in {parts}:
        try:
            with open(folder + name + ".json", encoding="utf-8") as file:
                found = file.read()
        except OSError:
            wrong.append(name + " is missing")
            continue
        if content not in found:
            import json

            try:
                version = str(json.loads(found)["version"])
            except (ValueError, KeyError, TypeError):
                version = "a damaged file"
            if version == {version}:
                version += " with other content"
            wrong.append(name + " is " + version)
    if wrong:
        raise ImportError(
            {head} + ", ".join(wrong)
            + ". Install its parts again, from the folder PLACE that they came from: " + {repair}
        )


_axletree_check_parts()
del _axletree_check_parts
"""


def marker_path(folder: str, name: str) -> str:
    """Where the marker file of a part lies."""
    return f"{folder}/{name}.json"


def render_marker(*, name: str, version: str, identity: str) -> bytes:
    """The marker file of a part; ``identity`` stands for its content."""
    return json.dumps({"name": name, "version": version, "content": identity}).encode() + b"\n"


def render_check(*, name: str, version: str, file: str, markers: str, parts: Mapping[str, str]) -> str:
    """Python source of the check.

    Args:
        name: the distribution that checks.
        version: of it and of all parts.
        file: where the check goes, path from the root of the installation.
        markers: folder of the marker files, from there too.
        parts: distributions that must be there -> their identity.
    """
    up = "abspath(__file__)"
    for _ in range(file.count("/") + 1):
        up = f"dirname({up})"
    pairs = [f"({_quoted(part)}, {_quoted(json.dumps(identity))})" for part, identity in parts.items()]
    pins = " ".join(f"{each}=={version}" for each in (name, *parts))
    return _CHECK.format(
        up=up,
        markers=_quoted(f"/{markers}/"),
        parts=f"({', '.join(pairs)},)",
        version=_quoted(version),
        head=_quoted(f"{name} {version} does not match its parts: "),
        repair=_quoted(
            f"{PIP_ALONE} --find-links PLACE --force-reinstall --no-deps {pins} "
            f"(with uv: {UV_ALONE} --find-links PLACE --reinstall ...)"
        ),
    )


def insert_check(source: str, check: str, *, file: str) -> str:
    """Put the check where a module's own code begins: behind its docstring and ``from __future__`` imports.

    Raises:
        IntegrityError: the source is no Python.
    """
    mark = "\ufeff" if source.startswith("\ufeff") else ""
    source = source.removeprefix(mark)
    lines = list(io.StringIO(source))  # as tokenize counts them; str.splitlines knows other ends of lines
    row = _first_row(source, file)
    head = mark + "".join(lines[:row])
    if row and not head.endswith("\n"):
        head += "\n"
    return f"{head}{check}\n{''.join(lines[row:])}"


def _first_row(source: str, file: str) -> int:
    """Lines before the first statement that is neither the docstring nor a future import."""
    after = 0
    try:
        for number, statement in enumerate(_statements(source)):
            first = statement[0]
            simple = itertools.takewhile(lambda token: token.string != ";", statement)
            docstring = number == 0 and all(token.type == tokenize.STRING for token in simple)
            future = [token.string for token in statement[:2]] == ["from", "__future__"]
            if not (docstring or future):
                return first.start[0] - 1
            after = statement[-1].end[0]
    except (tokenize.TokenError, SyntaxError) as error:
        raise IntegrityError(Problem(key=file, message=f"the file is not valid Python: {error}")) from error
    return after


def _statements(source: str) -> Iterator[list[tokenize.TokenInfo]]:
    """The tokens of each logical line, one after the other; read as far as is asked for."""
    skipped = {tokenize.ENCODING, tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT}
    statement: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in {tokenize.NEWLINE, tokenize.ENDMARKER}:
            if statement:
                yield statement
            statement = []
        elif token.type not in skipped:
            statement.append(token)


def _quoted(text: str) -> str:
    return json.dumps(text)
