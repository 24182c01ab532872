"""Look at what a plan will link, before it compiles: will PyTorch's CUDA library be too large?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.backends.cuda import cuda_release
from axletree.backends.link_size import LINK_SIZES, compression, estimate, parse_arch_list
from axletree.buildsystem.cmake.cache import is_true
from axletree.check.engine import apply_rules
from axletree.check.rules.build import BUILD_RULES
from axletree.host.shipped_data import read_shipped
from axletree.plan.actions.compile import cmake_options
from axletree.plan.actions.project import ProjectParameters

if TYPE_CHECKING:
    from axletree.app.planning import Prepared
    from axletree.core.findings import Finding
    from axletree.plan.graph import PlannedStage

_RECIPES = frozenset({"pytorch", "torch", "libtorch"})
"""Extensions take the same arch list, and have a small part of the code."""
_ARCHS = "TORCH_CUDA_ARCH_LIST"
_FLAGS = ("NVCC_PREPEND_FLAGS", "TORCH_NVCC_FLAGS", "CUDAFLAGS", "CMAKE_CUDA_FLAGS", "NVCC_APPEND_FLAGS")
"""Where nvcc's flags come from, in the order in which they take effect."""


def link_findings(prepared: Prepared) -> tuple[Finding, ...]:
    """What is to be said of the stages that will run and compile PyTorch for CUDA; each arch list once.

    Raises:
        HostError: the table of measured sizes can't be read.
    """
    if prepared.plan.recipe not in _RECIPES:
        return ()
    found: dict[tuple[str, str, str], Finding] = {}
    for stage in prepared.plan.stages.values():
        asked = _asked(stage)
        if asked is not None and asked not in found and prepared.resolved[stage.id].record is None:
            text, cuda, flags = asked
            archs, sizes = parse_arch_list(text), read_shipped(LINK_SIZES)
            if archs is not None:
                mode = compression(flags, cuda=cuda, sizes=sizes)
                for finding in apply_rules(BUILD_RULES, estimate(archs, cuda=cuda, mode=mode, sizes=sizes)):
                    found[asked] = finding
    return tuple(found.values())


def _asked(stage: PlannedStage) -> tuple[str, str, str] | None:
    """Arch list, CUDA release and flags of nvcc, of a stage that compiles for CUDA."""
    parameters = stage.step.parameters
    if not isinstance(parameters, ProjectParameters):
        return None
    options = cmake_options(parameters)
    settings = {**parameters.env, **{name.partition(":")[0]: value for name, value in options.items()}}
    cuda = cuda_release(stage.step.axes.get("gpu", ""))
    if cuda is None or not is_true(settings.get("USE_CUDA", "")) or not settings.get(_ARCHS):
        return None
    return settings[_ARCHS], cuda, " ".join(settings.get(name, "") for name in _FLAGS)
