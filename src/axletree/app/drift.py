"""Compare what upstream has, requires and tests with, what a recipe asks for, and what can be had."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import zstandard
from packaging.version import InvalidVersion, Version

from axletree.app.recipes import load_whole
from axletree.core.errors import IntegrityError, Problem, UsageError
from axletree.host.archive import map_file
from axletree.host.files import file_errors
from axletree.host.indexes import IndexSettings
from axletree.host.shipped_data import read_shipped
from axletree.host.simple_api import list_files
from axletree.host.source_tree import read_source
from axletree.package.drift.channel import Releases, of_files, of_repodata
from axletree.package.drift.conda_recipe import CondaRecipe, read_conda_recipe
from axletree.package.drift.linked import of_libraries
from axletree.package.drift.metapackage import fan_out, requires_extras
from axletree.package.drift.names import DEPENDENCIES, look_up
from axletree.package.drift.recipe import Asked, of_targets
from axletree.package.drift.requirements import RequirementOrigin, of_metadata
from axletree.package.drift.tree import SourceFacts, headers_of, of_tree, source_version
from axletree.package.drift.verdict import contradictions, judge
from axletree.package.wheel.names import parse_wheel_name
from axletree.package.wheel.scan import scan_wheel
from axletree.recipe.axes import expand, select
from axletree.recipe.locate import source_lines
from axletree.recipe.sdists import version_of
from axletree.recipe.target import resolve
from axletree.report.drift import Compared, DriftReport, reported

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from axletree.app.recipes import LoadedRecipe
    from axletree.package.drift.evidence import Evidence
    from axletree.package.drift.names import DependencyTable
    from axletree.package.wheel.metadata import Metadata
    from axletree.package.wheel.scan import WheelScan

_LABEL = re.compile(r"cpu|xpu|cu\d+|rocm\d*")
_OF_GPU = ("nvidia-", "cuda-", "triton", "pytorch-triton", "intel-")
"""How the names of distributions begin that only wheels for a GPU world require."""
_LARGEST_TEXT = 4 << 20
_LARGEST_INDEX = 2 << 30


class DriftInputs(msgspec.Struct, frozen=True, kw_only=True):
    """What to compare a recipe with."""

    source: Path | None = None
    wheels: tuple[Path, ...] = ()
    """Official wheels of the recipe's project; and of metapackages that these require with extras, cuda-toolkit."""
    conda_recipe: Path | None = None
    """A ``meta.yaml`` or ``recipe.yaml`` whose requirements stand in for the recipe's own."""
    channels: tuple[Path, ...] = ()
    """``repodata.json`` files, also compressed with zstd."""
    before: float | None = None
    """Seconds since 1970: only what channels had by then."""
    index: IndexSettings | None = None
    """Package indexes that may be asked for newest releases."""


def find_drift(
    name_or_path: str,
    inputs: DriftInputs,
    *,
    environ: Mapping[str, str],
    sets: Sequence[str] = (),
    patterns: Sequence[str] = (),
) -> DriftReport:
    """Compare a recipe with upstream and with what can be had.

    Args:
        name_or_path: the recipe.
        inputs: what to compare it with.
        environ: variables that git starts from.
        sets: changes of the recipe, ``KEY=VALUE`` each.
        patterns: only these variants of the recipe.

    Raises:
        UsageError: inputs are of different upstream versions, or nothing to compare with was given.
        RecipeError: the recipe has faults.
        HostError: an input can't be read, or an index not be asked.
        IntegrityError: an input is damaged.
    """
    loaded = load_whole(name_or_path, sets)
    if not (inputs.source or inputs.wheels):
        hint = "specify a source tree with --source, official wheels with --wheel, or both"
        raise UsageError("no upstream data to compare the recipe with", hint=hint)
    table = read_shipped(DEPENDENCIES)
    targets = [resolve(loaded.recipe, variant) for variant in select(expand(loaded.recipe), patterns, ())]
    pythons = tuple(dict.fromkeys(target.axes["python"] for target in targets if "python" in target.axes))
    made = {look_up(table, "pypi", name) for name in (loaded.recipe.name, *loaded.recipe.packages)}
    own = [path for path in inputs.wheels if look_up(table, "pypi", parse_wheel_name(path.name).project) in made]
    source, conda_file = inputs.source, inputs.conda_recipe
    facts = None if source is None else read_source(source, environ=environ, headers=headers_of(table))
    conda = None if conda_file is None else _read_conda_recipe(conda_file, table)
    compared = list(_versions(loaded, inputs, facts, own, conda))
    notes = [*_require_one_version(compared), *_notes(inputs, facts, conda)]
    evidence = [] if facts is None else list(of_tree(facts, table=table, pythons=pythons))
    for path in own:
        evidence += _read_wheel(path, table, pythons)
    for path in (path for path in inputs.wheels if path not in own):
        evidence = _fanned_out(path, evidence, table, pythons, made)
    if conda is None:
        asked = of_targets(loaded.recipe, targets, file=loaded.path.name, lines=_lines(loaded), table=table)
    else:
        asked = Asked(evidence=conda.evidence, inherits=False)
    evidence += asked.evidence
    rows = judge(evidence, _offers(inputs, evidence, table), worlds=asked.worlds, inherits=asked.inherits)
    return DriftReport(
        recipe=loaded.recipe.name,
        version=loaded.recipe.version,
        inputs=tuple(compared),
        dependencies=tuple(map(reported, rows)),
        findings=contradictions(evidence),
        notes=tuple(dict.fromkeys(notes)),
    )


def _versions(
    loaded: LoadedRecipe,
    inputs: DriftInputs,
    facts: SourceFacts | None,
    wheels: Iterable[Path],
    conda: CondaRecipe | None,
) -> Iterator[Compared]:
    """What is compared, and of which version each says that it is; the recipe first."""
    yield Compared(what="recipe", name=str(loaded.path), version=loaded.recipe.version)
    if facts is not None:
        version, said_by = source_version(facts) or ("", "")
        yield Compared(what="source", name=facts.folder, version=version, said_by=said_by)
    for path in wheels:
        metadata = _metadata(scan_wheel(map_file(path), filename=path.name, only_metadata=True))
        yield Compared(what="wheel", name=path.name, version=metadata.version, said_by="METADATA")
    if conda is not None:
        yield Compared(what="conda recipe", name=str(inputs.conda_recipe), version=conda.version)


def _notes(inputs: DriftInputs, facts: SourceFacts | None, conda: CondaRecipe | None) -> Iterator[str]:
    if facts is None:
        yield "without a source tree, upstream's vendored copies, pins and build requirements are unknown; see --source"
    else:
        yield from (f"{facts.folder}: {note}" for note in facts.notes)
    if conda is not None and conda.passed_over:
        texts = [text.partition(": ") for text in conda.passed_over]
        lines: dict[str, list[str]] = {}
        for number, _, text in texts:
            lines.setdefault(text, []).append(number)
        shown = ", ".join(f"{text} ({', '.join(numbers)})" for text, numbers in lines.items())
        yield f"{inputs.conda_recipe}: skipped lines that need rendering: {shown}"


def _require_one_version(compared: Sequence[Compared]) -> list[str]:
    """Refuse inputs of other versions than the recipe's: their differences are no drift. Returns notes."""
    wanted = Version(compared[0].version).base_version
    problems, notes = [], []
    for each in compared[1:]:
        try:
            version = Version(each.version.replace("-", "."))
        except InvalidVersion:
            notes.append(f"{each.name} has no version; assuming {wanted}")
            continue
        if version.base_version != wanted:
            said = f" ({each.said_by})" if each.said_by else ""
            message = f"the {each.what} has version {each.version}{said}, but the recipe has {compared[0].version}"
            problems.append(Problem(file=each.name, message=message))
    if problems:
        raise UsageError(*problems, hint="compare inputs of the same version: requirements change between releases")
    return notes


def _lines(loaded: LoadedRecipe) -> dict[str, int]:
    """Texts of a recipe file -> the first line that has each in quotes."""
    text = loaded.document.texts[str(loaded.path)]
    found: dict[str, int] = {}
    for number, line in enumerate(source_lines(text), start=1):
        for part in line.split('"')[1::2]:
            found.setdefault(part, number)
    return found


def _read_wheel(path: Path, table: DependencyTable, pythons: tuple[str, ...]) -> list[Evidence]:
    scan = scan_wheel(map_file(path), filename=path.name, hashes="small")
    metadata = _metadata(scan)
    tags = scan.wheel.name.python.split(".")
    own = tuple(f"{tag[2]}.{tag[3:]}" for tag in tags if tag.startswith("cp") and tag[3:].isdigit())
    origin = RequirementOrigin(column="wheel", role="requires", file=path.name, phase="run", pythons=own or pythons)
    found = of_metadata(metadata, origin, table=table)
    gpus = _gpus(metadata.version, found)
    found = tuple(msgspec.structs.replace(each, gpus=gpus) if _is_of_gpu(each) else each for each in found)
    libraries = [(member.path, member.facts) for member in scan.elfs]
    return [*found, *of_libraries(libraries, file=path.name, table=table, gpus=gpus)]


def _fanned_out(
    path: Path, evidence: list[Evidence], table: DependencyTable, pythons: tuple[str, ...], made: Collection[str]
) -> list[Evidence]:
    """What a metapackage brings that the other wheels require with extras."""
    scan = scan_wheel(map_file(path), filename=path.name, only_metadata=True)
    metadata = _metadata(scan)
    if not requires_extras(metadata.name, evidence):
        message = (
            f"the file is a wheel of {metadata.name}, but the recipe does not build {metadata.name}, and no "
            "other wheel requires it with extras"
        )
        raise UsageError(Problem(file=path.name, message=message, hint=f"the recipe builds {', '.join(sorted(made))}"))
    return list(fan_out(metadata, evidence, file=path.name, table=table, pythons=pythons))


def _metadata(scan: WheelScan) -> Metadata:
    if scan.wheel.metadata is None:
        raise IntegrityError(*(Problem(file=scan.wheel.filename, message=text) for text in scan.wheel.unreadable))
    return scan.wheel.metadata


def _gpus(version: str, requires: Iterable[Evidence]) -> tuple[str, ...]:
    """The GPU world of a wheel: its local version says, else the CUDA toolkit that it requires."""
    local = (Version(version).local or "").split(".")
    labels = tuple(label for label in local if _LABEL.fullmatch(label))
    toolkit = next((each.spec for each in requires if each.dependency == "cuda" and each.spec.startswith("==")), None)
    if labels or toolkit is None:
        return labels
    return (f"cu{toolkit.removeprefix('==').removesuffix('.*').replace('.', '')}",)


def _is_of_gpu(each: Evidence) -> bool:
    return each.project.startswith(_OF_GPU)


def _read_conda_recipe(path: Path, table: DependencyTable) -> CondaRecipe:
    text = _read(path, _LARGEST_TEXT).decode("utf-8", "replace")
    found = read_conda_recipe(text, file=path.name, table=table)
    if not found.evidence:
        hint = "specify a meta.yaml or recipe.yaml that contains requirements"
        raise UsageError(Problem(file=str(path), message="no requirements were found in the file", hint=hint))
    return found


def _offers(inputs: DriftInputs, evidence: Iterable[Evidence], table: DependencyTable) -> dict[str, Releases]:
    """What channels have; and the index, where it may be asked, of what they have not."""
    names = {each.dependency for each in evidence}
    offers: dict[str, Releases] = {}
    for path in inputs.channels:
        data = _read(path, _LARGEST_INDEX)
        if path.name.endswith(".zst"):
            data = _decompressed(data, path)
        for offer in of_repodata(data, names, file=path.name, table=table, before=inputs.before):
            other = offers.get(offer.dependency)
            offers[offer.dependency] = offer if other is None else max(offer, other, key=lambda one: one.versions[-1])
    if inputs.index is not None:
        asked = (each for each in evidence if each.project and each.role in {"requires", "asks"})
        projects = {each.project: each.dependency for each in asked}  # not what only upstream's CI installs
        for project, name in sorted(projects.items()):
            if name not in offers and (found := _ask_index(project, inputs.index, table)) is not None:
                offers[name] = found
    return offers


def _ask_index(project: str, settings: IndexSettings, table: DependencyTable) -> Releases | None:
    files = [file for file in list_files(project, settings) if not file.yanked]
    versions = {str(found) for file in files if (found := version_of(file.filename, project)) is not None}
    return of_files(project, versions, file="package index", table=table)


def _decompressed(data: bytes, path: Path) -> bytes:
    try:
        with zstandard.ZstdDecompressor().stream_reader(data) as stream:
            found = stream.read(_LARGEST_INDEX)
    except zstandard.ZstdError as error:
        raise IntegrityError(
            Problem(file=str(path), message=f"the file is not compressed with zstd: {error}")
        ) from error
    return found


def _read(path: Path, limit: int) -> bytes:
    with file_errors(path), path.open("rb") as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        most = f"{limit >> 20} MiB"
        raise IntegrityError(Problem(file=str(path), message=f"the file is larger than the limit of {most}"))
    return data
