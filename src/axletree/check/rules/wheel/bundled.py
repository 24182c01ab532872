"""Rules about what a wheel carries of others, and about the version that it states of itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from axletree.check.engine import Case, Found, Rule, listing
from axletree.check.rules.wheel.sample import plain_library, sample
from axletree.core.errors import IntegrityError
from axletree.package.bundled import is_grafted
from axletree.package.sbom.read import FOLDER, read_sbom
from axletree.package.wheel.metadata import create_metadata

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
        number = "one library" if len(libraries) == 1 else f"{len(libraries)} libraries"
        message = f"it contains {number} from other projects but no bill of materials"
        yield Found(where=facts.wheel.filename, message=message, evidence=tuple(libraries))


def _sbom_unreadable(facts: DistFacts) -> Iterator[Found]:
    for path in _sboms(facts):
        data = facts.wheel.texts.get(path)
        if data is None:
            continue
        try:
            read_sbom(data, file=path)
        except IntegrityError as error:
            yield Found(where=path, message=error.problems[0].message)


def _restricted(facts: DistFacts) -> Iterator[Found]:
    project = facts.wheel.name.project
    for terms, owners, pattern in _RESTRICTED:
        files = sorted(path for path in facts.elfs if pattern.match(path.rpartition("/")[2]))
        if files and not project.startswith(owners):
            number = "one file is" if len(files) == 1 else f"{len(files)} files are"
            message = f"{number} covered by {terms}"
            yield Found(where=files[0], message=message, evidence=listing(files))


def _stated(facts: DistFacts) -> Iterator[tuple[str, Version]]:
    """(module, version) of the package that is called like the distribution."""
    project = facts.wheel.name.project
    for path, data in facts.wheel.texts.items():
        package, _, module = path.partition("/")
        found = _STATED.search(data) if module in _MODULES and canonicalize_name(package) == project else None
        if found is not None:
            try:
                yield path, Version(found[2].decode("utf-8", "replace"))
            except InvalidVersion:
                continue


def _other_version(facts: DistFacts) -> Iterator[Found]:
    declared = _declared(facts)
    for path, version in _stated(facts):
        if declared is not None and not _same_release(version, declared):
            yield Found(where=path, message=f"it states version {version}, but METADATA states {declared}")


def _hidden_label(facts: DistFacts) -> Iterator[Found]:
    declared = _declared(facts)
    for path, version in _stated(facts):
        if declared is not None and _same_release(version, declared) and version.local != declared.local:
            yield Found(
                where=path, message=(f"the installed package reports version {version}, but METADATA states {declared}")
            )


def _same_release(one: Version, other: Version) -> bool:
    return Version(one.public) == Version(other.public)


def _declared(facts: DistFacts) -> Version | None:
    try:
        return Version(facts.wheel.metadata.version) if facts.wheel.metadata is not None else None
    except InvalidVersion:
        return None


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
        fix="generate both versions from one source, such as the repository's tag",
        check=_other_version,
        cases=lambda: (
            Case(title="0.9 in version.py, 1.0 in METADATA", facts=_states("0.9"), fires=True),
            Case(title="1.0.dev0 in version.py", facts=_states("1.0.dev0"), fires=True),
            Case(title="the same version, spelled differently", facts=_states("1.0.0"), fires=False),
            Case(title="the same version with a local label", facts=_states("1.0+cu130"), fires=False),
            Case(title="a computed version", facts=_states("{}.{}"), fires=False),
        ),
    ),
    Rule(
        id="dist/version-label",
        severity="info",
        title="The package states a local version label that its metadata lacks",
        why="Installers and lock files treat builds for different GPUs as one version; only the package itself "
        "distinguishes them.",
        fix="add the label to METADATA as well, unless the package index serves only one build",
        check=_hidden_label,
        cases=lambda: (
            Case(title="1.0+cu130 in version.py, 1.0 in METADATA", facts=_states("1.0+cu130"), fires=True),
            Case(title="the label in both places", facts=_states("1.0+cu130", metadata="1.0+cu130"), fires=False),
            Case(title="no label", facts=_states("1.0"), fires=False),
        ),
    ),
    Rule(
        id="dist/sbom-missing",
        severity="info",
        title="The wheel contains third-party libraries but no bill of materials",
        why="A scanner cannot tell that the wheel contains a vulnerable version of a library (PEP 770).",
        fix="run `axletree repair`, which writes a bill of materials to `.dist-info/sboms` from evidence in the wheel",
        check=_no_sbom,
        cases=lambda: (
            Case(title="a grafted library", facts=sample(elfs={_VENDORED: plain_library()}), fires=True),
            Case(
                title="a grafted library with a CycloneDX file",
                facts=_with_sbom(b'{"bomFormat": "CycloneDX", "specVersion": "1.6"}'),
                fires=False,
            ),
            Case(title="only the project's own files", facts=sample(), fires=False),
        ),
    ),
    Rule(
        id="dist/sbom-unreadable",
        severity="warning",
        title="A bill of materials is not valid",
        why="Scanners skip it and treat the wheel as if it had no bill of materials.",
        fix="write the bill of materials in CycloneDX or SPDX format",
        check=_sbom_unreadable,
        cases=lambda: (
            Case(title="truncated JSON", facts=_with_sbom(b'{"bomFormat": "Cyclo'), fires=True),
            Case(title="JSON in a different format", facts=_with_sbom(b'{"name": "demo"}'), fires=True),
            Case(title="CycloneDX", facts=_with_sbom(b'{"bomFormat": "CycloneDX"}'), fires=False),
            Case(title="SPDX", facts=_with_sbom(b'{"spdxVersion": "SPDX-2.3", "packages": []}'), fires=False),
        ),
    ),
    Rule(
        id="dist/licence-restricted",
        severity="info",
        title="The wheel contains files that may not be redistributed freely",
        why="Anyone who publishes the wheel redistributes these files and is bound by their license terms.",
        fix="require the owner's own distribution instead, or check the terms and include their texts in the wheel",
        check=_restricted,
        cases=lambda: (
            Case(
                title="a CUDA runtime under a hashed name",
                facts=sample(elfs={"demo.libs/libcudart.faf08d9a.so.13": plain_library()}),
                fires=True,
            ),
            Case(title="MKL", facts=sample(elfs={"demo/lib/libmkl_core.so.2": plain_library()}), fires=True),
            Case(title="OpenBLAS", facts=sample(elfs={"demo/lib/libopenblas.so.0": plain_library()}), fires=False),
            Case(
                title="NVIDIA's own distribution",
                facts=sample(
                    filename="nvidia_demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
                    elfs={"nvidia/lib/libcudart.so.13": plain_library()},
                ),
                fires=False,
            ),
        ),
    ),
)
