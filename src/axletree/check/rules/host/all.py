"""All rules about hosts, in the order in which their findings are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.check.rules.host.compilers import COMPILER_RULES
from axletree.check.rules.host.conda import CONDA_ENVIRONMENT_RULES
from axletree.check.rules.host.cuda import CUDA_RULES
from axletree.check.rules.host.disks import DISK_RULES
from axletree.check.rules.host.libraries import LIBRARY_RULES
from axletree.check.rules.host.nvidia import NVIDIA_RULES
from axletree.check.rules.host.python import PYTHON_RULES
from axletree.check.rules.host.resources import RESOURCE_RULES
from axletree.check.rules.host.rocm import ROCM_RULES
from axletree.check.rules.host.system import SYSTEM_RULES

if TYPE_CHECKING:
    from axletree.check.engine import Rule
    from axletree.check.host.examined import Examined

HOST_RULES: tuple[Rule[Examined], ...] = (
    *RESOURCE_RULES,
    *DISK_RULES,
    *COMPILER_RULES,
    *CUDA_RULES,
    *NVIDIA_RULES,
    *ROCM_RULES,
    *PYTHON_RULES,
    *CONDA_ENVIRONMENT_RULES,
    *LIBRARY_RULES,
    *SYSTEM_RULES,
)
"""Every rule over :class:`~axletree.check.host.examined.Examined`."""
