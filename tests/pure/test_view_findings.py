"""A finding as text: one layout, whatever says it."""

from __future__ import annotations

import msgspec

from axletree.core.events import StagePlanned
from axletree.core.findings import Finding, LogLine
from axletree.core.values import StageId
from axletree.view.findings import COLOURS, counted, finding_lines, group_findings
from axletree.view.live import finding_text
from axletree.view.plain import failure_lines
from axletree.view.state import StageView

PLANNED = StagePlanned(stage=StageId("build"), action="compile", needs=(), variants=(), cached=False)
FINDING = Finding(
    rule="link/killed",
    severity="error",
    where="build.log:7",
    message="The linker was killed",
    cause="It needs more memory than there is. The kernel ended it.",
    fix="Link with fewer jobs:\n$ export MAX_JOBS=1 # and this line is too long to be left whole by what wraps texts",
    evidence=("8 links at once",),
    lines=(LogLine(line=7, text="collect2: Killed"), LogLine(line=12, text="ninja: stopped")),
    variants=("a", "b", "c", "d", "e"),
)


def test_the_layout() -> None:
    assert list(finding_lines(FINDING)) == [
        "error build.log:7: The linker was killed [link/killed]",
        "      for a, b, c and 2 more",
        "      8 links at once",
        "       7 | collect2: Killed",
        "      12 | ninja: stopped",
        "      why: It needs more memory than there is. The kernel ended it.",
        "      fix: Link with fewer jobs:",
        "           $ export MAX_JOBS=1 # and this line is too long to be left whole by what wraps texts",
    ]
    assert list(finding_lines(FINDING, brief=True)) == ["error build.log:7: The linker was killed [link/killed]"]


def test_sentences_are_wrapped_to_a_width_and_commands_are_not() -> None:
    lines = list(finding_lines(FINDING, width=55))
    assert lines[5:7] == ["      why: It needs more memory than there is. The", "           kernel ended it."]
    assert max(len(line) for line in lines[1:-1]) <= 55
    assert len(lines[-1]) > 55


def test_much_evidence_is_cut() -> None:
    many = msgspec.structs.replace(FINDING, evidence=tuple(f"fact {n}" for n in range(9)), lines=())
    lines = list(finding_lines(many))
    assert lines[7:9] == ["      fact 5", "      and 3 more"]


def test_only_the_severity_has_a_colour() -> None:
    styled = next(finding_lines(FINDING, lambda text, **how: f"<{how['fg']} {text}>"))
    assert styled == f"<{COLOURS['error']} error> build.log:7: The linker was killed [link/killed]"
    (span,) = finding_text(FINDING).spans
    assert (span.start, span.end, span.style) == (0, 5, "bold red")


def test_foreign_text_can_not_steer_the_terminal() -> None:
    bad = "\x1b]0;owned\x07\x1b[2J\r"
    text = "\n".join(
        finding_lines(
            msgspec.structs.replace(
                FINDING, where=bad, message=bad, cause=bad, fix=bad, evidence=(bad,), lines=(LogLine(line=1, text=bad),)
            )
        )
    )
    assert text.replace("\n", "").isprintable()


def test_a_failed_stage_shows_the_lines_of_its_log_once() -> None:
    stage = StageView(planned=PLANNED, status="failed", cause=("collect2: Killed",), findings=(FINDING,))
    lines = failure_lines(stage, "")
    assert [line.strip() for line in lines if "Killed" in line] == ["collect2: Killed"]
    assert "        why: It needs more memory than there is. The kernel ended it." in lines


def test_counts() -> None:
    others = [msgspec.structs.replace(FINDING, severity=severity) for severity in ("info", "warning", "info")]
    assert counted([FINDING, *others]) == "1 error, 1 warning, 2 info"
    assert counted([]) == ""


def test_findings_with_other_causes_are_not_put_together() -> None:
    other = msgspec.structs.replace(FINDING, cause="Its job was cancelled.")
    stage = StageView(planned=PLANNED, findings=(FINDING, other, FINDING))
    groups = group_findings([stage])
    assert [len(group.places) for group in groups] == [1, 1]
    assert groups[0].places[0][1] == ("8 links at once", " 7 | collect2: Killed", "12 | ninja: stopped")
