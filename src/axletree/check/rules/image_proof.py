"""The rule about jobs that run inside an image already: whether what they see is known to be that image."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.check.engine import Found, Rule, apply_rules, fires, silent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.core.findings import Finding

UNPROVED = "build/unproved-image"
"""Id of the rule, by which reports and the ledger know such results."""


class ImageProof(msgspec.Struct, frozen=True, kw_only=True):
    """What came of the comparison of an image's inventory with the files that its stages saw."""

    image: str
    """As the recipe has it."""
    doubts: tuple[str, ...] = ()
    """Why it is not known to be the image; empty if it is."""


def proof_findings(image: str, doubts: tuple[str, ...]) -> tuple[Finding, ...]:
    """What to say of a result that was made in files which may not be its image's; nothing without doubts."""
    return apply_rules(PROOF_RULES, ImageProof(image=image, doubts=doubts))


def _unproved(facts: ImageProof) -> Iterator[Found]:
    if facts.doubts:
        more = len(facts.doubts) - 1
        also = f"; and {more} more difference{'s' if more > 1 else ''}" if more else ""
        yield Found(
            f"images.{facts.image}",
            f"unproved image: the stage ran with files that may differ from those of the image {facts.image}: "
            f"{facts.doubts[0]}{also}",
            evidence=facts.doubts,
        )


PROOF_RULES: tuple[Rule[ImageProof], ...] = (
    Rule(
        id=UNPROVED,
        severity="warning",
        title="A stage ran in files that are not known to be its image's",
        why="With `--runner here`, a stage uses the packages and compilers of the machine, and its key names the "
        "locked image. If the two differ, others who use the key get a result that their image would not have given.",
        fix="start the job from the locked image and install nothing in it, or build with `--runner namespace`",
        check=_unproved,
        cases=lambda: (
            fires(
                "a package in addition",
                ImageProof(image="bookworm", doubts=("1 additional package: libfoo-dev 1.2",)),
            ),
            fires(
                "packages that are not known",
                ImageProof(image="tiny", doubts=("the packages of the image are not known", "1 missing file: /opt/x")),
            ),
            silent("the same inventory", ImageProof(image="bookworm")),
        ),
    ),
)
