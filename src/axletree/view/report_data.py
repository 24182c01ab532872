"""What the HTML report shows, as one value made from a run's events and the records of its stages."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.core.events import Published, Status
from axletree.core.values import Digest, StageId
from axletree.plan.actions.pack import WheelParameters
from axletree.plan.actions.pack_zip import ZipParameters
from axletree.plan.actions.packages import PackedFacts
from axletree.plan.actions.spec import facts_of
from axletree.plan.actions.test import ClientTestFacts, ClientTestParameters
from axletree.recipe.locks import PyLock
from axletree.view.findings import FindingGroup, group_findings
from axletree.view.state import RunView, StageView

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from axletree.core.records import StageRecord
    from axletree.plan.actions.spec import Parameters

PackageStatus = Literal["new", "unchanged", "refused", "not published", "failed", "not reached", "cancelled"]
"""``refused``: it was built, but its audit failed, so it is not in the index."""

_PACKING = frozenset({"pack", "pack-conda", "pack-zip"})
_REFUSING = frozenset({"audit", "audit-conda", "audit-zip", "index", "channel", "archives"})
_UNMADE: dict[Status, PackageStatus] = {"failed": "failed", "blocked": "not reached"}


class PackageRow(msgspec.Struct, frozen=True, kw_only=True):
    """A package that the run made, found in the store, or did not get to."""

    name: str
    version: str
    variants: tuple[str, ...]
    stage: StageId
    """The stage that packs it."""
    status: PackageStatus
    filename: str | None = None
    path: str | None = None
    """Relative to the output folder, where it was published."""
    tag: str | None = None
    size: int | None = None
    """Bytes."""
    sha256: Digest | None = None


class RanTest(msgspec.Struct, frozen=True, kw_only=True):
    """A test with one installer. Counts are ``None`` where the test does not say."""

    name: str
    installer: str
    client: str
    """The installer's version."""
    variants: tuple[str, ...]
    stage: StageId
    status: Status
    wall: float | None
    passed: int | None = None
    failed: int | None = None
    skipped: int | None = None
    message: str | None = None


class InstallCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command that installs the result."""

    tool: str
    """``pip``, ``uv``, ``conda`` ..."""
    what: str
    """What it installs: a variant or an index root."""
    command: str


class ReportData(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the report shows."""

    recipe: str
    version: str
    run: RunView
    host: dict[str, str]
    """What the host is, label -> value, in the order shown."""
    toolchain: dict[str, str]
    """Tool -> version."""
    packages: tuple[PackageRow, ...]
    tests: tuple[RanTest, ...]
    findings: tuple[FindingGroup, ...]
    """Worst first."""
    environments: dict[str, PyLock]
    """Name of the lock file -> its content."""
    install: tuple[InstallCommand, ...]


def report_data(
    run: RunView,
    *,
    records: Mapping[StageId, StageRecord],
    parameters: Mapping[StageId, Parameters] = MappingProxyType({}),
    recipe_name: str,
    recipe_version: str,
    host: Mapping[str, str],
    toolchain: Mapping[str, str] | None = None,
    environments: Mapping[str, PyLock] | None = None,
    install: Sequence[InstallCommand] = (),
) -> ReportData:
    """Put a report together.

    Args:
        run: The state after the run's last event.
        records: Results of the stages that have one, those found in the store included.
        parameters: What the plan asks of each stage.
        recipe_name: Name of the recipe.
        recipe_version: Version of what it builds.
        host: What the host is, label -> value.
        toolchain: Tool -> version.
        environments: Name of a lock file -> its content.
        install: Command lines that install the result.
    """
    stages = {name: _with_record(stage, records.get(name)) for name, stage in run.stages.items()}
    run = msgspec.structs.replace(run, stages=stages)
    return ReportData(
        recipe=recipe_name,
        version=recipe_version,
        run=run,
        host=dict(host),
        toolchain=dict(toolchain or {}),
        packages=tuple(_packages(run, records, parameters)),
        tests=tuple(
            _test(stage, records.get(name), parameters.get(name))
            for name, stage in stages.items()
            if stage.planned.action == "test"
        ),
        findings=group_findings(stages.values()),
        environments=dict(environments or {}),
        install=tuple(install),
    )


def _with_record(stage: StageView, record: StageRecord | None) -> StageView:
    """A stage found in the store, with what it found and used when it ran."""
    if record is None or stage.status != "cached":
        return stage
    return msgspec.structs.replace(
        stage,
        findings=stage.findings or record.findings,
        metrics=stage.metrics or record.metrics,
        peak_memory=stage.peak_memory or record.metrics.peak_memory,
    )


def _packages(
    run: RunView, records: Mapping[StageId, StageRecord], parameters: Mapping[StageId, Parameters]
) -> Iterable[PackageRow]:
    files = {file.path.rpartition("/")[2]: file for file in run.published}
    refused = {
        need for stage in run.having("failed") if stage.planned.action in _REFUSING for need in stage.planned.needs
    }
    for name, stage in run.stages.items():
        if stage.planned.action not in _PACKING:
            continue
        record = records.get(name)
        facts = None if record is None else facts_of(record, PackedFacts)
        filename = None if facts is None else facts.filename
        file = files.get(filename or "")
        made = file or facts
        package, version = _packed(parameters.get(name)) or (_step_parts(name)[-1], "")
        yield PackageRow(
            name=package,
            version=version,
            variants=stage.planned.variants,
            stage=name,
            status=_package_status(stage, file, refused=name in refused),
            filename=filename,
            path=None if file is None else file.path,
            tag=_tag(filename),
            size=made.size if made is not None else None,
            sha256=made.sha256 if made is not None else None,
        )


def _tag(filename: str | None) -> str | None:
    """What tells a file from others of the same package: tags of a wheel, the build string of a conda package."""
    if filename is None or filename.endswith(".zip"):
        return None
    if filename.endswith(".conda"):
        return filename.removesuffix(".conda").rpartition("-")[2]
    return "-".join(filename.removesuffix(".whl").split("-")[-3:])


def _package_status(stage: StageView, file: Published | None, *, refused: bool) -> PackageStatus:
    if stage.status not in ("done", "cached"):
        return _UNMADE.get(stage.status, "cancelled")
    if refused:
        return "refused"
    if file is None:
        return "not published"
    return "new" if file.fresh else "unchanged"


def _packed(parameters: Parameters | None) -> tuple[str, str] | None:
    """Name and version of the package that a stage packs."""
    match parameters:
        case WheelParameters(package=package):
            return package.name, package.version
        case ZipParameters(part=part, version=version):
            return part.package, version
        case _:
            return None


def _test(stage: StageView, record: StageRecord | None, parameters: Parameters | None) -> RanTest:
    parts = _step_parts(stage.stage)
    facts = None if record is None else facts_of(record, ClientTestFacts)
    wall = stage.elapsed(0.0) if stage.started is not None else None
    if stage.status == "cached" and stage.metrics is not None:
        wall = stage.metrics.wall
    return RanTest(
        name=":".join(parts[1:-1]) or parts[0],
        installer=parts[-1],
        client=parameters.client if isinstance(parameters, ClientTestParameters) else "",
        variants=stage.planned.variants,
        stage=stage.stage,
        status=stage.status,
        wall=wall,
        passed=None if facts is None else facts.passed,
        failed=None if facts is None else facts.failed,
        skipped=None if facts is None else facts.skipped,
        message=stage.message,
    )


def _step_parts(stage: StageId) -> list[str]:
    """``test:operators:pip[py311]`` -> ``test``, ``operators``, ``pip``."""
    return stage.partition("[")[0].split(":")
