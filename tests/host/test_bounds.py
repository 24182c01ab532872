"""The shipped table of what goes together, and its agreement with torch's own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from axletree.backends.bounds import TOOLCHAIN_BOUNDS, numbers
from axletree.host.shipped_data import read_shipped
from support.inputs import wheel

ROOT = Path(__file__).parents[2]
SCRIPT = "scripts/update_toolchain_bounds.py"
TABLE = "src/axletree/backends/data/toolchain-bounds.toml"


def update(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, str(root / SCRIPT), *words]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_bounds_of_what_is_not_in_the_table_are_not_known() -> None:
    bounds = read_shipped(TOOLCHAIN_BOUNDS)
    assert bounds.of_cuda("99.1") is None
    assert bounds.of_cuda("12.4.131") == bounds.of_cuda("12.4")
    assert bounds.of_torch("1.13.1") is None
    newest = bounds.of_torch("2.14.1")
    assert newest is not None
    assert newest.cmake[0] == "3.27"
    assert bounds.of_torch("2.6.0") == bounds.of_torch("2.0")


def test_bounds_are_ranges() -> None:
    for release, bound in read_shipped(TOOLCHAIN_BOUNDS).cuda.items():
        for low, high in (each for each in (bound.gcc, bound.clang, bound.archs) if each is not None):
            assert low < high, release
        assert numbers(bound.driver) > (400,)


def test_the_table_says_what_torch_itself_says() -> None:
    done = update(ROOT, str(wheel("torch==2.13.0")))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_updater_mends_what_differs_and_names_what_is_new(tmp_path: Path) -> None:
    for name in (SCRIPT, TABLE):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    source = tmp_path / "cpp_extension.py"
    source.write_text(
        "MINIMUM_GCC_VERSION = (5, 0, 0)\n"
        "CUDA_GCC_VERSIONS: dict = {'11.8': (MINIMUM_GCC_VERSION, (12, 0)), '13.0': ((6, 0, 0), (17, 0)), "
        "'14.0': ((7,), (18,))}\n"
        "CUDA_CLANG_VERSIONS = {'11.8': ((7, 0), (15, 0))}\n"
    )
    said = update(tmp_path, str(source))
    assert said.returncode == 1
    assert said.stdout.splitlines() == [
        "CUDA 11.8: gcc [6, 12] -> [5, 12]",
        "CUDA 11.8: clang None -> [7, 15]",
        "CUDA 13.0: gcc [6, 16] -> [6, 17]",
        "CUDA 14.0 is not in the table: {'gcc': [7, 18]}",
    ]
    assert update(tmp_path, str(source), "--write").returncode == 0
    assert update(tmp_path, str(source)).stdout == "CUDA 14.0 is not in the table: {'gcc': [7, 18]}\n"
