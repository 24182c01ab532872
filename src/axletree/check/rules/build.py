"""Rules about a build that has not begun: what will fail after hours, said before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.backends.link_size import REACH, GpuArch, LinkEstimate
from axletree.check.engine import Case, Found, Rule
from axletree.core.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

_SMALLER = {
    "none": "-Xfatbin -compress-all packs code to a fifth of its size",
    "speed": "-compress-mode=size (CUDA 12.8 and later) packs it to two fifths of what it is now",
    "balance": "-compress-mode=size packs it a fifth smaller",
}


def _too_large(facts: LinkEstimate) -> Iterator[Found]:
    if facts.most <= REACH:
        return
    certain = facts.least > REACH
    size = f"{format_bytes(facts.least)} to {format_bytes(facts.most)}"
    verdict = "more than" if certain else "perhaps more than"
    message = (
        f"{facts.library} will take {size} for {';'.join(map(str, facts.archs))}, {verdict} the "
        f"{format_bytes(REACH)} that code reaches: the link would end in `relocation truncated to fit`"
    )
    largest = sorted(facts.by_arch.items(), key=lambda item: -item[1])
    yield Found(
        where=facts.library,
        message=message,
        evidence=(
            f"mode {facts.mode}, CUDA {facts.cuda}; sizes from {facts.basis}",
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
    ways.append(f"a shorter TORCH_CUDA_ARCH_LIST (without {', '.join(kept)} it fits)")
    if any(arch.ptx for arch in facts.archs):
        ways.append("no +PTX")
    ways.append("a linker script that puts .nv_fatbin behind .bss, or BUILD_SPLIT_CUDA where the source still has it")
    ways.append("-mcmodel=medium for the host code, at some speed")
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
        basis="torch 2.8.0, CUDA 12.8, mode speed",
        by_arch={str(GpuArch(number=number)): middle // len(archs) for number in archs},
    )


BUILD_RULES: tuple[Rule[LinkEstimate], ...] = (
    Rule(
        id="build/link-size",
        severity="warning",
        title="The CUDA library may become too large to link",
        why=(
            "GPU code is between the program and its data, and code can reach only 2 GiB. Beyond that, the linker "
            "fails with `relocation truncated to fit`, after everything was compiled."
        ),
        fix="fewer architectures, or better compression",
        check=_too_large,
        cases=lambda: (
            Case(
                title="seven architectures, nothing packed", facts=_sample("none", 4 << 30, 6 << 30, 70, 80), fires=True
            ),
            Case(title="perhaps too large", facts=_sample("speed", 1 << 30, 3 << 30, 80, 90), fires=True),
            Case(title="half of what fits", facts=_sample("size", 1 << 28, 1 << 30, 80, 90), fires=False),
        ),
    ),
)
