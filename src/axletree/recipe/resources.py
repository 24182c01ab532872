"""What a stage or a test needs of the machine, as the recipe writes it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from axletree.recipe.base import Table


class Resources(Table, frozen=True, kw_only=True):
    """Resources that a stage needs. After its first run, measured values are used instead."""

    cores: Annotated[int, Meta(ge=1, description="Cores that must be free before the stage starts.")] = 1
    memory: Annotated[str | None, Meta(description="Memory that the whole stage needs, such as `4 GB`.")] = None
    memory_per_job: Annotated[
        str | None,
        Meta(description="Memory that one compile process needs, such as `1.6 GB`; limits how many run at once."),
    ] = None
    disk: Annotated[str | None, Meta(description="Free disk space that the stage needs, such as `2 GB`.")] = None
