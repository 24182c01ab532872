"""Facts of an image that decide where its wheels run: C library, C++ library, compiler; and what a package asks for.

``None`` says that a fact is not known, and then nothing is concluded from it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.core.errors import Problem
from axletree.package.libraries.policy import parse_glibc, policy_between

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from axletree.core.findings import Finding
    from axletree.package.libraries.policy import Policy

_MACRO = r"^[ \t]*#[ \t]*define[ \t]+{}[ \t]+(\d+)[ \t]*$"
_NEW_STRINGS = (2, 7)
"""From this release of torch on, all wheels for Linux have the new string ABI."""
_MIXED = (2, 6)
"""Of this release, some have it: CUDA 12.6, ROCm and XPU."""
_WITH_GCC_9 = (2, 1)
"""From this release of torch on, c10/util/C++17.h (later, C++20 itself) refuses a GCC older than 9."""
_TORCH = re.compile(r"(\d+)\.(\d+)[^+]*(?:\+(.*))?")


class ImageFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of an image."""

    name: str
    """As the recipe has it."""
    title: str = ""
    """What its os-release calls it: ``Debian GNU/Linux 12 (bookworm)``."""
    libc: Literal["glibc", "musl"] | None = None
    glibc: str | None = None
    """``2.36``."""
    glibcxx: str | None = None
    """The newest version of symbols in its libstdc++: ``3.4.30``."""
    cxxabi: str | None = None
    """``1.3.13``."""
    gcc: int | None = None
    """Major version of the compiler that ``c++`` is."""
    cxx11: bool | None = None
    """Whether that compiler uses the new ``std::string`` by default (``_GLIBCXX_USE_CXX11_ABI``)."""
    dual: bool | None = None
    """Whether it can use either (``_GLIBCXX_USE_DUAL_ABI``)."""
    sources: dict[str, str] = {}
    """Fact -> where it was read, or why it is not known."""


class TorchNeeds(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the torch of a recipe needs of the system that compiles for it and runs it."""

    version: str
    cxx11: bool | None = None
    """Whether its libraries use the new ``std::string``."""
    glibc: str | None = None
    glibcxx: str | None = None
    """The newest version of symbols that its libraries need of libstdc++."""
    allowed_glibcxx: str | None = None
    """The newest one that they may need by the wheel's platform tag."""
    gcc: str | None = None
    """The oldest GCC that its headers support."""


class Baseline(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A package that is compiled in an image, and the systems that it is for."""

    image: ImageFacts
    package: str
    """Name in the recipe."""
    glibc: str | None = None
    """``packages.NAME.glibc``: the highest version that the wheel may need."""
    promised: str | None = None
    """The newest version of symbols that a system with that glibc has in its libstdc++, as manylinux policies say."""
    own_glibc: bool = False
    """Whether the package is linked for a glibc of its own (Zig), whatever the image has."""
    torch: TorchNeeds | None = None
    python: str | None = None
    """glibc of the portable Python that runs in the image, if one does."""
    file: str = ""
    """The recipe."""
    line: int | None = None
    """Of ``packages.NAME.glibc``."""

    @property
    def key(self) -> str:
        """The key that states the glibc."""
        return f"packages.{self.package}.glibc"


class Macros(msgspec.Struct, frozen=True):
    """What a compiler defines."""

    gcc: int | None
    cxx11: bool | None
    dual: bool | None


def read_macros(text: str) -> Macros:
    """Version and string ABI from macros: ``echo '#include <string>' | c++ -dM -E -x c++ -``, or ``c++config.h``.

    Clang says that it is GCC 4, so its version is not known.
    """

    def number(name: str) -> int | None:
        found = re.findall(_MACRO.format(name), text, re.MULTILINE)
        return int(found[-1]) if found else None

    cxx11, dual = number("_GLIBCXX_USE_CXX11_ABI"), number("_GLIBCXX_USE_DUAL_ABI")
    if dual == 0:
        cxx11 = 0  # the header then ignores what it defines by default
    return Macros(
        number("__GNUC__") if number("__clang__") is None else None,
        None if cxx11 is None else bool(cxx11),
        None if dual is None else bool(dual),
    )


def torch_strings(version: str) -> bool | None:
    """Whether PyTorch's wheel of a version uses the new ``std::string`` on Linux; ``None`` where that can't be told.

    Args:
        version: with the local label that says for which GPU it is: ``2.6.0+cu126``.
    """
    release, label = _release(version)
    if release is None:
        return None
    if "cxx11.abi" in label:
        return True
    if release == _MIXED:
        if label == "cu126" or label.startswith(("rocm", "xpu")):
            return True
        return False if label in {"cpu", "cu118", "cu124"} else None
    return release >= _NEW_STRINGS


def _release(version: str) -> tuple[tuple[int, int] | None, str]:
    """Release and local label of a version of torch."""
    found = _TORCH.fullmatch(version)
    return (None, "") if found is None else ((int(found[1]), int(found[2])), found[3] or "")


def torch_needs(version: str, filename: str, policies: Sequence[Policy], machine: str) -> TorchNeeds:
    """What the name of a torch wheel tells of its needs: its platform tag promises the oldest systems that it runs on.

    A tag such as ``linux_x86_64`` promises nothing.
    """
    tags = re.findall(r"manylinux_(\d+_\d+)_", filename)
    glibc = min((tag.replace("_", ".") for tag in tags), key=numbers, default=None)
    release, _ = _release(version)
    return TorchNeeds(
        version=version,
        cxx11=torch_strings(version),
        glibc=glibc,
        allowed_glibcxx=glibc and promised_glibcxx(glibc, policies, machine),
        gcc="9" if release is not None and release >= _WITH_GCC_9 else None,
    )


def promised_glibcxx(glibc: str, policies: Sequence[Policy], machine: str) -> str | None:
    """The newest ``GLIBCXX`` that systems with a glibc have; ``None`` where no policy tells."""
    version = parse_glibc(glibc)
    policy = policy_between(version, policies) if version else None
    granted = policy.versions.get(machine, {}).get("GLIBCXX", ()) if policy else ()
    return max(granted, key=numbers, default=None)


def numbers(version: str) -> tuple[int, ...]:
    """The numbers in a version, for comparisons."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def is_newer(one: str | None, other: str | None) -> bool:
    """Whether both versions are known, and the first is newer."""
    return one is not None and other is not None and numbers(one) > numbers(other)


def unknown_facts(baseline: Baseline) -> Iterator[tuple[str, str]]:
    """What would have to be known to compare a package with its image: (what, why it is not)."""
    image, torch = baseline.image, baseline.torch

    def why(fact: str) -> str:
        return image.sources.get(fact, "not read")

    if baseline.glibc is not None and not baseline.own_glibc and image.libc != "musl":
        if image.glibc is None:
            yield f"the glibc of the image {image.name}", why("glibc")
        if image.glibcxx is None:
            yield f"the libstdc++ of the image {image.name}", why("glibcxx")
        elif baseline.promised is None:
            yield f"the libstdc++ of systems with glibc {baseline.glibc}", "no manylinux policy states it"
    if baseline.python is not None and image.glibc is None and baseline.glibc is None:
        yield f"the glibc of the image {image.name}", why("glibc")
    if torch is not None:
        if torch.cxx11 is None:
            yield f"the string ABI of torch {torch.version}", "its version does not tell"
        elif image.cxx11 is None:
            yield f"the string ABI of the compiler in the image {image.name}", why("cxx11")
        if torch.gcc is not None and image.gcc is None:
            yield f"the GCC of the image {image.name}", why("gcc")
        if torch.glibcxx is None and torch.allowed_glibcxx is None:
            yield f"the libstdc++ that torch {torch.version} needs", "its platform tag does not tell"
        elif torch.glibcxx is None and is_newer(torch.allowed_glibcxx, image.glibcxx):
            reason = f"its platform tag allows GLIBCXX_{torch.allowed_glibcxx}, and the image has {image.glibcxx}"
            yield f"the libstdc++ that torch {torch.version} needs", reason
        if image.glibcxx is None and baseline.glibc is None:
            yield f"the libstdc++ of the image {image.name}", why("glibcxx")


def baseline_problems(baseline: Baseline, findings: Sequence[Finding]) -> tuple[Problem, ...]:
    """The errors among the findings of a package, as problems of its recipe."""
    return tuple(
        Problem(
            file=baseline.file or None,
            line=baseline.line,
            key=finding.where,
            message=finding.message,
            hint=finding.fix,
        )
        for finding in findings
        if finding.severity == "error"
    )
