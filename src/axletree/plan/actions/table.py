"""The actions that ship. A new one is a line here, its declaration in this package, its function in ``execute``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.plan.actions import (
    archives,
    audit,
    audit_conda,
    audit_zip,
    build,
    channel,
    compile,  # noqa: A004 (the name of the action)
    download,
    environment,
    fetch,
    hipify,
    index,
    install,
    pack,
    pack_conda,
    pack_zip,
    patch,
    place,
    relocate,
    run,
    test,
)

if TYPE_CHECKING:
    from axletree.plan.actions.spec import ActionSpec

ACTIONS: dict[str, ActionSpec] = {
    "fetch": fetch.SPEC,
    "place": place.SPEC,
    "patch": patch.SPEC,
    "environment": environment.SPEC,
    "build": build.SPEC,
    "compile": compile.SPEC,
    "run": run.SPEC,
    "download": download.SPEC,
    "hipify": hipify.SPEC,
    "install": install.SPEC,
    "relocate": relocate.SPEC,
    "pack": pack.SPEC,
    "pack-conda": pack_conda.SPEC,
    "pack-zip": pack_zip.SPEC,
    "audit": audit.SPEC,
    "audit-conda": audit_conda.SPEC,
    "audit-zip": audit_zip.SPEC,
    "index": index.SPEC,
    "channel": channel.SPEC,
    "archives": archives.SPEC,
    "test": test.SPEC,
}
