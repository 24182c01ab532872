"""What a project's build does with PyTorch and GPUs, and which variables its scripts read."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from axletree.package.project.code import called, imported, parse_python, variables_read
from axletree.package.project.model import Found, GpuUse
from axletree.package.project.tree import is_aside, line_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from axletree.package.project.tree import SourceTree

_FIND_TORCH = re.compile(r"find_package\s*\(\s*Torch\b")
_MOST_SWITCHES = 60
_NO_BUILD_SCRIPTS = frozenset({"conftest.py", "noxfile.py", "fabfile.py", "dodo.py"})


def gpu_use(tree: SourceTree, languages: Iterable[Found], requires: Iterable[Found]) -> GpuUse:
    """Where a build compiles against PyTorch, and where it compiles code of GPUs."""
    by_name = {each.value: each for each in languages}
    torch, cuda, plain = None, by_name.get("CUDA"), None
    for path in _scripts(tree):
        module = parse_python(tree.text(path))
        names = dict(reversed([*imported(module)]))
        for name in ("torch.utils.cpp_extension", "torch"):
            if torch is None and name in names:
                torch = Found(value=name, file=path, line=names[name])
        for node in ast.walk(module):
            if isinstance(node, ast.Name | ast.Attribute) and called(node).endswith("CUDAExtension"):
                cuda = cuda or Found(value="CUDAExtension", file=path, line=node.lineno)
            if isinstance(node, ast.keyword) and node.arg == "use_ninja" and isinstance(node.value, ast.Constant):
                plain = plain or (
                    Found(value="use_ninja=False", file=path, line=node.lineno) if not node.value.value else None
                )
    for path, text in tree.texts.items():
        if torch is None and path.endswith("CMakeLists.txt") and (match := _FIND_TORCH.search(text)):
            torch = Found(value="find_package(Torch)", file=path, line=line_at(text, match.start()))
    torch = torch or next((each for each in requires if re.match(r"torch(?![\w.-])", each.value)), None)
    cuda_file = next((path for path in sorted(tree.sizes) if path.endswith(".cu") and not is_aside(path)), None)
    if cuda is not None and cuda_file is not None and cuda.value == "CUDAExtension":
        cuda = Found(value="CUDA", file=cuda.file, line=cuda.line, why=f"{cuda.value} of {cuda_file}")
    return GpuUse(torch=torch, cuda=cuda, hip=by_name.get("HIP"), plain_setuptools=plain)


def switches_of(tree: SourceTree) -> tuple[Found, ...]:
    """Variables that the build's own scripts read, each at its first place."""
    found: dict[str, Found] = {}
    for path in _scripts(tree):
        for name, line in sorted(variables_read(parse_python(tree.text(path))), key=lambda each: each[1]):
            found.setdefault(name, Found(value=name, file=path, line=line))
    return tuple(found.values())[:_MOST_SWITCHES]


def _scripts(tree: SourceTree) -> Iterator[str]:
    """setup.py, then the other Python files beside it."""
    beside = (path for path in tree.texts if "/" not in path and path.endswith(".py") and path not in _NO_BUILD_SCRIPTS)
    yield from sorted(beside, key=lambda path: (path != "setup.py", path))
