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
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    values: dict[str, tuple[int, ...]] = {}
    compilers = {name: compiler for compiler, name in COLUMNS.items()}
    found: dict[str, dict[str, list[int]]] = {}
    for node in ast.parse(source).body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case ast.Assign(targets=[ast.Name(id=name), *_], value=value):
                pass
            case _:
                continue
        if name.startswith("MINIMUM_"):
            values[name] = ast.literal_eval(value)
        if name in compilers and isinstance(value, ast.Dict):
            for key, bounds in zip(value.keys, value.values, strict=True):
                match key, bounds:
                    case ast.expr(), ast.Tuple(elts=[least, below]):
                        bound = [_version(part, values)[0] for part in (least, below)]
                        found.setdefault(ast.literal_eval(key), {})[compilers[name]] = bound
                    case _:
                        raise ValueError(f"{name} has an entry that is not a pair of versions (line {value.lineno})")
    return found


def _version(part: ast.expr, named: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    """A version, written out or by its name."""
    version: tuple[int, ...] = named[part.id] if isinstance(part, ast.Name) else ast.literal_eval(part)
    return version


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
