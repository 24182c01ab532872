"""The variant that a thinned wheel is: its label, and the properties by which installers choose it.

Features and values are those of the providers of NVIDIA (``nvidia-variant-provider``) and AMD
(``amd-variant-provider``): a machine with compute capability 9.0 offers ``90_real``; one with 8.6 both ``86_real`` and
``80_real``, as it runs the code of either.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from axletree.core.errors import Problem, UsageError
from axletree.package.gpu.variant import Property, WheelVariant, make_variant

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from axletree.package.gpu.arch import Gpu

_LOCAL = re.compile(r"cu(\d{2,3})(?:\D|$)")
_SONAME = re.compile(r"lib(?:cudart|cublas|cublasLt|nvrtc|cusparse)\.so\.(\d+)")
_TOOLKIT = re.compile(r"cuda-toolkit|nvidia-cuda-runtime(?:-cu\d+)?")
_GPU_FEATURES = frozenset({("nvidia", "sm_arch"), ("amd", "gfx_arch")})
_GPU_LABEL = re.compile(r"(?:^|_)(?:sm\d[\d_]*|gfx.*)$")
"""What an earlier thinning put at the end of a label."""
_CUDA_FEATURE = ("nvidia", "cuda_version_lower_bound")


def gpu_variant(gpus: Sequence[Gpu], *, cuda: str | None, base: WheelVariant | None = None) -> WheelVariant:
    """The variant for code that was thinned for some GPUs.

    Args:
        gpus: of one maker.
        cuda: lowest CUDA version that the driver must support, ``13.0``; needed for NVIDIA, unless ``base`` has it.
        base: the variant that the wheel already was; its other properties stay.

    Raises:
        UsageError: GPUs of both makers, or no CUDA version.
    """
    makers = {gpu.maker for gpu in gpus}
    if len(makers) > 1:
        raise UsageError(
            "one wheel cannot be a variant for both NVIDIA and AMD", hint="create a separate wheel for each"
        )
    kept = [part for part in base.properties if (part.namespace, part.feature) not in _GPU_FEATURES] if base else []
    if makers == {"hip"}:
        properties = [Property("amd", "gfx_arch", gpu.processor) for gpu in gpus]
        label = "_".join(_in_label(gpu.name) for gpu in gpus)
    else:
        properties = [Property("nvidia", "sm_arch", f"{gpu.number}_real") for gpu in gpus]
        label = "sm" + "_".join(str(gpu.number) for gpu in gpus)
        if cuda is not None:
            kept = [part for part in kept if (part.namespace, part.feature) != _CUDA_FEATURE]
            properties.append(Property(*_CUDA_FEATURE, cuda))
        elif not any((part.namespace, part.feature) == _CUDA_FEATURE for part in kept):
            message = "the wheel does not record which CUDA version it was built with"
            raise UsageError(Problem(key="--cuda", message=message, hint="specify the version, such as --cuda 13.0"))
    prefix = (
        _GPU_LABEL.sub("", base.label)
        if base
        else f"cu{cuda.replace('.', '')}"
        if cuda and makers == {"nvidia"}
        else ""
    )
    return make_variant(f"{prefix}_{label}" if prefix else label, [*kept, *properties])


def _in_label(name: str) -> str:
    """``gfx90a:xnack-`` without what labels may not have."""
    return re.sub(r":(\w+)([+-])", lambda part: f"_{'no_' if part[2] == '-' else ''}{part[1]}", name)


def cuda_floor(*, version: str, requires: Iterable[str], needed: Iterable[str]) -> str | None:
    """The lowest CUDA version whose drivers run a wheel: ``MAJOR.0``, as drivers serve all minor versions of a major.

    Args:
        version: its version; a local label such as ``+cu130`` tells.
        requires: its ``Requires-Dist``.
        needed: SONAMEs that its files need.

    Returns:
        ``None`` where none of these says.
    """
    found = _LOCAL.search(version.partition("+")[2])
    if found is not None:
        return f"{found[1][:-1]}.0"
    for text in requires:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        exact = re.search(r"==\s*(\d+)\.", str(requirement.specifier))
        if exact is not None and _TOOLKIT.fullmatch(canonicalize_name(requirement.name)):
            return f"{exact[1]}.0"
    majors = {int(match[1]) for soname in needed if (match := _SONAME.fullmatch(soname))}
    return f"{max(majors)}.0" if majors else None
