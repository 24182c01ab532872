"""The check at import: where it goes, what it says, and that nothing of it stays behind."""

from __future__ import annotations

import ast
import builtins
import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.core.errors import IntegrityError
from axletree.package.split.check import insert_check, marker_path, render_check, render_marker

if TYPE_CHECKING:
    from collections.abc import Mapping

CHECK = "check()\n"


@pytest.mark.parametrize(
    ("head", "rest"),
    [
        ("", "import os\n"),
        ("", ""),
        ("# mypy: ignore\n\n", "import os\n"),
        ("#!/usr/bin/python\n# -*- coding: utf-8 -*-\n", "x = 1\n"),
        ('"""Doc."""\n', "import os\n"),
        ('"""Doc\nof lines.\n"""\n', "\nimport os\n"),
        ("'a' 'b'\n", "x = 1\n"),
        ('"""Doc."""\nfrom __future__ import annotations\n', "x = 1\n"),
        ("from __future__ import (\n    annotations,\n    division,\n)\n", "x = 1\n"),
        ("from __future__ import annotations; import sys\n", "x = 1\n"),
        ('"""Doc."""; import sys\n', "x = 1\n"),
        ('"""Doc."""\n\n# note\nfrom __future__ import annotations  # why\n', "\n\n@wrap\ndef f(): ...\n"),
        ("", "def f():\n    '''no docstring of the module'''\n"),
        ("", '"a".join("b")\n'),
        ("\ufeff", "import os\n"),
    ],
)
def test_behind_docstring_and_future_imports(head: str, rest: str) -> None:
    source = insert_check(head + rest, CHECK, file="x.py")
    before, _, after = source.partition(CHECK)
    assert before.strip() == head.strip()
    assert after.strip() == rest.strip()
    compile(source.encode(), "x.py", "exec")
    assert ast.get_docstring(ast.parse(source.removeprefix("\ufeff"))) == ast.get_docstring(
        ast.parse((head + rest).removeprefix("\ufeff"))
    )


def test_a_last_line_without_an_end() -> None:
    assert insert_check('"""Doc."""', CHECK, file="x.py") == f'"""Doc."""\n{CHECK}\n'


def test_lines_as_python_counts_them() -> None:
    assert insert_check("'a\u2028b'\n# \x0c\nx = 1\n", CHECK, file="x.py") == f"'a\u2028b'\n# \x0c\n{CHECK}\nx = 1\n"


@pytest.mark.parametrize("source", ["x = (\n", "x = '''\n"])
def test_what_is_no_python_is_an_error(source: str) -> None:
    with pytest.raises(IntegrityError, match=r"x\.py: the file is not valid Python"):
        insert_check(source, CHECK, file="x.py")


@given(st.text(max_size=40), st.text(max_size=40))
def test_a_docstring_stays_the_docstring(doc: str, rest: str) -> None:
    try:
        source = f"{doc!r}\n{rest}"
        docstring = ast.get_docstring(ast.parse(source))
        inserted = insert_check(source, CHECK, file="x.py")
    except (SyntaxError, ValueError, IntegrityError):
        return
    assert ast.get_docstring(ast.parse(inserted)) == docstring


def run(files: Mapping[str, bytes], **changed: Any) -> dict[str, Any]:
    """Run the check of a package ``demo`` as if it lay in ``/site/demo/__init__.py``."""
    options: dict[str, Any] = {
        "name": "demo",
        "version": "1.0+split.1",
        "file": "demo/__init__.py",
        "markers": "libdemo/parts",
        "parts": {"libdemo": "0123", "libdemo-gpu": "4567"},
    }

    def opened(path: str, **_: str) -> io.StringIO:
        if path not in files:
            raise FileNotFoundError(path)
        return io.StringIO(files[path].decode())

    names = {"__file__": f"/site/{options['file']}", "__builtins__": {**vars(builtins), "open": opened}}
    exec(render_check(**options | changed), names)
    return names


def marker(name: str, identity: str, *, version: str = "1.0+split.1") -> tuple[str, bytes]:
    return f"/site/{marker_path('libdemo/parts', name)}", render_marker(name=name, version=version, identity=identity)


def test_silent_where_all_parts_fit_and_leaves_no_name() -> None:
    names = run(dict([marker("libdemo", "0123"), marker("libdemo-gpu", "4567")]))
    assert sorted(names) == ["__builtins__", "__file__"]


def test_one_sentence_and_the_command_that_repairs() -> None:
    with pytest.raises(ImportError) as caught:
        run(dict([marker("libdemo", "ffff", version="0.9+split.1")]))
    assert str(caught.value) == (
        "demo 1.0+split.1 does not match its parts: libdemo is 0.9+split.1, libdemo-gpu is missing. "
        "Install its parts again, from the folder PLACE that they came from: "
        "PIP_CONFIG_FILE=/dev/null pip --isolated install --no-index --find-links PLACE --force-reinstall --no-deps "
        "demo==1.0+split.1 libdemo==1.0+split.1 libdemo-gpu==1.0+split.1 "
        "(with uv: uv pip install --no-config --no-index --find-links PLACE --reinstall ...)"
    )


def test_the_same_version_with_other_content() -> None:
    files = dict([marker("libdemo", "ffff"), marker("libdemo-gpu", "4567")])
    with pytest.raises(ImportError, match=r"libdemo is 1\.0\+split\.1 with other content\. Install"):
        run(files)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"version": 3}', b"null"])
def test_a_damaged_marker(data: bytes) -> None:
    with pytest.raises(ImportError, match=r"libdemo is (a damaged file|3)\."):
        run({marker("libdemo", "")[0]: data}, parts={"libdemo": "0123"})


def test_a_module_deeper_down() -> None:
    names = {"__file__": "/site/a/b/c.py"}
    source = render_check(name="d", version="1", file="a/b/c.py", markers="m", parts={"p": "2"})
    seen: list[str] = []

    def opened(path: str, **_: str) -> io.StringIO:
        seen.append(path)
        return io.StringIO(json.dumps({"content": "2"}))

    exec(source, {**names, "__builtins__": {**vars(builtins), "open": opened}})
    assert seen == ["/site/m/p.json"]
