"""Audit an archive for C++ users: what its libraries need must lie in it or belong to every system."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.check.tree import audit_tree
from axletree.execute.auditing import judged
from axletree.execute.packing import content_of
from axletree.host.archive import map_file
from axletree.host.shipped_data import read_shipped
from axletree.package.cpp_archive import lay_out
from axletree.package.libraries.policy import PLATFORM_POLICIES
from axletree.package.libraries.providers import LIBRARY_PROVIDERS, Provider
from axletree.package.wheel.tree import scan_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from axletree.core.trees import Entry
    from axletree.execute.context import ActionContext, Context, Outcome
    from axletree.plan.actions.audit_zip import ZipAuditParameters


def run(context: ActionContext[ZipAuditParameters]) -> Outcome:
    """Look at the machine code as it will lie where the archive is unpacked.

    Raises:
        StageError: the audit has errors; its findings come with it.
    """
    parameters = context.parameters
    archive = next(entry.path for entry in context.tree("archive").entries if entry.path.endswith(".zip"))
    content = content_of(context, parameters.part)
    places = lay_out(content.entries, content.paths, folder=parameters.called)
    driver = Provider(name="GPU driver", kind="driver", sonames=parameters.driver)
    report = audit_tree(
        scan_tree(_content(context, content.entries, places)),
        label=archive,
        files=tuple(places),
        policies=read_shipped(PLATFORM_POLICIES),
        providers=(*read_shipped(LIBRARY_PROVIDERS), driver),
        glibc=parameters.glibc,
    )
    return judged(context, report)


def _content(
    context: Context, entries: Mapping[str, Entry], places: Mapping[str, str]
) -> Iterator[tuple[str, memoryview]]:
    for place, source in places.items():
        entry = entries[source]
        if entry.blob is not None and entry.size:
            with map_file(context.store.blob_path(entry.blob)) as view:
                yield place, view
