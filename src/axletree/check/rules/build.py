"""Rules about a build that has not begun: what will fail after hours, said before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.backends.link_size import REACH, GpuArch, LinkEstimate
from axletree.check.engine import Found, Rule, fires, silent
from axletree.core.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

_SMALLER = {
    "none": "compile with -Xfatbin -compress-all, which compresses GPU code to a fifth of its size",
    "speed": (
        "compile with -compress-mode=size (CUDA 12.8 or later), which compresses GPU code to two fifths of its "
        "current size"
    ),
    "balance": "compile with -compress-mode=size, which makes GPU code a fifth smaller",
}


def _too_large(facts: LinkEstimate) -> Iterator[Found]:
    if facts.most <= REACH:
        return
    certain = facts.least > REACH
    size = f"{format_bytes(facts.least)} to {format_bytes(facts.most)}"
    verdict = "more than" if certain else "possibly more than"
    message = (
        f"{facts.library} will be {size} when built for {';'.join(map(str, facts.archs))}, {verdict} the "
        f"{format_bytes(REACH)} that code can address: linking would fail with `relocation truncated to fit`"
    )
    largest = sorted(facts.by_arch.items(), key=lambda item: -item[1])
    yield Found(
        facts.library,
        message,
        evidence=(
            f"compression mode {facts.mode}, CUDA {facts.cuda}; sizes estimated from {facts.basis}",
            *(f"{arch}: about {format_bytes(size)}" for arch, size in largest),
        ),
        fix=_fix(facts, largest),
    )


def _fix(facts: LinkEstimate, largest: list[tuple[str, int]]) -> str:
    """What brings it below the limit, by what it saves."""
    ways = [_SMALLER[facts.mode]] if facts.mode in _SMALLER else []
    left, kept = facts.most, []
    for arch, size in largest:
        if left <= REACH:
            break
        left -= round(size * facts.most / facts.expected)
        kept.append(arch)
    ways.append(f"shorten TORCH_CUDA_ARCH_LIST (the library fits without {', '.join(kept)})")
    if any(arch.ptx for arch in facts.archs):
        ways.append("remove +PTX from TORCH_CUDA_ARCH_LIST")
    ways.append(
        "link with a script that places .nv_fatbin after .bss, or set BUILD_SPLIT_CUDA=1 if the source "
        "still supports it"
    )
    ways.append("compile host code with -mcmodel=medium, which makes it somewhat slower")
    return "\n".join(ways)


def _sample(mode: str, least: int, most: int, *archs: int) -> LinkEstimate:
    middle = (least + most) // 2
    return LinkEstimate(
        library="libtorch_cuda.so",
        archs=tuple(GpuArch(number=number) for number in archs),
        cuda="12.8",
        mode=mode,  # type: ignore[arg-type]
        least=least,
        expected=middle,
        most=most,
        basis="torch 2.8.0 with CUDA 12.8",
        by_arch={str(GpuArch(number=number)): middle // len(archs) for number in archs},
    )


BUILD_RULES: tuple[Rule[LinkEstimate], ...] = (
    Rule(
        id="build/link-size",
        severity="warning",
        title="The CUDA library may become too large to link",
        why="GPU code is placed between the program's code and its data, and code can address only 2 GiB. Beyond "
        "that, linking fails with `relocation truncated to fit` after everything has been compiled.",
        fix="build for fewer architectures, or compress the GPU code more",
        check=_too_large,
        cases=lambda: (
            fires("uncompressed code for two architectures", _sample("none", 4 << 30, 6 << 30, 70, 80)),
            fires("a library that may be too large", _sample("speed", 1 << 30, 3 << 30, 80, 90)),
            silent("a library at half the maximum size", _sample("size", 1 << 28, 1 << 30, 80, 90)),
        ),
    ),
)
