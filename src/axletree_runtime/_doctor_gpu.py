"""Checks of the host's GPUs: whether programs may use them, see them, and find code for them."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ._detect import Detection, detect, own_tools
from ._doctor import Finding
from ._families import choose, find_wanted, serves_all
from ._libraries import with_gpu_code
from ._sdk import SdkError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ._host import Host
    from ._sdk import Sdk, SdkPackage

_VISIBILITY = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
_OVERRIDE = re.compile(r"HSA_OVERRIDE_GFX_VERSION(_\d+)?")
_PCI = "/sys/bus/pci/devices"
_NODES = "/sys/class/kfd/kfd/topology/nodes"


def gpu_findings(sdk: Sdk, host: Host) -> Iterator[Callable[[], Iterable[Finding]]]:
    """The checks."""
    if not sdk.file.families:
        return
    if sdk.file.maker == "hip":
        yield partial(_driver, host)
        yield partial(_windows_gpu, host)
        yield partial(_order, sdk, host)
        yield partial(_override, sdk, host)
    yield partial(_hidden, sdk, host)
    yield partial(_code, sdk, host)


def _seen(sdk: Sdk, host: Host) -> Detection:
    try:
        tools = own_tools(sdk)
    except SdkError:
        tools = []
    return detect(sdk.file, host, tools=tools)


def _without(host: Host, names: Iterable[str]) -> Host:
    left = {name: text for name, text in host.environ.items() if name not in set(names)}
    return replace(host, environ=left)


def _driver(host: Host) -> Iterator[Finding]:
    """The kernel's driver, its devices, and the right to use them."""
    if host.windows or host.exists("/dev/dxg"):
        return
    nodes = [name for name in host.names(_NODES) if "simd_count 0" not in host.read(f"{_NODES}/{name}/properties")]
    nodes = [name for name in nodes if "simd_count" in host.read(f"{_NODES}/{name}/properties")]
    cards = [name for name in host.names(_PCI) if _is_amd_gpu(host, name)]
    if not nodes:
        if cards:
            text = f"an AMD GPU is present ({', '.join(cards)}), but the amdgpu kernel driver does not expose it"
            yield Finding("error", "no-driver", text, "sudo modprobe amdgpu")
        return
    if not host.exists("/dev/kfd"):
        text = "the driver is loaded but /dev/kfd is missing: this container has no access to the GPU"
        yield Finding("error", "no-kfd", text, "docker run --device /dev/kfd --device /dev/dri ...")
        return
    renders = [f"/dev/dri/{name}" for name in host.names("/dev/dri") if name.startswith("renderD")]
    if not renders:
        text = "/dev/dri has no renderD* devices: this container has no access to the GPU"
        yield Finding("error", "no-render-node", text, "docker run --device /dev/kfd --device /dev/dri ...")
    closed = [path for path in ("/dev/kfd", *renders) if not host.may_use(path)]
    usable = [path for path in renders if path not in closed]
    if "/dev/kfd" in closed or (renders and not usable):
        groups = sorted({group for path in closed if (group := host.group_of(path))}) or ["render"]
        text = (
            f"this user is not allowed to open {', '.join(closed)} (group {', '.join(groups)}); join the "
            "group and log in again"
        )
        yield Finding("error", "kfd-permission", text, f"sudo usermod --append --groups {','.join(groups)} $USER")


def _is_amd_gpu(host: Host, name: str) -> bool:
    """PCI: vendor AMD, class of displays or of processing accelerators."""
    read = {part: host.read(f"{_PCI}/{name}/{part}").strip() for part in ("vendor", "class")}
    return read["vendor"] == "0x1002" and read["class"].startswith(("0x03", "0x12"))


def _windows_gpu(host: Host) -> Iterator[Finding]:
    """WSL: GPUs of Windows are behind another device, which ROCm must be told to look at."""
    if host.exists("/dev/dxg") and host.environ.get("HSA_ENABLE_DXG_DETECTION") != "1":
        text = "this is WSL: ROCm finds the GPU only with HSA_ENABLE_DXG_DETECTION=1"
        yield Finding("error", "wsl", text, "export HSA_ENABLE_DXG_DETECTION=1")


def _order(sdk: Sdk, host: Host) -> Iterator[Finding]:
    """A GPU that is part of the processor comes before one that is not: device 0 is the slow one."""
    if any(host.environ.get(name) for name in _VISIBILITY):
        return
    gpus = [gpu for gpu in _seen(sdk, host).gpus if gpu.source.startswith("KFD node ")]
    gpus.sort(key=lambda gpu: int(gpu.source.split()[-1]))
    discrete = [number for number, gpu in enumerate(gpus) if not gpu.integrated]
    before = [gpu for gpu in gpus[: discrete[0]] if gpu.integrated] if discrete else []
    if before:
        text = (
            f"device 0 is {before[0].target}, which is integrated into the processor; device {discrete[0]} is "
            f"{gpus[discrete[0]].target}"
        )
        shown = ",".join(map(str, discrete))
        what = f"{text}: programs that use the first device run on the wrong GPU"
        yield Finding("warning", "integrated-first", what, f"export HIP_VISIBLE_DEVICES={shown}")


def _override(sdk: Sdk, host: Host) -> Iterator[Finding]:
    """A variable that makes a GPU run code for another one."""
    names = sorted(name for name in host.environ if _OVERRIDE.fullmatch(name) and host.environ[name].strip())
    if not names:
        return
    real = detect(sdk.file, _without(host, names)).targets
    told = [each for each in real if any(serves_all(package, [each]) for package in sdk.file.packages)]
    said = ", ".join(f"{name}={host.environ[name]}" for name in names)
    why = f"; the SDK has native code for {', '.join(told)}" if told else ""
    text = f"{said} makes GPUs run code for a different GPU, which can give wrong results{why}"
    yield Finding("warning", "override", text, f"unset {' '.join(names)}")


def _hidden(sdk: Sdk, host: Host) -> Iterator[Finding]:
    """Variables that leave no GPU visible."""
    names = [name for name in _VISIBILITY if name in host.environ]
    if not names or _seen(sdk, host).gpus:
        return
    there = _seen(sdk, _without(host, names)).gpus
    if there:
        said = ", ".join(f"{name}={host.environ[name]}" for name in names)
        what = f"{said} hides all {len(there)} GPUs" if len(there) > 1 else f"{said} hides the GPU"
        yield Finding("error", "hidden", f"{what} of this host", f"unset {' '.join(names)}")


def _code(sdk: Sdk, host: Host) -> Iterator[Finding]:
    """Which package's GPU code is used and why, and GPUs that no installed package has code for."""
    try:
        wanted = find_wanted(sdk.file, host, detection=_seen(sdk, host))
    except ValueError as error:
        yield Finding("error", "family", str(error), f"unset {sdk.variable('TARGET_FAMILY')}")
        return
    yield from _fixed_choice(sdk, host)
    if not wanted.targets and not wanted.family:
        yield Finding("note", "no-gpu", f"no GPU was found: {'; '.join(wanted.reasons)}")
    installed = sdk.installed()
    for name, packages in with_gpu_code(sdk.file.packages).items():
        there = [each for each in packages if each in installed]
        neutral = any(each.package == name and not each.targets for each in installed)
        if not there and not neutral:
            continue
        choice = choose(sdk.file, there, wanted)
        if choice.package is not None:
            yield Finding("note", "choice", f"GPU code for {name} comes from {'; '.join(choice.reasons)}")
        elif not wanted.targets:
            text = f"no package with GPU code for {name} is installed"
            best = choose(sdk.file, packages, wanted).package
            yield Finding("warning", "no-gpu-code", text, sdk.install_hint([best]) if best else "")
        if choice.missing:
            yield _uncovered(sdk, name, packages, wanted.targets, choice.missing)


def _uncovered(
    sdk: Sdk, name: str, packages: list[SdkPackage], gpus: tuple[str, ...], missing: tuple[str, ...]
) -> Finding:
    """A finding about GPUs without code; an error if the one that programs take first is among them."""
    level = "error" if gpus[:1] == missing[:1] else "warning"
    what = f"no installed package of {name} has code for {', '.join(missing)}"
    able = [each for each in packages if serves_all(each, missing)]
    if not able:
        able = [each for each in packages if serves_all(each, missing[:1])]
    if able:
        best = min(able, key=lambda each: (not serves_all(each, gpus), len(each.targets), each.dist))
        return Finding(level, "no-code", what, sdk.install_hint([best]))
    return Finding(level, "no-code", f"{what}, and {sdk.file.sdk} {sdk.file.version} does not provide any")


def _fixed_choice(sdk: Sdk, host: Host) -> Iterator[Finding]:
    """A family that a variable names though the host's GPUs are others."""
    variable = sdk.variable("TARGET_FAMILY")
    named = host.environ.get(variable, "").strip()
    if not named:
        return
    real = _seen(sdk, host).targets
    family = find_wanted(sdk.file, host, detection=Detection()).family
    other = [target for target in real if target not in sdk.file.families.get(family, ())]
    if real and len(other) == len(real):
        text = f"{variable}={named} selects the GPU code, but this host has {', '.join(real)}"
        yield Finding("error", "frozen-family", text, f"unset {variable}")
