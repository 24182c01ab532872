"""Rules about a package and the image that it is compiled in: where its wheels will run, said before it compiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from axletree.check.engine import Found, Rule, fires, silent
from axletree.check.image import Baseline, ImageFacts, TorchNeeds, is_newer, numbers, unknown_facts

if TYPE_CHECKING:
    from collections.abc import Iterator


def _musl(facts: Baseline) -> Iterator[Found]:
    image = facts.image
    if image.libc == "musl" and facts.glibc is not None:
        yield Found(
            facts.key, f"the image {image.name} has musl instead of glibc, but {facts.key} asks for glibc {facts.glibc}"
        )


def _glibc(facts: Baseline) -> Iterator[Found]:
    image = facts.image
    if not facts.own_glibc and is_newer(image.glibc, facts.glibc):
        yield Found(
            facts.key,
            f"the image {image.name} has glibc {image.glibc}, but {facts.key} asks for {facts.glibc}: wheels may need "
            f"{image.glibc}",
            fix=f"use an image with glibc {facts.glibc} or older, or compile with Zig as `axletree init --portable` "
            "writes it",
        )


def _glibcxx(facts: Baseline) -> Iterator[Found]:
    image = facts.image
    if not facts.own_glibc and is_newer(image.glibcxx, facts.promised) and not is_newer(image.glibc, facts.glibc):
        yield Found(
            facts.key,
            f"the libstdc++ of the image {image.name} has symbol versions up to GLIBCXX_{image.glibcxx}, but systems "
            f"with glibc {facts.glibc} have only those up to GLIBCXX_{facts.promised}: wheels may need later ones",
        )


def _torch_runtime(facts: Baseline) -> Iterator[Found]:
    image, torch = facts.image, facts.torch
    if torch is None:
        return
    glibc = facts.python or image.glibc  # the Python that imports torch may have a glibc of its own
    if is_newer(torch.glibc, glibc):
        yield Found(
            f"images.{image.name}",
            f"torch {torch.version} needs glibc {torch.glibc}, but stages in the image {image.name} have {glibc}",
        )
    if is_newer(torch.glibcxx, image.glibcxx):
        yield Found(
            f"images.{image.name}",
            f"torch {torch.version} needs GLIBCXX_{torch.glibcxx}, but the libstdc++ of the image {image.name} has "
            f"symbol versions only up to GLIBCXX_{image.glibcxx}",
        )


def _torch_promise(facts: Baseline) -> Iterator[Found]:
    torch = facts.torch
    if torch is not None and is_newer(torch.glibc, facts.glibc):
        yield Found(
            facts.key,
            f"{facts.key} asks for glibc {facts.glibc}, but torch {torch.version} itself needs {torch.glibc}: the "
            "wheel cannot be used on older systems",
        )


def _gcc(facts: Baseline) -> Iterator[Found]:
    image, torch = facts.image, facts.torch
    if torch is None or torch.gcc is None or image.gcc is None:
        return
    if image.gcc < numbers(torch.gcc)[0]:
        yield Found(
            f"images.{image.name}",
            f"torch {torch.version} needs GCC {torch.gcc} or later, but the image {image.name} has GCC {image.gcc}",
        )


def _strings(facts: Baseline) -> Iterator[Found]:
    image, torch = facts.image, facts.torch
    if torch is None or torch.cxx11 is None or image.cxx11 is None or torch.cxx11 == image.cxx11:
        return
    needed, has = ("new", "old") if torch.cxx11 else ("old", "new")
    begin = f"torch {torch.version} uses libstdc++'s {needed} std::string, but the compiler of the image {image.name} "
    if image.dual is False:
        yield Found(
            f"images.{image.name}",
            f"{begin}has only the {has} one: extensions cannot be linked to torch",
            fix="use an image whose compiler supports both, such as that of manylinux_2_28",
        )
    else:
        yield Found(
            f"images.{image.name}",
            f"{begin}uses the {has} one by default: linking or importing fails with undefined symbols",
            fix=f"compile with -D_GLIBCXX_USE_CXX11_ABI={int(torch.cxx11)} (torch's CMake package sets it in "
            "TORCH_CXX_FLAGS)",
        )


def _python(facts: Baseline) -> Iterator[Found]:
    image = facts.image
    if image.libc != "musl" and is_newer(image.glibc, facts.python):
        yield Found(
            f"images.{image.name}",
            f"the image {image.name} has glibc {image.glibc}, but this machine's Python runs there with glibc "
            f"{facts.python}: it cannot load libraries of the image",
        )


def _unknown(facts: Baseline) -> Iterator[Found]:
    found = tuple(unknown_facts(facts))
    if found:
        where = facts.key if facts.glibc is not None else f"packages.{facts.package}"
        names = "; ".join(what for what, _ in found)
        yield Found(where, f"not known before compiling: {names}", evidence=tuple(f"{a}: {b}" for a, b in found))


_BOOKWORM = ImageFacts(
    name="bookworm", libc="glibc", glibc="2.36", glibcxx="3.4.30", cxxabi="1.3.13", gcc=12, cxx11=True, dual=True
)
_BULLSEYE = ImageFacts(
    name="bullseye", libc="glibc", glibc="2.31", glibcxx="3.4.28", cxxabi="1.3.12", gcc=10, cxx11=True, dual=True
)
_TORCH = TorchNeeds(version="2.13.0", cxx11=True, glibc="2.28", glibcxx="3.4.25", gcc="9.3")


def _case(image: ImageFacts = _BULLSEYE, /, **more: Any) -> Baseline:
    return Baseline(image=image, package="demo", **{"glibc": "2.31", "promised": "3.4.28", "torch": _TORCH, **more})


def _image(image: ImageFacts = _BULLSEYE, /, **more: Any) -> Baseline:
    return _case(msgspec.structs.replace(image, **more))


def _old_with_python() -> Baseline:
    return _case(msgspec.structs.replace(_BULLSEYE, glibc="2.17"), python="2.36")


def _torch(**more: Any) -> Baseline:
    return _case(torch=msgspec.structs.replace(_TORCH, **more))


IMAGE_RULES: tuple[Rule[Baseline], ...] = (
    Rule(
        id="build/image-glibc",
        severity="error",
        title="The image has a newer glibc than the wheel may need",
        references=("PEP 600",),
        why="A wheel that is linked with a newer glibc than that of a user's system cannot be imported there. The "
        "audit would reject it after everything has been compiled.",
        fix="use an image with an older glibc, or raise the version that the package asks for",
        check=_glibc,
        cases=lambda: (
            fires("glibc 2.36 for wheels that may need 2.31", _case(_BOOKWORM)),
            fires("a version that is newer by its number, not by its text", _image(glibc="2.100")),
            silent("the same version", _case()),
            silent("an older image", _image(glibc="2.9")),
            silent("a package that is linked for its own glibc", _case(_BOOKWORM, own_glibc=True)),
            silent("an image whose glibc is not known", _image(glibc=None)),
            silent("a package that asks for nothing", _case(_BOOKWORM, glibc=None)),
        ),
    ),
    Rule(
        id="build/image-musl",
        severity="error",
        title="The image has no glibc",
        references=("PEP 656",),
        why="What is linked to musl runs only on systems with musl.",
        fix="use an image with glibc, or remove the key for wheels of musl systems",
        check=_musl,
        cases=lambda: (
            fires("an image of Alpine", _image(libc="musl", glibc=None)),
            silent("an image with glibc", _case()),
            silent("a package that asks for nothing", _case(ImageFacts(name="alpine", libc="musl"), glibc=None)),
        ),
    ),
    Rule(
        id="build/image-libstdcxx",
        severity="warning",
        title="The image has a newer libstdc++ than systems with the wanted glibc",
        references=("PEP 600", 'libstdc++ manual, "ABI Policy and Guidelines"'),
        why="An extension that uses symbols of a newer libstdc++ fails on older systems with `GLIBCXX_... not found`. "
        "Whether it uses them is known only after linking: the audit tells.",
        fix="use an image with an older GCC, or link with -static-libstdc++",
        check=_glibcxx,
        cases=lambda: (
            fires("a newer compiler on an old glibc", _image(glibcxx="3.4.32")),
            silent("the newest version that such systems have", _case()),
            silent("an image with a newer glibc, which is an error already", _case(_BOOKWORM)),
            silent("an image whose libstdc++ is not known", _image(glibcxx=None)),
        ),
    ),
    Rule(
        id="build/image-torch-runtime",
        severity="error",
        title="The torch of the recipe does not run in the image",
        why="Stages that import torch fail, and so does linking to it, with `version ... not found`.",
        fix="use an image with a newer distribution, or an older torch",
        check=_torch_runtime,
        cases=lambda: (
            fires("a libstdc++ that is too old", _image(glibcxx="3.4.21")),
            fires("a glibc that is too old", _image(glibc="2.17")),
            silent("the same image with a Python that has a newer glibc", _old_with_python()),
            silent("a torch that needs less than the image has", _case()),
            silent("a torch whose needs are not known", _torch(glibc=None, glibcxx=None)),
        ),
    ),
    Rule(
        id="build/image-torch-baseline",
        severity="warning",
        title="torch needs a newer glibc than the package asks for",
        why="Nobody can use the wheel on a system where its torch cannot be installed.",
        fix="raise the version that the package asks for to that of torch",
        check=_torch_promise,
        cases=lambda: (
            fires("wheels for glibc 2.17 with a torch for 2.28", _case(glibc="2.17")),
            silent("wheels that may need as much as torch", _case(glibc="2.28")),
            silent("a torch whose glibc is not known", _torch(glibc=None)),
        ),
    ),
    Rule(
        id="build/image-gcc",
        severity="error",
        title="The compiler of the image is too old for torch",
        why="The headers of torch fail to compile, after the stages before have run.",
        fix="use an image with a newer GCC, or install one in the image and set CC and CXX",
        check=_gcc,
        cases=lambda: (
            fires("GCC 8 for torch 2.13", _image(gcc=8)),
            silent("GCC 9", _image(gcc=9)),
            silent("GCC 10", _case()),
            silent("a compiler that is not known", _image(gcc=None)),
        ),
    ),
    Rule(
        id="build/image-strings",
        severity="error",
        title="torch and the compiler of the image use different strings",
        references=('libstdc++ manual, "Dual ABI"',),
        why="libstdc++ has two std::string types with different symbols. An extension that is compiled with one and "
        "linked to a torch with the other has undefined symbols.",
        fix="compile with the string ABI of torch",
        check=_strings,
        cases=lambda: (
            fires("an old torch and a compiler of today", _torch(cxx11=False)),
            fires("a compiler that only has the old strings", _image(cxx11=False, dual=False)),
            fires("a compiler that has both, and the old ones by default", _image(cxx11=False)),
            silent("the same on both sides", _case()),
            silent("a torch whose strings are not known", _torch(cxx11=None)),
            silent("a compiler whose strings are not known", _image(cxx11=None)),
        ),
    ),
    Rule(
        id="build/image-python",
        severity="error",
        title="The Python of this machine is too old for the image",
        why="A Python that is copied into an image has its own glibc, and libraries of the image, such as "
        "libstdc++, need at least the glibc of the image.",
        fix="install Python in the image, or use an image whose glibc is not newer than that of this machine",
        check=_python,
        cases=lambda: (
            fires("a Python with glibc 2.36 in an image with 2.41", _case(_image(glibc="2.41").image, python="2.36")),
            silent("a Python with glibc 2.36 in an image with 2.31", _case(python="2.36")),
            silent("an image with its own Python", _image(glibc="2.41")),
        ),
    ),
    Rule(
        id="build/image-unknown",
        severity="info",
        title="Facts of an image are not known",
        why="What is not known is not compared before compiling. The audit of the wheel compares it afterwards.",
        fix="none needed if the audit passes",
        check=_unknown,
        cases=lambda: (
            fires("a glibc that could not be read", _image(glibc=None)),
            fires("a torch whose version does not tell its strings", _torch(version="2.6.0", cxx11=None)),
            fires("a glibc that no manylinux policy covers", _case(promised=None)),
            fires("torch libraries that were not read", _torch(glibcxx=None)),
            silent("an image whose facts are all known", _case()),
            silent("a package that asks for nothing", _case(ImageFacts(name="x"), glibc=None, torch=None)),
        ),
    ),
)
