"""What is compared before compiling in an image: versions, string ABIs, and what stays unknown."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from axletree.check.engine import apply_rules
from axletree.check.image import (
    Baseline,
    ImageFacts,
    Macros,
    TorchNeeds,
    baseline_problems,
    promised_glibcxx,
    read_macros,
    torch_needs,
    torch_strings,
    unknown_facts,
)
from axletree.check.rules.image import IMAGE_RULES
from axletree.core.errors import render_problem
from axletree.host.shipped_data import read_shipped
from axletree.package.libraries.policy import PLATFORM_POLICIES

BOOKWORM = ImageFacts(name="bookworm", libc="glibc", glibc="2.36", glibcxx="3.4.30", gcc=12, cxx11=True, dual=True)
TORCH = TorchNeeds(version="2.13.0", cxx11=True, glibc="2.28", glibcxx="3.4.25", gcc="9.3")


def found(image: ImageFacts = BOOKWORM, **more: Any) -> dict[str, str]:
    """Rule -> what it says."""
    baseline = Baseline(image=image, package="demo", file="demo.toml", **more)
    return {finding.rule: finding.message for finding in apply_rules(IMAGE_RULES, baseline)}


def test_a_newer_image_is_a_problem_of_the_recipe() -> None:
    baseline = Baseline(image=BOOKWORM, package="demo", glibc="2.31", promised="3.4.28", file="demo.toml", line=7)
    (problem,) = baseline_problems(baseline, apply_rules(IMAGE_RULES, baseline))
    assert render_problem(problem) == (
        "demo.toml:7: packages.demo.glibc: the image bookworm has glibc 2.36, but packages.demo.glibc asks for 2.31: "
        "wheels may need 2.36\n"
        "  hint: use an image with glibc 2.31 or older, or compile with Zig as `axletree init --portable` writes it"
    )


def test_all_that_is_wrong_is_said_at_once() -> None:
    image = msgspec.structs.replace(BOOKWORM, glibcxx="3.4.21", gcc=7, cxx11=False, dual=False)
    torch = msgspec.structs.replace(TORCH, glibc="2.39")
    assert set(found(image, glibc="2.31", promised="3.4.28", torch=torch, python="2.35")) == {
        "build/image-glibc",
        "build/image-torch-runtime",
        "build/image-torch-baseline",
        "build/image-gcc",
        "build/image-strings",
        "build/image-python",
    }


def test_what_is_not_known_is_said_and_not_passed() -> None:
    nothing = ImageFacts(name="odd", sources={"glibc": "/lib/libc.so.6 does not state its version"})
    said = found(nothing, glibc="2.31", promised="3.4.28", torch=TORCH, python="2.36")
    assert said == {
        "build/image-unknown": "not known before compiling: the glibc of the image odd; the libstdc++ of the image "
        "odd; the string ABI of the compiler in the image odd; the GCC of the image odd"
    }
    baseline = Baseline(image=nothing, package="demo", glibc="2.31")
    assert dict(unknown_facts(baseline)) == {
        "the glibc of the image odd": "/lib/libc.so.6 does not state its version",
        "the libstdc++ of the image odd": "not read",
    }
    assert dict(unknown_facts(Baseline(image=nothing, package="demo", python="2.36")))
    assert not found(nothing)


def test_musl_is_no_unknown_glibc() -> None:
    alpine = ImageFacts(name="alpine", libc="musl")
    assert found(alpine, glibc="2.31", python="2.36") == {
        "build/image-musl": "the image alpine has musl instead of glibc, but packages.demo.glibc asks for glibc 2.31"
    }


@pytest.mark.parametrize(
    ("version", "new"),
    [
        ("2.13.0", True),
        ("2.13.0+cpu", True),
        ("2.7.0+cu118", True),
        ("3.0.0a0+git1234", True),
        ("2.10.0", True),
        ("2.6.0+cu126", True),
        ("2.6.0+rocm6.2.4", True),
        ("2.6.0+xpu", True),
        ("2.6.0+cu124", False),
        ("2.6.0+cpu", False),
        ("2.6.0", None),
        ("2.5.1", False),
        ("2.5.1+cpu.cxx11.abi", True),
        ("1.13.1+cu117", False),
        ("", None),
        ("main", None),
    ],
)
def test_strings_of_torch(version: str, *, new: bool | None) -> None:
    assert torch_strings(version) is new


POLICIES, MACHINE = read_shipped(PLATFORM_POLICIES), "x86_64"


def test_what_the_name_of_a_torch_wheel_tells() -> None:
    new = torch_needs("2.14.1", "torch-2.14.1-cp311-cp311-manylinux_2_28_x86_64.whl", POLICIES, MACHINE)
    assert new == TorchNeeds(version="2.14.1", cxx11=True, glibc="2.28", allowed_glibcxx="3.4.24", gcc="9")
    old = torch_needs("1.13.1+cpu", "torch-1.13.1+cpu-cp310-cp310-linux_x86_64.whl", POLICIES, MACHINE)
    assert old == TorchNeeds(version="1.13.1+cpu", cxx11=False)
    both = torch_needs(
        "2.1.0", "torch-2.1.0-cp311-cp311-manylinux_2_28_x86_64.manylinux_2_17_x86_64.whl", POLICIES, MACHINE
    )
    assert (both.glibc, both.gcc) == ("2.17", "9")


def test_the_libstdcxx_of_torch_is_unknown_only_where_its_tag_leaves_it_open() -> None:
    allowed = msgspec.structs.replace(TORCH, glibcxx=None, allowed_glibcxx="3.4.25")
    assert not found(BOOKWORM, torch=allowed)
    old = msgspec.structs.replace(BOOKWORM, glibcxx="3.4.22")
    assert found(old, torch=allowed) == {
        "build/image-unknown": "not known before compiling: the libstdc++ that torch 2.13.0 needs"
    }
    assert set(found(BOOKWORM, torch=msgspec.structs.replace(allowed, allowed_glibcxx=None))) == {"build/image-unknown"}


@pytest.mark.parametrize(
    ("text", "macros"),
    [
        ("#define __GNUC__ 10\n#define _GLIBCXX_USE_CXX11_ABI 1\n#define _GLIBCXX_USE_DUAL_ABI 1\n", (10, True, True)),
        ("#define __GNUC__ 8\n#define _GLIBCXX_USE_CXX11_ABI 0\n#define _GLIBCXX_USE_DUAL_ABI 1\n", (8, False, True)),
        # devtoolset on CentOS 7: the header ignores what it defines two lines later.
        ("# define _GLIBCXX_USE_DUAL_ABI 0\n#ifndef X\n# define _GLIBCXX_USE_CXX11_ABI 1\n", (None, False, False)),
        ("#define __clang__ 1\n#define __GNUC__ 4\n", (None, None, None)),
        ("#define __GNUC__ four\n// #define _GLIBCXX_USE_CXX11_ABI 1\n", (None, None, None)),
        ("", (None, None, None)),
    ],
)
def test_macros(text: str, macros: tuple[Any, ...]) -> None:
    assert read_macros(text) == Macros(*macros)


def test_libstdcxx_of_systems_with_a_glibc() -> None:
    policies = read_shipped(PLATFORM_POLICIES)
    assert promised_glibcxx("2.31", policies, "x86_64") == "3.4.28"
    assert promised_glibcxx("2.17", policies, "x86_64") == "3.4.19"
    assert promised_glibcxx("2.99", policies, "x86_64") is None
    assert promised_glibcxx("2.31", policies, "z80") is None
    assert promised_glibcxx("new", policies, "x86_64") is None
