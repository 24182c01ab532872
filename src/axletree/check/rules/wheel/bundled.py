"""Rules about what a wheel carries of others, and about the version that it states of itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import Version

from axletree.check.engine import Found, Rule, fires, listing, silent, subject
from axletree.check.rules.wheel.sample import plain_library, sample
from axletree.core.errors import IntegrityError
from axletree.package.bundled import is_grafted
from axletree.package.sbom.read import FOLDER, read_sbom
from axletree.package.wheel.metadata import create_metadata, parse_version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.check.dist import DistFacts

_MODULES = ("version.py", "_version.py", "__version__.py", "__about__.py")
_STATED = re.compile(
    rb"""^__version__\s*(?::\s*[\w.]+\s*)?=\s*(['"])([^'"\s]{1,100})\1[ \t]*(?:#.*)?\r?$""", re.MULTILINE
)

_RESTRICTED = (
    (
        "NVIDIA's CUDA and cuDNN license agreements, which allow conditional redistribution of listed files only",
        ("nvidia-", "cuda-", "tensorrt", "cudnn"),
        re.compile(
            r"lib(?:cudart|cublas(?:Lt)?|cudnn(?:_\w+)?|cufftw?|curand|cusolver(?:Mg)?|cusparse(?:Lt)?|nvrtc(?:-builtins)?"
            r"|nvJitLink|nvjpeg|npp\w*|nvblas|cupti|nvToolsExt|cufile(?:_rdma)?|nvinfer\w*|cutensor\w*)[-.][^/]*$"
        ),
    ),
    (
        "Intel's simplified software license or end user license agreement, whose text must accompany the files",
        ("mkl", "intel-", "onemkl", "dpcpp"),
        re.compile(r"lib(?:mkl_\w+|iomp5|imf|svml|intlc|irc|irng)[-.][^/]*$"),
    ),
)
"""(terms, beginnings of names of the owner's own distributions, files)."""


def _libraries(facts: DistFacts) -> list[str]:
    return sorted(path for path in facts.elfs if is_grafted(path))


def _sboms(facts: DistFacts) -> list[str]:
    start = f"{facts.wheel.dist_info}/{FOLDER}/"
    return [member.path for member in facts.wheel.members if member.path.startswith(start)]


def _no_sbom(facts: DistFacts) -> Iterator[Found]:
    libraries = _libraries(facts)
    if libraries and not _sboms(facts):
        number = "one library from another project"
        if len(libraries) > 1:
            number = f"{len(libraries)} libraries from other projects"
        message = f"the wheel contains {number} but no bill of materials"
        yield Found(facts.wheel.filename, message, evidence=tuple(libraries))


def _sbom_unreadable(facts: DistFacts) -> Iterator[Found]:
    for path in _sboms(facts):
        data = facts.wheel.texts.get(path)
        if data is None:
            continue
        try:
            read_sbom(data, file=path)
        except IntegrityError as error:
            yield Found(path, error.problems[0].message)


def _restricted(facts: DistFacts) -> Iterator[Found]:
    project = facts.wheel.name.project
    for terms, owners, pattern in _RESTRICTED:
        files = sorted(path for path in facts.elfs if pattern.match(path.rpartition("/")[2]))
        if files and not project.startswith(owners):
            message = f"{subject(files, 'is', 'are')} covered by {terms}"
            yield Found(files[0], message, evidence=listing(files))


def _stated(facts: DistFacts) -> Iterator[tuple[str, Version]]:
    """(module, version) of the package that is called like the distribution."""
    project = facts.wheel.name.project
    for path, data in facts.wheel.texts.items():
        package, _, module = path.partition("/")
        found = _STATED.search(data) if module in _MODULES and canonicalize_name(package) == project else None
        version = parse_version(found[2].decode("utf-8", "replace")) if found is not None else None
        if version is not None:
            yield path, version


def _other_version(facts: DistFacts) -> Iterator[Found]:
    declared = _declared(facts)
    for path, version in _stated(facts):
        if declared is not None and not _same_release(version, declared):
            yield Found(path, f"this module states version {version}, but METADATA states {declared}")


def _hidden_label(facts: DistFacts) -> Iterator[Found]:
    declared = _declared(facts)
    for path, version in _stated(facts):
        if declared is not None and _same_release(version, declared) and version.local != declared.local:
            yield Found(path, f"the installed package reports version {version}, but METADATA states {declared}")


def _same_release(one: Version, other: Version) -> bool:
    return Version(one.public) == Version(other.public)


def _declared(facts: DistFacts) -> Version | None:
    return parse_version(facts.wheel.metadata.version) if facts.wheel.metadata is not None else None


_VENDORED = "demo.libs/libfoo-1a2b3c4d.so.1"
_SBOM = "demo-1.0.dist-info/sboms/demo.cdx.json"


def _states(version: str, *, metadata: str = "1.0") -> DistFacts:
    text = f'cuda = "13.0"\n__version__ = "{version}"  # written by the build\n'.encode()
    changes = {"texts": {"demo/version.py": text}, "metadata": create_metadata(name="demo", version=metadata)}
    return sample(files=("demo/version.py",), wheel=changes)


def _with_sbom(data: bytes) -> DistFacts:
    return sample(elfs={_VENDORED: plain_library()}, files=(_SBOM,), wheel={"texts": {_SBOM: data}})


BUNDLED_RULES: tuple[Rule[DistFacts], ...] = (
    Rule(
        id="dist/version-module",
        severity="warning",
        title="The package states a different version than its metadata",
        why="Programs that check the package's version make decisions based on the wrong release.",
        fix="set both versions from one source, such as the repository's tag (setuptools_scm)",
        check=_other_version,
        cases=lambda: (
            fires("0.9 in version.py, 1.0 in METADATA", _states("0.9")),
            fires("1.0.dev0 in version.py", _states("1.0.dev0")),
            silent("the same version, spelled differently", _states("1.0.0")),
            silent("the same version with a local label", _states("1.0+cu130")),
            silent("a computed version", _states("{}.{}")),
        ),
    ),
    Rule(
        id="dist/version-label",
        severity="info",
        title="The package states a local version label that its metadata lacks",
        why="Installers and lock files treat builds for different GPUs as one version; only the package itself "
        "distinguishes them.",
        fix="add the label to the version in METADATA, unless the package index serves only one build",
        check=_hidden_label,
        cases=lambda: (
            fires("1.0+cu130 in version.py, 1.0 in METADATA", _states("1.0+cu130")),
            silent("the label in both places", _states("1.0+cu130", metadata="1.0+cu130")),
            silent("no label", _states("1.0")),
        ),
    ),
    Rule(
        id="dist/sbom-missing",
        severity="info",
        title="The wheel contains third-party libraries but no bill of materials",
        why="A scanner cannot tell whether the wheel contains a vulnerable version of a library (PEP 770).",
        fix="run `axletree repair`, which writes a bill of materials to `.dist-info/sboms` from evidence in the wheel",
        check=_no_sbom,
        cases=lambda: (
            fires("a grafted library", sample(elfs={_VENDORED: plain_library()})),
            silent(
                "a grafted library with a CycloneDX file",
                _with_sbom(b'{"bomFormat": "CycloneDX", "specVersion": "1.6"}'),
            ),
            silent("only the project's own files", sample()),
        ),
    ),
    Rule(
        id="dist/sbom-unreadable",
        severity="warning",
        title="A bill of materials is not valid",
        why="Scanners skip the file and treat the wheel as if it had no bill of materials.",
        fix="write the bill of materials in CycloneDX or SPDX format",
        check=_sbom_unreadable,
        cases=lambda: (
            fires("truncated JSON", _with_sbom(b'{"bomFormat": "Cyclo')),
            fires("JSON in a different format", _with_sbom(b'{"name": "demo"}')),
            silent("CycloneDX", _with_sbom(b'{"bomFormat": "CycloneDX"}')),
            silent("SPDX", _with_sbom(b'{"spdxVersion": "SPDX-2.3", "packages": []}')),
        ),
    ),
    Rule(
        id="dist/licence-restricted",
        severity="info",
        title="The wheel contains files that may not be redistributed freely",
        why="Anyone who publishes the wheel redistributes these files and is bound by their license terms.",
        fix=(
            "require the vendor's own distribution instead; to ship the file, follow the license terms and "
            "include their text in the wheel"
        ),
        check=_restricted,
        cases=lambda: (
            fires(
                "a CUDA runtime under a hashed name",
                sample(elfs={"demo.libs/libcudart.faf08d9a.so.13": plain_library()}),
            ),
            fires("MKL", sample(elfs={"demo/lib/libmkl_core.so.2": plain_library()})),
            silent("OpenBLAS", sample(elfs={"demo/lib/libopenblas.so.0": plain_library()})),
            silent(
                "NVIDIA's own distribution",
                sample(
                    filename="nvidia_demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
                    elfs={"nvidia/lib/libcudart.so.13": plain_library()},
                ),
            ),
        ),
    ),
)
