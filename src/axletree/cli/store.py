"""``axletree store``: verify, gc, du."""

from __future__ import annotations

import click

from axletree import store as stores
from axletree.app.storekeeping import GRACE_HOURS, KEEP_DAYS, sweep_store
from axletree.cli.opening import open_store
from axletree.cli.reporting import ReportCommand, Reported
from axletree.core.units import format_bytes
from axletree.store import DuReport, GcReport, VerifyReport

_SHOWN = 10


@click.group(name="store")
def command() -> None:
    """Maintain the store: verify, gc, du."""


@command.command(name="verify", cls=ReportCommand, report=VerifyReport)
def verify_command() -> Reported:
    """Read the whole store and verify it; exit 1 if something is damaged.

    Damaged content is quarantined, and incomplete results are removed: the next build creates them again.
    """
    report = stores.verify(open_store())
    return Reported(report, lambda: _verify_text(report), 0 if report.sound else 1)


@command.command(name="gc", cls=ReportCommand, report=GcReport)
@click.option(
    "--keep",
    "keep_days",
    metavar="DAYS",
    type=click.FloatRange(min=0),
    default=KEEP_DAYS,
    show_default=True,
    help="Keep results used in the last DAYS days.",
)
@click.option(
    "--grace",
    "grace_hours",
    metavar="HOURS",
    type=click.FloatRange(min=0),
    default=GRACE_HOURS,
    show_default=True,
    help="Keep everything written or used in the last HOURS hours.",
)
@click.option(
    "--root",
    "roots",
    multiple=True,
    metavar="RECIPE",
    help="Keep what this recipe's last run needed, regardless of age. Repeatable.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be removed, without removing anything.")
def gc_command(*, keep_days: float, grace_hours: float, roots: tuple[str, ...], dry_run: bool) -> Reported:
    """Remove results that have not been used recently, except those that running builds use."""
    report = sweep_store(open_store(), keep_days=keep_days, grace_hours=grace_hours, roots=roots, dry_run=dry_run)
    return Reported(report, lambda: _gc_text(report))


@command.command(name="du", cls=ReportCommand, report=DuReport)
def du_command() -> Reported:
    """Show what takes up space, and the largest results."""
    report = stores.du(open_store())
    return Reported(report, lambda: _du_text(report))


def _verify_text(report: VerifyReport) -> str:
    lines = [f"read {report.blobs} blobs, {format_bytes(report.size)}"]
    lines += [f"corrupt, moved to quarantine: {digest}" for digest in report.corrupt]
    lines += [f"stray file, moved to quarantine: {name}" for name in report.strays]
    lines += [f"incomplete result, removed: {name}" for name in report.incomplete]
    lines += [f"damaged image, removed: {name}" for name in report.images]
    if report.leftovers:
        lines.append(f"removed {len(report.leftovers)} scratch folders left by dead processes")
    lines.append(
        "the store is intact" if report.sound else "the store was damaged; the next build rebuilds what it needs"
    )
    return "\n".join(lines)


def _gc_text(report: GcReport) -> str:
    verb = "would remove" if report.dry_run else "removed"
    gone = f"{len(report.records)} results, {report.blobs} blobs, {len(report.folders)} folders"
    return (
        f"{verb} {gone} and {report.files} other files: {format_bytes(report.freed)}\n"
        f"kept {report.kept_records} results and {report.kept_blobs} blobs"
    )


def _du_text(report: DuReport) -> str:
    lines = [report.root, ""]
    lines += [
        f"{format_bytes(kind.size):>9}  {kind.files:>7} files  {kind.kind}" for kind in report.kinds if kind.files
    ]
    lines.append(
        f"{format_bytes(report.size):>9}  in total; {format_bytes(report.unused)} is not part of any result "
        "(gc removes it)"
    )
    if report.records:
        lines += ["", "     size      own  files  result"]
    lines += [
        f"{format_bytes(record.size):>9}{format_bytes(record.own):>9}{record.files:>7}"
        f"  {record.stage} {record.key[:12]}"
        for record in report.records[:_SHOWN]
    ]
    if len(report.records) > _SHOWN:
        lines.append(f"and {len(report.records) - _SHOWN} smaller ones")
    return "\n".join(lines)
