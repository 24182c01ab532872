"""All rules about wheels, in the order in which their findings are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.check.rules.wheel.bundled import BUNDLED_RULES
from axletree.check.rules.wheel.content import CONTENT_RULES
from axletree.check.rules.wheel.elf import ELF_RULES
from axletree.check.rules.wheel.gpu import GPU_RULES
from axletree.check.rules.wheel.gpu_size import GPU_SIZE_RULES
from axletree.check.rules.wheel.linkage import LINKAGE_RULES
from axletree.check.rules.wheel.machine import MACHINE_RULES
from axletree.check.rules.wheel.metadata import METADATA_RULES
from axletree.check.rules.wheel.names import NAME_RULES
from axletree.check.rules.wheel.platform import PLATFORM_RULES
from axletree.check.rules.wheel.python import PYTHON_RULES
from axletree.check.rules.wheel.runtimes import RUNTIME_RULES
from axletree.check.rules.wheel.search import SEARCH_RULES
from axletree.check.rules.wheel.symbols import SYMBOL_RULES
from axletree.check.rules.wheel.unused import UNUSED_RULES

if TYPE_CHECKING:
    from axletree.check.dist import DistFacts
    from axletree.check.engine import Rule

DIST_RULES: tuple[Rule[DistFacts], ...] = (
    *METADATA_RULES,
    *LINKAGE_RULES,
    *UNUSED_RULES,
    *SEARCH_RULES,
    *RUNTIME_RULES,
    *PLATFORM_RULES,
    *MACHINE_RULES,
    *PYTHON_RULES,
    *ELF_RULES,
    *SYMBOL_RULES,
    *GPU_RULES,
    *GPU_SIZE_RULES,
    *NAME_RULES,
    *CONTENT_RULES,
    *BUNDLED_RULES,
)
"""Every rule over :class:`~axletree.check.dist.DistFacts`."""
