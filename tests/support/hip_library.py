"""Shared libraries as HIP's compiler makes them, by the machine's C compiler: offload bundles and their wrappers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from support.device import bundle
from support.elfs import compile_library, run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PREFIX = "hipv4-amdgcn-amd-amdhsa--"
TARGETS = ("gfx803", "gfx90a:xnack+", "gfx90a:xnack-", "gfx1030")
_HOST = """\
struct wrapper { unsigned magic, version; const void *binary; void *unused; };
%s
int answer(double x) { return 42 + (int)x; }
"""
_BUNDLE = """\
__asm__(".pushsection .hip_fatbin,\\"a\\",@progbits\\n.p2align 12\\n.hidden __hip_fatbin_%(number)d\\n"
        ".globl __hip_fatbin_%(number)d\\n__hip_fatbin_%(number)d:\\n.incbin \\"%(file)s\\"\\n.popsection");
extern const char __hip_fatbin_%(number)d[] __attribute__((visibility("hidden")));
static struct wrapper wrapper_%(number)d __attribute__((section(".hipFatBinSegment"), used)) =
    {0x48495046, 1, __hip_fatbin_%(number)d, 0};
const void *code_%(number)d(void) { return *(const void *volatile *)&wrapper_%(number)d.binary; }
"""


def code_object(number: int, target: str, pages: int = 3) -> bytes:
    """Bytes that no other kernel has."""
    return (f"{number} {target} ".encode() * (4096 * pages // 8))[: 4096 * pages]


def bundles(count: int = 3, targets: Sequence[str] = TARGETS) -> list[bytes]:
    """Bundles with code for each target."""
    return [bundle({PREFIX + target: code_object(number, target) for target in targets}) for number in range(count)]


def hip_library(path: Path, content: Sequence[bytes], *flags: str, more: str = "") -> Path:
    """A library whose ``code_N()`` returns what its N-th wrapper points to; ``answer(0.0)`` is 42."""
    parts = []
    for number, data in enumerate(content):
        file = path.with_suffix(f".{number}.bundle")
        file.write_bytes(data)
        parts.append(_BUNDLE % {"number": number, "file": file})
    return compile_library(path, *flags, source=_HOST % "".join([*parts, more]))


def registered_code(path: Path, sizes: Sequence[int]) -> list[bytes]:
    """What a process that loads a library finds at the address in each of its wrappers."""
    lines = ["import ctypes, sys", f"library = ctypes.CDLL({str(path)!r})"]
    for number, size in enumerate(sizes):
        lines.append(f"library.code_{number}.restype = ctypes.c_void_p")
        lines.append(f"print(ctypes.string_at(library.code_{number}(), {size}).hex())")
    return [bytes.fromhex(line) for line in run(sys.executable, "-c", "\n".join(lines)).splitlines()]
