#!/usr/bin/env python3
"""Bring the host compilers that nvcc takes up to date from a torch wheel, or from its torch/utils/cpp_extension.py.

    scripts/update_toolchain_bounds.py torch-2.14.1-*.whl            # print what differs; exit code 1 if something does
    scripts/update_toolchain_bounds.py torch-2.14.1-*.whl --write    # change the table

Releases that the table lacks are named: their driver and GPU generations have to be looked up by hand.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
import zipfile
from pathlib import Path

TABLE = Path(__file__).parents[1] / "src/axletree/backends/data/toolchain-bounds.toml"
MEMBER = "torch/utils/cpp_extension.py"
COLUMNS = {"gcc": "CUDA_GCC_VERSIONS", "clang": "CUDA_CLANG_VERSIONS"}


def read_source(path: Path) -> str:
    """Text of ``cpp_extension.py``, of a wheel or as a file."""
    if path.suffix != ".whl":
        return path.read_text(encoding="utf-8")
    with zipfile.ZipFile(path) as wheel:
        return wheel.read(MEMBER).decode("utf-8")


def compiler_bounds(source: str) -> dict[str, dict[str, list[int]]]:
    """CUDA release -> compiler -> least major version and the first that is not taken any more. Nothing is run."""
    values: dict[str, object] = {}
    found: dict[str, dict[str, list[int]]] = {}
    for node in ast.parse(source).body:
        target = (
            node.target
            if isinstance(node, ast.AnnAssign)
            else node.targets[0]
            if isinstance(node, ast.Assign)
            else None
        )
        if not isinstance(target, ast.Name) or node.value is None:
            continue
        if target.id.startswith("MINIMUM_"):
            values[target.id] = ast.literal_eval(node.value)
        for compiler, name in COLUMNS.items():
            if target.id == name and isinstance(node.value, ast.Dict):
                for key, value in zip(node.value.keys, node.value.values, strict=True):
                    least, below = (
                        values[part.id] if isinstance(part, ast.Name) else ast.literal_eval(part) for part in value.elts
                    )
                    found.setdefault(ast.literal_eval(key), {})[compiler] = [least[0], below[0]]
    return found


def differences(
    table: dict[str, dict[str, object]], bounds: dict[str, dict[str, list[int]]]
) -> list[tuple[str, str, list[int]]]:
    """Release, compiler and bounds where the table says something else."""
    return [
        (release, compiler, bound)
        for release, row in table.items()
        for compiler, bound in bounds.get(release, {}).items()
        if row.get(compiler) != bound
    ]


def changed(text: str, release: str, compiler: str, bound: list[int]) -> str:
    """The table's text with another line for one compiler of one release."""
    head = f'[cuda."{release}"]\n'
    before, _, after = text.partition(head)
    section, gap, rest = after.partition("\n\n")
    line = f"{compiler} = {bound}"
    if re.search(rf"^{compiler} = .*$", section, re.MULTILINE):
        section = re.sub(rf"^{compiler} = .*$", line, section, flags=re.MULTILINE)
    else:
        section = section.replace("\ndriver", f"\n{line}\ndriver", 1) if "\ndriver" in section else f"{line}\n{section}"
    return before + head + section + gap + rest


def main() -> int:
    """Print or write what differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("source", type=Path, help="a torch wheel, or its cpp_extension.py")
    parser.add_argument("--write", action="store_true", help="change the table")
    options = parser.parse_args()
    text = TABLE.read_text(encoding="utf-8")
    table, bounds = tomllib.loads(text)["cuda"], compiler_bounds(read_source(options.source))
    if not bounds:
        parser.error(f"{options.source} has none of {', '.join(COLUMNS.values())}")
    found = differences(table, bounds)
    for release, compiler, bound in found:
        sys.stdout.write(f"CUDA {release}: {compiler} {table[release].get(compiler)} -> {bound}" + "\n")
        text = changed(text, release, compiler, bound)
    newest = max(map(_numbers, table))
    missing = sorted(release for release in bounds if _numbers(release) > newest)
    for release in missing:
        sys.stdout.write(f"CUDA {release} is not in the table: {bounds[release]}" + "\n")
    if options.write and found:
        TABLE.write_text(text, encoding="utf-8")
        return 0
    return int(bool(found or missing))


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


if __name__ == "__main__":
    sys.exit(main())
