"""The GPUs of the host that a program would use, found without loading anything of the SDK, and why it is these.

The kernel is asked first (KFD's topology in sysfs). Programs are a last resort, and only binaries: a console script of
an SDK's package could unpack gigabytes to answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ._host import Host, is_binary
from ._visible import visible_amd

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from ._sdk import Sdk, SdkFile

_NODES = "/sys/class/kfd/kfd/topology/nodes"
_AMD = 0x1002
_OWN_MEMORY = {"1", "2"}
"""Kinds of memory bank that are a GPU's own (KFD: ``HSA_MEM_HEAP_TYPE_FB_*``)."""
_INTEGRATED = frozenset(
    ("gfx801", "gfx810", "gfx902", "gfx909", "gfx90c", "gfx1013", "gfx1033", "gfx1035", "gfx1036")
) | {"gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"}
"""AMD's GPUs that are part of a processor (LLVM, AMDGPU usage: column "APU")."""
_TOOLS = ("amdgpu-arch", "offload-arch", "rocm_agent_enumerator", "rocminfo")
_SAID = re.compile(r"^[ \t]*(?:Name:\s*)?(gfx[0-9a-f]{3,})(?::[a-z]+[+-])*[ \t]*$", re.MULTILINE)
"""A GPU in what those print: ``gfx90a:sramecc+:xnack-``, or a line of rocminfo."""
_VISIBILITY = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
_OFF = {"", "0", "no", "off", "false"}


@dataclass(frozen=True)
class Gpu:
    """A GPU of the host."""

    target: str
    """What code for it is called, ``gfx942`` or ``sm_90``; empty where that can't be told."""
    source: str
    """Who told: ``KFD node 1``."""
    integrated: bool = False
    """Part of a processor."""
    uuid: str = ""
    name: str = ""


@dataclass(frozen=True)
class Detection:
    """The answer, explained."""

    gpus: tuple[Gpu, ...] = ()
    """Those that a program sees: discrete ones first, unless variables say which and in which order."""
    reasons: tuple[str, ...] = ()
    """What was found where, and what decided."""
    chosen: bool = False
    """Whether somebody said which GPUs count: then integrated ones count as well."""

    @property
    def targets(self) -> tuple[str, ...]:
        """Targets that code is wanted for, each once: beside a discrete GPU an integrated one does not count."""
        known = [gpu for gpu in self.gpus if gpu.target]
        discrete = [gpu for gpu in known if not gpu.integrated]
        return tuple(dict.fromkeys(gpu.target for gpu in (known if self.chosen else discrete or known)))


def strip_features(target: str) -> str:
    """``gfx90a:sramecc+:xnack-`` -> ``gfx90a``."""
    return target.strip().partition(":")[0]


def split_list(text: str) -> list[str]:
    """Items between commas, semicolons or blanks."""
    return [part for part in re.split(r"[,;\s]+", text) if part]


def own_tools(sdk: Sdk) -> list[Path]:
    """Programs of an installed SDK that list GPUs, where they lie: never their console scripts."""
    package = sdk.root_package()
    folder = sdk.folder(package) if package else None
    if package is None or folder is None:
        return []
    commands = (each for each in sdk.shipped(package).commands if each.name in _TOOLS and not each.devel)
    return [path for each in commands if is_binary(path := folder / each.path)]


def is_on(text: str | None) -> bool:
    """Whether a variable is switched on."""
    return (text or "").strip().lower() not in _OFF


def gfx_name(number: int) -> str:
    """The name of a target as the kernel numbers it: 90010 -> ``gfx90a``, 110501 -> ``gfx1151``."""
    return f"gfx{number // 10000}{number // 100 % 100:x}{number % 100:x}"


def detect(sdk: SdkFile, host: Host | None = None, *, tools: Iterable[Path] = ()) -> Detection:
    """The GPUs of a host.

    Args:
        sdk: whose GPUs matter, and what its variables are called.
        host: the host; None: this one.
        tools: programs of the SDK that list GPUs, tried before those on ``PATH``.
    """
    host = host or Host()
    forced = split_list(host.environ.get(f"{sdk.prefix}_FORCE_GFX_ARCH", ""))
    if forced:
        source = f"{sdk.prefix}_FORCE_GFX_ARCH"
        gpus = tuple(Gpu(strip_features(each), source) for each in forced)
        return Detection(gpus, (f"set by {source}={','.join(forced)}",), chosen=True)
    if is_on(host.environ.get(f"{sdk.prefix}_DISABLE_DETECTION")):
        return Detection((), (f"{sdk.prefix}_DISABLE_DETECTION is set: GPU detection is off",))
    if sdk.maker == "nvidia":
        from ._nvidia import detect_nvidia

        return detect_nvidia(host)
    return _detect_amd(host, _INTEGRATED | set(sdk.integrated), set(sdk.hierarchy), tools)


def _detect_amd(host: Host, integrated: set[str] | frozenset[str], known: set[str], tools: Iterable[Path]) -> Detection:
    gpus, reasons = _kfd(host, integrated, known)
    if not any(gpu.target for gpu in gpus):
        asked, why = _ask_tools(host, integrated, tools)
        gpus, reasons = asked or gpus, reasons + why
    order, why = visible_amd([gpu.uuid for gpu in gpus], host.environ)
    seen, reasons = [gpus[index] for index in order], reasons + why
    chosen = any("_VISIBLE_DEVICES" in reason for reason in why)
    discrete = [gpu for gpu in seen if not gpu.integrated]
    if not chosen:
        seen = discrete + [gpu for gpu in seen if gpu.integrated]
        aside = sorted({gpu.target for gpu in seen if gpu.integrated})
        if discrete and aside:
            reasons.append(f"{', '.join(aside)} is integrated into a processor, so discrete GPUs take precedence")
    return Detection(tuple(seen), tuple(reasons), chosen=chosen and bool(seen))


def _kfd(host: Host, integrated: set[str] | frozenset[str], known: set[str]) -> tuple[list[Gpu], list[str]]:
    """The GPUs of KFD's topology in its order, which is ROCr's; its other nodes are processors."""
    gpus: list[Gpu] = []
    reasons: list[str] = []
    nodes = sorted((name for name in host.names(_NODES) if name.isdigit()), key=int)
    if not nodes:
        return [], [f"no AMD GPU driver is loaded ({_NODES} is missing)"]
    for node in nodes:
        fields = _fields(host.read(f"{_NODES}/{node}/properties"))
        if not fields:  # the kernel hides GPUs that a container was not given
            reasons.append(f"KFD node {node} cannot be read, so this process cannot use it")
        if not fields.get("simd_count") or fields.get("vendor_id", _AMD) != _AMD:
            continue
        number, source = fields.get("gfx_target_version", 0), f"KFD node {node}"
        target, why = _overridden(gfx_name(number) if number else "", node, host.environ)
        own = _has_own_memory(host, node) if target not in known else True
        unique = fields.get("unique_id", 0)
        gpu = Gpu(
            target=target,
            source=source,
            integrated=gfx_name(number) in integrated or fields.get("cpu_cores_count", 0) > 0 or not own,
            uuid=f"GPU-{unique:016x}" if unique else "",
        )
        gpus.append(gpu)
        what = target or f"a GPU whose target the kernel does not report (device {fields.get('device_id', 0):#06x})"
        reasons.append(f"{source}: {what}{' (integrated)' if gpu.integrated else ''}{why}")
    return gpus, reasons if gpus else [*reasons, f"none of the {len(nodes)} nodes in {_NODES} is a GPU"]


def _fields(text: str) -> dict[str, int]:
    lines = (line.split() for line in text.splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) == 2 and words[1].isdigit()}


def _has_own_memory(host: Host, node: str) -> bool:
    """Whether a GPU has memory of its own; what does not tell has."""
    banks = host.names(f"{_NODES}/{node}/mem_banks")
    kinds = {
        str(_fields(host.read(f"{_NODES}/{node}/mem_banks/{bank}/properties")).get("heap_type", "")) for bank in banks
    }
    return not kinds - {""} or bool(kinds & _OWN_MEMORY)


def _overridden(target: str, node: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """What ROCr calls a GPU: ``HSA_OVERRIDE_GFX_VERSION=10.3.0`` makes it run code for gfx1030 (``hsakmt``)."""
    for name in (f"HSA_OVERRIDE_GFX_VERSION_{node}", "HSA_OVERRIDE_GFX_VERSION"):
        found = re.fullmatch(r"\s*(\d+)\.(\d+)\.(\d+)", environ.get(name, ""))
        if found:
            major, minor, step = map(int, found.groups())
            return (
                f"gfx{major}{minor:x}{step:x}",
                f", set by {name}={found[0].strip()} instead of {target or 'its own target'}",
            )
    return target, ""


def _ask_tools(host: Host, integrated: set[str] | frozenset[str], tools: Iterable[Path]) -> tuple[list[Gpu], list[str]]:
    """What programs say, where the kernel can't: WSL has no KFD, old kernels no numbers."""
    reasons: list[str] = []
    under_wsl = host.exists("/dev/dxg")
    if under_wsl:
        reasons.append("/dev/dxg indicates a Windows GPU under WSL; set HSA_ENABLE_DXG_DETECTION=1 to use it with ROCm")
    if not under_wsl and not host.exists("/dev/kfd"):
        return [], reasons
    environ = {name: text for name, text in host.environ.items() if name not in _VISIBILITY}
    asking = replace(host, environ={**environ, **({"HSA_ENABLE_DXG_DETECTION": "1"} if under_wsl else {})})
    for program in (*tools, *(found for name in _TOOLS if (found := host.program(name)) is not None)):
        said, trouble = asking.ask([program])
        targets = [target for target in _SAID.findall(said) if target != "gfx000"]
        if targets:
            reasons.append(f"{program}: {', '.join(targets)}")
            return [Gpu(each, program.name, integrated=each in integrated) for each in targets], reasons
        reasons.append(f"{program}: {trouble or 'names no GPU'}")
    return [], reasons
