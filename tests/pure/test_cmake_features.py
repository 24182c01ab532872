"""What CMake turned off by itself is found, whatever the cache pretends."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from axletree.buildsystem.cmake.cache import parse_cache
from axletree.buildsystem.cmake.features import check_features, find_downgrades, last_run, read_summary
from axletree.buildsystem.pytorch.downgrades import DOWNGRADES, option_value

CACHE = parse_cache(
    "USE_CUDNN:BOOL=ON\nUSE_MKL:BOOL=ON\nBLAS:STRING=MKL\nUSE_NUMA:BOOL=OFF\nX_LIB:PATH=X_LIB-NOTFOUND\n"
    "USE_MAGMA:BOOL=ON\nCMAKE_CACHEFILE_DIR:INTERNAL=/b\n",
    file="C",
)
LOG = """\
CMake Warning at cmake/public/cuda.cmake:211 (message):
  Cannot find cuDNN library.  Turning the option
  off
Call Stack (most recent call first):
CMake Warning at cmake/Dependencies.cmake:207 (message):
  MKL could not be found.  Defaulting to Eigen
-- ******** Summary ********
--   USE_CUDNN             : 0
--     cuDNN version       : 9.1.1
--   BLAS                  : open
""".splitlines()
REAL = (Path(__file__).parents[1] / "golden/cmake/pytorch-2.6.0.log").read_text(encoding="utf-8").splitlines()
"""What a configure of PyTorch 2.6.0 for CPUs printed, without the lines about probes of the compiler."""


def test_summary() -> None:
    assert read_summary(LOG) == {"USE_CUDNN": "0", "cuDNN version": "9.1.1", "BLAS": "OpenBLAS"}


def test_messages_that_are_wrapped() -> None:
    assert [(each.features[0], line) for each, line in find_downgrades(LOG)] == [("USE_CUDNN", 2), ("BLAS", 6)]


def test_each_silent_downgrade_is_named_with_its_reason() -> None:
    wanted = {"USE_CUDNN": "ON", "BLAS": "MKL", "USE_NUMA": "1", "X_LIB": "*", "USE_CUDNNN": "ON"}
    found = {each.feature: each for each in check_features(wanted, CACHE, LOG)}
    assert list(found) == list(wanted)
    assert str(found["USE_CUDNN"]) == "USE_CUDNN is 0 (summary), not ON"
    assert found["USE_CUDNN"].why == ("Cannot find cuDNN library. Turning the option off",)
    assert "CUDNN_ROOT" in found["USE_CUDNN"].hint
    assert str(found["BLAS"]) == "BLAS is OpenBLAS (summary), not MKL"
    assert str(found["USE_NUMA"]) == "USE_NUMA is OFF (CMakeCache.txt:4), not 1"
    assert "has no variable or feature with this name" in str(found["USE_CUDNNN"])


def test_a_message_counts_where_no_summary_names_the_feature() -> None:
    # PyTorch leaves BLAS=MKL in the cache while it uses Eigen, and sets some options only as plain variables.
    wanted = {"BLAS": "MKL", "USE_MKL": "ON"}
    assert [str(each) for each in check_features(wanted, CACHE, LOG[:6])] == [
        "BLAS is OFF (configure log:6), not MKL",
        "USE_MKL is OFF (configure log:6), not ON",
    ]


def test_only_the_last_run_of_this_folder_counts() -> None:
    ended = "-- Build files have been written to: "
    again = [*LOG[:6], f"{ended}/b", "-- fine", f"{ended}/b/sub", "--   BLAS : mkl", f"{ended}/b"]
    assert last_run(again, "/b") == again[7:]
    assert check_features({"BLAS": "MKL", "USE_MKL": "ON", "USE_CUDNN": "ON"}, CACHE, again) == ()
    (mismatch,) = check_features({"USE_MAGMA": "ON"}, CACHE, [*again, "  Not compiling with MAGMA."])
    assert mismatch.where == f"configure log:{len(again) + 1}"


def test_a_cache_that_is_off_beats_a_summary() -> None:
    (mismatch,) = check_features({"USE_NUMA": "ON"}, CACHE, ["--   USE_NUMA   : ON"])
    assert mismatch.where == "CMakeCache.txt:4"


def test_what_is_as_expected_is_silent() -> None:
    wanted = {"USE_CUDNN": "OFF", "BLAS": "OpenBLAS", "USE_NUMA": "0", "cuDNN version": "9.1.1"}
    assert check_features(wanted, CACHE, LOG) == ()


def test_lines_that_name_an_unknown_feature_are_shown() -> None:
    cache = parse_cache("USE_SPECTRE:BOOL=OFF\n", file="C")
    log = [
        "-- Could NOT find Spectre (missing: SPECTRE_LIBRARY)",
        "-- Found spectre_helper",
        "-- Could NOT find Inspectre",
    ]
    (mismatch,) = check_features({"USE_SPECTRE": "ON"}, cache, log)
    assert mismatch.why == (log[0],)


def test_pytorch_2_6() -> None:
    cache = parse_cache(
        "BLAS:STRING=Generic\nUSE_CUDA:BOOL=0\nUSE_MAGMA:BOOL=ON\nUSE_MIOPEN:BOOL=ON\nUSE_NUMPY:BOOL=True\n", file="C"
    )
    wanted = {"BLAS": "Generic", "USE_CUDA": "OFF", "USE_OPENMP": "ON", "USE_NUMPY": "ON", "USE_FBGEMM": "OFF"}
    assert check_features(wanted, cache, REAL) == ()
    found = check_features({"USE_MAGMA": "ON", "USE_MIOPEN": "ON", "USE_MKL": "ON", "USE_FAKELOWP": "ON"}, cache, REAL)
    assert [(each.feature, each.found, each.why) for each in found] == [
        ("USE_MAGMA", "OFF", ("Not compiling with MAGMA. Suppress this warning with -DUSE_MAGMA=OFF.",)),
        ("USE_MIOPEN", "OFF", ("-- MIOpen not found. Compiling without MIOpen support",)),
        ("USE_MKL", "", ()),
        ("USE_FAKELOWP", "OFF", ("Turning USE_FAKELOWP off as it depends on USE_FBGEMM.",)),
    ]


@pytest.mark.parametrize("downgrade", DOWNGRADES, ids=lambda each: each.says[:30])
def test_patterns_match_nothing_that_is_fine(downgrade: object) -> None:
    pattern = re.compile(downgrade.says)  # type: ignore[attr-defined]
    fine = [
        "-- Found CUDA: /usr/local/cuda (found version 12.6)",
        "-- Found MAGMA",
        "--   USE_MKLDNN : ON",
        "-- Found OpenMP",
    ]
    assert not any(pattern.search(line) for line in fine)
    assert not pattern.search("")


def test_words_of_the_summary() -> None:
    assert (option_value("BLAS", "mkl"), option_value("BLAS", "Eigen"), option_value("USE_X", "open")) == (
        "MKL",
        "Eigen",
        "open",
    )
