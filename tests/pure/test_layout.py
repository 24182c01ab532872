"""Rules about the source itself: sizes, docstrings, what pure layers may call, what no file may name."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
PURE = (
    "core",
    "recipe",
    "backends",
    "buildsystem",
    "environment",
    "plan",
    "binary",
    "package",
    "check",
    "report",
    "view",
)
MODULE_LINES = 400
FUNCTION_LINES = 60

Function = ast.FunctionDef | ast.AsyncFunctionDef
Documented = Function | ast.ClassDef


@cache
def modules() -> dict[Path, ast.Module]:
    """Every module below src, parsed."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}


def place(path: Path, node: ast.stmt | ast.expr) -> str:
    return f"{path.relative_to(ROOT)}:{node.lineno}"


def report(problems: Iterable[str]) -> str:
    return "\n" + "\n".join(problems)


def test_modules_are_small() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in modules()}
    long = [f"{path.relative_to(ROOT)}: {n} lines" for path, n in lengths.items() if n > MODULE_LINES]
    assert not long, f"modules over {MODULE_LINES} lines; split them by concept:{report(long)}"


def test_functions_are_small() -> None:
    long = [
        f"{place(path, node)} {node.name}: {length} lines"
        for path, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, Function) and (length := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LINES
    ]
    assert not long, f"functions over {FUNCTION_LINES} lines:{report(long)}"


def test_each_package_says_what_it_is_for() -> None:
    folders = {path.parent for path in modules()}
    silent = [
        str(folder.relative_to(ROOT))
        for folder in sorted(folders)
        if folder / "__init__.py" not in modules() or ast.get_docstring(modules()[folder / "__init__.py"]) is None
    ]
    assert not silent, f"package folders whose __init__.py has no docstring:{report(silent)}"


def public(body: Iterable[ast.stmt], prefix: str = "") -> Iterator[tuple[str, Documented]]:
    """Public classes and functions of a module, with the public methods of those classes."""
    for node in body:
        if isinstance(node, Documented) and not node.name.startswith("_"):
            yield prefix + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from public(node.body, f"{prefix}{node.name}.")


def test_what_is_public_has_a_docstring() -> None:
    silent = [
        f"{path.relative_to(ROOT)}: the module" for path, tree in modules().items() if not ast.get_docstring(tree)
    ]
    silent += [
        f"{place(path, node)} {name}"
        for path, tree in modules().items()
        for name, node in public(tree.body)
        if ast.get_docstring(node) is None
    ]
    assert not silent, f"public names without a docstring:{report(silent)}"


def opens_files(node: ast.AST) -> bool:
    """Whether a node opens a file: ``open(...)``, or an import of ``pathlib.Path`` (``PurePath`` touches nothing)."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "open"
    if isinstance(node, ast.ImportFrom):
        return node.module == "pathlib" and any(name.name == "Path" for name in node.names)
    return isinstance(node, ast.Import) and any(name.name == "pathlib" for name in node.names)


@pytest.mark.parametrize("code", ["open('x')", "from pathlib import Path", "import pathlib"])
def test_opening_is_recognised(code: str) -> None:
    assert any(opens_files(node) for node in ast.walk(ast.parse(code)))


@pytest.mark.parametrize("code", ["archive.open('x')", "from pathlib import PurePosixPath", "opened('x')"])
def test_what_only_looks_like_opening_is_not(code: str) -> None:
    assert not any(opens_files(node) for node in ast.walk(ast.parse(code)))


def test_pure_layers_open_no_files() -> None:
    found = [
        place(path, node)
        for path, tree in modules().items()
        if path.relative_to(SOURCE).parts[0] == "axletree" and path.relative_to(SOURCE).parts[1] in PURE
        for node in ast.walk(tree)
        if isinstance(node, ast.Call | ast.Import | ast.ImportFrom) and opens_files(node)
    ]
    assert not found, f"pure layers take values and return values, they open nothing:{report(found)}"


STARTERS = {
    "axletree/host/run.py": "the one way to ask a program",
    "axletree/execute/executor.py": "a stage: events come while it runs",
    "axletree/execute/process.py": "a tool of a stage: supervised, its output streams",
    "axletree/host/visit.py": "has the terminal",
    "axletree/host/conda_pyc.py": "a dialogue with the interpreter that compiles",
    "axletree/host/venvs.py": "pip and uv: their output streams",
    "axletree/host/facts/access.py": "programs of an examined host: killed with all that they started",
    "axletree/host/facts/build_tools.py": "watches a build tool while it works",
    "axletree/host/facts/disks.py": "the error of the start is what is asked",
}
"""Modules that start processes, and why they don't leave it to ``host/run``."""


def starts_processes(tree: ast.AST) -> bool:
    """Whether a module imports what starts processes, or calls it on what it imported."""
    modules_of = {"subprocess", "multiprocessing", "pty"}
    calls = re.compile(r"create_subprocess_\w+|posix_spawnp?|spawn[lv]\w*|system|popen")
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = any(name.name in modules_of for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            found = node.module in modules_of or (
                node.module in {"os", "asyncio"} and any(calls.fullmatch(name.name) for name in node.names)
            )
        else:
            owner = node.value.id if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else ""
            found = isinstance(node, ast.Attribute) and owner in {"os", "asyncio"} and bool(calls.fullmatch(node.attr))
        if found:
            return True
    return False


@pytest.mark.parametrize(
    "code",
    ["import subprocess", "from subprocess import run", "os.system('x')", "asyncio.create_subprocess_exec('x')"],
)
def test_starting_a_process_is_recognised(code: str) -> None:
    assert starts_processes(ast.parse(code))


@pytest.mark.parametrize("code", ["platform.system()", "from axletree.host.run import run", "os.execv('x', [])"])
def test_what_starts_no_process_is_not_taken_for_it(code: str) -> None:
    assert not starts_processes(ast.parse(code))


def test_programs_are_run_in_one_place() -> None:
    found = {
        str(path.relative_to(SOURCE))
        for path, tree in modules().items()
        if path.is_relative_to(SOURCE / "axletree") and starts_processes(tree)
    }
    assert found == set(STARTERS), "run programs with axletree.host.run; who can't stands in STARTERS, with the reason"


def foreign_imports(tree: ast.AST) -> Iterator[ast.stmt]:
    """Imports of what is neither in the standard library nor relative."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
        else:
            continue
        if any(name.partition(".")[0] not in sys.stdlib_module_names for name in names):
            yield node


@pytest.mark.parametrize(
    "code", ["import msgspec", "from axletree.core import x", "def f():\n import axletree_runtime"]
)
def test_a_foreign_import_is_recognised(code: str) -> None:
    assert list(foreign_imports(ast.parse(code)))


@pytest.mark.parametrize(
    "code", ["import os.path", "from . import _sdk", "from ._sdk import Sdk", "from json import x"]
)
def test_what_the_runtime_may_import_is_no_foreign_import(code: str) -> None:
    assert not list(foreign_imports(ast.parse(code)))


def test_the_runtime_of_sdks_imports_the_standard_library_and_itself_relatively() -> None:
    runtime = {path: tree for path, tree in modules().items() if path.is_relative_to(SOURCE / "axletree_runtime")}
    assert runtime
    found = [place(path, node) for path, tree in runtime.items() for node in foreign_imports(tree)]
    assert not found, f"the runtime is vendored into packages of SDKs, alone and under another name:{report(found)}"


def test_the_runtime_of_sdks_is_written_for_python_3_9() -> None:
    for path in sorted((SOURCE / "axletree_runtime").glob("*.py")):
        ast.parse(path.read_text(encoding="utf-8"), filename=str(path), feature_version=(3, 9))


@pytest.fixture(scope="module")
def tracked() -> dict[str, str]:
    """Tracked text files of this checkout with their content."""
    git = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if git.returncode != 0:
        pytest.skip("not a git checkout")
    texts: dict[str, str] = {}
    for name in filter(None, git.stdout.split("\0")):
        try:
            texts[name] = (ROOT / name).read_text(encoding="utf-8")
        except (FileNotFoundError, UnicodeDecodeError):
            continue  # removed but not yet committed, or binary
    return texts


REGISTRY_HOSTS = re.compile(r"pypi\.[o]rg|python[h]osted\.|npm[j]s\.|[d]ebian\.org")
"""Written so that the pattern does not match itself."""


PLACES = r"(?<![\w}>)*-])(?<!\w\.)/[w]ork/"
"""Folders at the root that only some machine has. Paths below a placeholder or another folder are no such thing."""


def test_no_file_names_a_registry_or_a_path_of_this_machine(tracked: dict[str, str]) -> None:
    home = Path.home()
    paths = [str(folder) + "/" for folder in (ROOT, home) if folder != Path("/")]
    forbidden = re.compile("|".join([REGISTRY_HOSTS.pattern, PLACES, *map(re.escape, paths)]))
    found = [
        f"{name}:{number}: {match.group()}"
        for name, text in tracked.items()
        for number, line in enumerate(text.splitlines(), 1)
        if (match := forbidden.search(line))
    ]
    assert not found, (
        f"write what holds anywhere (the index that the user configured, an invented host):{report(found)}"
    )
