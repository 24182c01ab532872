"""The install tree of a made-up SDK: real libraries and programs, GPU code for two families, headers, CMake files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.elfs import compile_library, compile_program
from support.hip_library import bundles, hip_library

if TYPE_CHECKING:
    from pathlib import Path

TARGETS = ("gfx900", "gfx906", "gfx1030")
MANIFEST = """\
[sdk]
name = "gizmo"
module = "gizmo_sdk"
command = "gizmo-sdk"
prefix = "GIZMO"
version = "2.5"
summary = "A small SDK"
license = "MIT"
cmake-package = "gizmo"

[[package]]
name = "core"
kind = "core"
dist = "gizmo-core"

[[package.claim]]
components = ["lib", "run"]
exclude = ["lib/libkernels.*", "lib/libfront.*", "**/*.cmake", "share/doc/**"]

[[package]]
name = "libraries"
kind = "libraries"
dist = "gizmo-libraries"
family = "gizmo-libraries-{family}"
device = "gizmo-device-{target}"
extra = "libraries"
requires = ["core"]

[[package.claim]]
components = ["lib"]
files = ["lib/libkernels.so.*", "lib/libfront.so.*"]

[[package]]
name = "devel"
kind = "devel"
dist = "gizmo-devel"
extra = "devel"
requires = ["core", "libraries"]

[[package.claim]]
components = ["dev"]

[[package.claim]]
components = ["lib"]
files = ["lib/libkernels.so", "lib/libfront.so"]

[[drop]]
components = ["doc"]
why = "nobody reads it"

[[command]]
files = ["bin/ask*"]

[environment]
GIZMO_PATH = "."

[targets]
table = "amd"
"""


def make_gizmo(root: Path) -> Path:
    """The tree, below ``root``: ``libgizmo`` answers 42, ``libfront`` needs ``libkernels``, which has GPU code."""
    for folder in ("lib", "bin", "include", "lib/cmake/gizmo", "share/doc/gizmo", "share/gizmo"):
        (root / folder).mkdir(parents=True)
    lib = root / "lib"
    base = compile_library(lib / "libgizmo.so.2.5", "-Wl,-soname,libgizmo.so.2", "-lm")
    (lib / "libgizmo.so.2").symlink_to("libgizmo.so.2.5")
    kernels = hip_library(
        lib / "libkernels.so.1.0",
        bundles(2, TARGETS),
        "-Wl,-soname,libkernels.so.1",
        f"-Wl,-rpath,{lib}",
        str(base),
    )
    (lib / "libkernels.so.1").symlink_to("libkernels.so.1.0")
    (lib / "libkernels.so").symlink_to("libkernels.so.1")
    compile_library(
        lib / "libfront.so.3",
        f"-Wl,-rpath,{lib}:/nowhere/lib",
        str(kernels),
        source="extern int answer(double); int front(void) { return answer(0.0) + 1; }\n",
    )
    compile_program(root / "bin/ask", base)
    (root / "bin/ask-2").symlink_to("ask")
    (root / "bin/script").write_text("#!/bin/sh\necho $0\n")
    (root / "bin/script").chmod(0o755)
    (root / "bin/alias").symlink_to("script")
    (root / "lib64").symlink_to("lib")
    (root / "include/gizmo.h").write_text("int answer(double);\n")
    (root / "lib/cmake/gizmo/gizmo-config.cmake").write_text("set(gizmo_FOUND 1)\n")
    (root / "share/doc/gizmo/README").write_text("words\n")
    (root / "share/gizmo/table.txt").write_text("1 2 3\n")
    for left in (*root.rglob("*.c"), *root.rglob("*.bundle")):
        left.unlink()
    return root
