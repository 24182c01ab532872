"""What CMake turned off by itself is found, whatever the cache pretends."""

from __future__ import annotations

from axletree.buildsystem.cmake.cache import parse_cache
from axletree.buildsystem.cmake.features import check_features, find_downgrades, read_summary

CACHE = parse_cache(
    "USE_CUDNN:BOOL=ON\nUSE_MKL:BOOL=ON\nBLAS:STRING=MKL\nUSE_NUMA:BOOL=OFF\nX_LIB:PATH=X_LIB-NOTFOUND\n", file="C"
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
--   BLAS                  : Eigen
""".splitlines()


def test_summary() -> None:
    assert read_summary(LOG) == {"USE_CUDNN": "0", "cuDNN version": "9.1.1", "BLAS": "Eigen"}


def test_messages_that_are_wrapped() -> None:
    assert [(each.features[0], line) for each, line in find_downgrades(LOG)] == [("USE_CUDNN", 2), ("BLAS", 6)]


def test_each_silent_downgrade_is_named_with_its_reason() -> None:
    wanted = {"USE_CUDNN": "ON", "BLAS": "MKL", "USE_NUMA": "1", "USE_MKL": "ON", "X_LIB": "*", "USE_CUDNNN": "ON"}
    found = {each.feature: each for each in check_features(wanted, CACHE, LOG)}
    assert list(found) == ["USE_CUDNN", "BLAS", "USE_NUMA", "X_LIB", "USE_CUDNNN"]
    assert str(found["USE_CUDNN"]) == "USE_CUDNN is 0 (summary), not ON"
    assert found["USE_CUDNN"].why == ("Cannot find cuDNN library.  Turning the option",)
    assert "CUDNN_ROOT" in found["USE_CUDNN"].hint
    assert str(found["USE_NUMA"]) == "USE_NUMA is OFF (CMakeCache.txt:4), not 1"
    assert "knows nothing of that name" in str(found["USE_CUDNNN"])


def test_a_cache_that_is_off_beats_a_summary() -> None:
    (mismatch,) = check_features({"USE_NUMA": "ON"}, CACHE, ["--   USE_NUMA   : ON"])
    assert mismatch.where == "CMakeCache.txt:4"


def test_what_is_as_expected_is_silent() -> None:
    assert check_features({"USE_CUDNN": "OFF", "BLAS": "Eigen", "USE_NUMA": "0"}, CACHE, LOG) == ()
