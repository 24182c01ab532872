"""``axletree sdk explain`` and ``axletree sdk version``: what would be built, and how it would be called."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from axletree.app.sdk_explain import Explained, explain, ownership_report
from axletree.app.sdk_input import load_manifest, read_sdk_input
from axletree.app.sdk_versions import check_version_order
from axletree.cli.opening import settings
from axletree.cli.options import FOLDER
from axletree.cli.reporting import ReportCommand, Reported, terminal_width
from axletree.core.units import plural
from axletree.package.sdk.versions import FORMS, ReleaseType, compute_version, framework_version, with_suffix
from axletree.report.sdk import OwnershipReport, SdkVersions, VersionOrder
from axletree.view.sdk_ownership import answer_text, ownership_text
from axletree.view.tables import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from axletree.app.sdk_input import SdkInput
    from axletree.package.sdk.manifest import Manifest

_ANSWERS = 20


def table_width() -> int:
    """Columns of a table: names of files are long, but not that long."""
    return terminal_width(most=120)


def input_options(command: Callable[..., object]) -> Callable[..., object]:
    """The options that say where an SDK lies."""
    folder = FOLDER
    for option in (
        click.option(
            "--prefix", type=folder, metavar="DIR", help="Read the SDK from this install prefix, such as /opt/rocm."
        ),
        click.option("--debs", type=folder, metavar="DIR", help="Read the SDK from the Debian packages in DIR."),
        click.option(
            "--artifacts",
            type=folder,
            metavar="DIR",
            help="Read the SDK from TheRock artifacts (folders or archives) in DIR.",
        ),
    ):
        command = option(command)
    return command


def read_input(
    manifest: Manifest, folders: Mapping[str, Path | None], *, targets: Collection[str] = (), threads: int
) -> SdkInput:
    """What is in the folder that :func:`input_options` name."""
    store = Path(settings().store)
    return read_sdk_input(manifest, store=store, targets=targets or None, threads=threads, **folders)


@click.command(name="explain", cls=ReportCommand, report=OwnershipReport)
@click.argument("manifest")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@input_options
def explain_command(
    manifest: str,
    files: tuple[str, ...],
    **folders: Path | None,
) -> Reported:
    """Show which package owns each file in an SDK, and why.

    MANIFEST is a file, or the name of a manifest that ships with Axletree, such as rocm. FILE is a path relative to the
    prefix, or a glob. The exit code is 1 if a file has no owner, or more than one.
    """
    described = load_manifest(manifest, folder=Path.cwd())
    read = read_input(described, folders, threads=len(os.sched_getaffinity(0)))
    found = explain(read.entries, described, files)
    report = ownership_report(found, described, read.notes)
    return Reported(report, lambda: _ownership_lines(found, described, read.notes), int(found.faulty))


def _ownership_lines(found: Explained, manifest: Manifest, notes: Sequence[str]) -> Iterator[str]:
    """Of the files that were asked for, else of all packages."""
    yield from (f"note: {printable(note)}" for note in notes)
    if not (found.files or found.missing):
        width = table_width()
        yield ownership_text(found.ownership, manifest, width=width)
    for each in found.files[:_ANSWERS]:
        yield answer_text(each.entry, each.claims, each.excluded, each.verdict, manifest)
    if len(found.files) > _ANSWERS:
        yield f"and {len(found.files) - _ANSWERS} more; --json lists them all"
    for text, near in found.missing.items():
        yield printable(f"{text}\n  does not exist" + (f"; did you mean {near}?" if near else ""))


@click.command(name="version", cls=ReportCommand, report=SdkVersions)
@click.option(
    "--base", required=True, metavar="X.Y.Z", help="Version to derive the package versions from, such as 7.10.0."
)
@click.option(
    "--release-type", type=click.Choice(get_args(ReleaseType)), help="Kind of release that the packages are built for."
)
@click.option(
    "--custom-version-suffix",
    metavar="SUFFIX",
    help="Append this suffix to the version, instead of the one that the release type defines.",
)
@click.option(
    "--date",
    metavar="YYYYMMDD",
    help="Date to put into nightly versions, and into deb and rpm versions of dev builds; today by default.",
)
@click.option("--git-sha", default="", metavar="SHA", help="Commit to put into the version of a dev build.")
@click.option(
    "--prerelease-version", default="", metavar="N", help="Number in the version of a prerelease, such as 1 in rc1."
)
@click.option(
    "--base-date",
    default="",
    metavar="YYYYMMDD",
    help="Date of the nightly version that a nightly-bkc version is based on.",
)
@click.option("--name", default="rocm", show_default=True, help="Name of the SDK; each printed name starts with it.")
@click.option(
    "--framework",
    metavar="VERSION",
    help="Also print this framework version, such as 2.9.0, with the local label that marks it as built for this SDK.",
)
def version_command(
    *,
    base: str,
    release_type: ReleaseType | None,
    custom_version_suffix: str | None,
    date: str | None,
    git_sha: str,
    prerelease_version: str,
    base_date: str,
    name: str,
    framework: str | None,
) -> Reported:
    """Print the versions of an SDK's wheel, deb and rpm packages.

    Each line has the form NAME=VERSION, which build systems can read: rocm_package_version, rocm_deb_package_version
    and rocm_rpm_package_version. SOURCE_DATE_EPOCH, if set, determines today's date.
    """
    if (release_type is None) == (custom_version_suffix is None):
        raise click.UsageError("specify either --release-type or --custom-version-suffix")
    variables = {}
    for form in FORMS:
        if custom_version_suffix is not None:
            version = with_suffix(base, custom_version_suffix)
        else:
            version = compute_version(
                base,
                release_type or "release",
                form,
                date=_today() if date is None else date,
                git_sha=git_sha,
                prerelease=prerelease_version,
                base_date=base_date,
            )
        variables[f"{name}_{'' if form == 'wheel' else f'{form}_'}package_version"] = version
        if form == "wheel" and framework is not None:
            variables["framework_version"] = framework_version(framework, version, name=name)
    return Reported(SdkVersions(variables=variables), lambda: (f"{key}={text}" for key, text in variables.items()))


@click.command(name="check-versions", cls=ReportCommand, report=VersionOrder)
@click.argument("given", nargs=-1, required=True, metavar="DIR|VERSION...")
def check_versions_command(given: tuple[str, ...]) -> Reported:
    """Find framework versions that pip sorts in the wrong order.

    Compares the wheels of each distribution in the given folders, or the given versions, by the SDK version in their
    local labels: pip considers 2.12.0+rocm10.1.0 older than 2.12.0+rocm7.15.0. The exit code is 1 if there are such
    versions.
    """
    order = check_version_order(given, folder=Path.cwd())
    return Reported(order, lambda: _order_lines(order), int(bool(order.faults)))


def _order_lines(order: VersionOrder) -> Iterator[str]:
    for fault in order.faults:
        name = f"{fault.distribution} " if fault.distribution else ""
        yield printable(f"{name}{fault.newer} is not newer than {fault.older} according to pip")
        yield printable(f"  {fault.why}")
    if order.faults:
        yield "Starting with the next public version, write a '.' before the number (+rocm.10.1.0) in all builds."
    else:
        yield f"{plural(order.compared, 'version')} in the correct order."


def _today() -> str:
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = dt.datetime.fromtimestamp(int(epoch), dt.UTC) if epoch.isdecimal() else dt.datetime.now(dt.UTC)
    return f"{now:%Y%m%d}"
