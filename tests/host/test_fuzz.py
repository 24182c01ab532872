"""Damaged and hostile input is refused cleanly: random changes to real files, and in `make proof` guided ones."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.fuzz import TARGETS, attempt, seeds

SECONDS = 120
"""How long `make proof` lets the guided fuzzer work on each target."""
MEGABYTES = 1024
"""What one input may make the fuzzer's process take, its instrumentation included."""

INTERESTING = (0, 1, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 31, 1 << 40, (1 << 64) - 1)


@st.composite
def changes(draw: st.DrawFn, data: bytes) -> bytes:
    """A file with a few bytes, words or stretches changed, doubled, dropped or cut off."""
    result = bytearray(data)
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, max(0, len(result) - 1)))
        match draw(st.sampled_from(["byte", "word", "cut", "drop", "double", "swap"])):
            case "byte":
                result[at : at + 1] = bytes([draw(st.integers(0, 255))])
            case "word":
                size = draw(st.sampled_from([2, 4, 8]))
                value = draw(st.sampled_from(INTERESTING)) % (1 << 8 * size)
                result[at : at + size] = value.to_bytes(size, draw(st.sampled_from(["little", "big"])))
            case "cut":
                del result[at:]
            case "drop":
                del result[at : at + draw(st.integers(1, 64))]
            case "double":
                result[at:at] = result[at : at + draw(st.integers(1, 256))]
            case "swap":
                other = draw(st.integers(0, max(0, len(result) - 1)))
                result[at : at + 8], result[other : other + 8] = result[other : other + 8], result[at : at + 8]
            case kind:
                raise AssertionError(kind)
    return bytes(result)


@pytest.mark.parametrize("target", TARGETS)
def test_real_files_are_accepted_and_damaged_ones_refused_cleanly(target: str, tmp_path: Path) -> None:
    files = seeds(target, tmp_path)
    assert any(attempt(target, data) for data in files)

    @settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(st.sampled_from(files).flatmap(changes))
    def damaged(data: bytes) -> None:
        attempt(target, data)

    damaged()


@pytest.mark.proof
@pytest.mark.parametrize("target", TARGETS)
def test_a_guided_fuzzer_finds_nothing(target: str, tmp_path: Path) -> None:
    if find_spec("atheris") is None:
        pytest.skip("atheris is not installed: there is none for this Python")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for number, data in enumerate(seeds(target, tmp_path)):
        (corpus / str(number)).write_bytes(data)
    options = [f"-max_total_time={SECONDS}", f"-rss_limit_mb={MEGABYTES}", "-timeout=20", "-max_len=200000"]
    command = [
        sys.executable,
        "-m",
        "support.fuzz",
        target,
        str(corpus),
        *options,
        f"-artifact_prefix={tmp_path}/found-",
    ]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    runs = re.findall(r"Done (\d+) runs|#(\d+)\s", done.stderr)
    assert done.returncode == 0, done.stderr[-4000:]
    assert runs
    print(f"\n{target}: {max(int(one or two) for one, two in runs):,} inputs in {SECONDS} s")  # noqa: T201
