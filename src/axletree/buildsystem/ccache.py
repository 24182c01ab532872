"""What ccache did with each call of a compiler, as its log of statistics says (``stats_log``, ccache 4.4 and later).

The log has a line ``# FILE`` for each call, the name as it was given and empty where ccache came to none, and below it
the names of the counters that the call raised, as in ``ccache --print-stats``.
"""

from __future__ import annotations

import msgspec

from axletree.core.units import some_of

_HITS = frozenset({"direct_cache_hit", "preprocessed_cache_hit"})
_MISS = "cache_miss"
_REFUSED = frozenset(
    {
        "bad_compiler_arguments",
        "bad_input_file",
        "bad_output_file",
        "compiler_check_failed",
        "compiler_produced_stdout",
        "could_not_find_compiler",
        "could_not_use_modules",
        "could_not_use_precompiled_header",
        "depends_on_the_gpu",
        "disabled",
        "error_hashing_extra_file",
        "internal_error",
        "missing_cache_file",
        "modified_input_file",
        "multiple_source_files",
        "not_tried_with_this_compiler",
        "output_to_stdout",
        "unsupported_code_directive",
        "unsupported_compiler_option",
        "unsupported_environment_variable",
        "unsupported_source_encoding",
        "unsupported_source_language",
    }
)
"""Counters of calls that were passed on. ``depends_on_the_gpu`` and ``not_tried_...`` are our launcher's own."""
_LINK = "called_for_link"
"""Of a call that names an output other than an object; nvcc compiles all the same, to PTX for one."""
_GPU = (".cu", ".hip")
_SHOWN = 3


class CacheUse(msgspec.Struct, frozen=True, kw_only=True):
    """Calls of compilers by what became of them."""

    hits: int = 0
    misses: int = 0
    """Compiled, and in the cache since."""
    refused: dict[str, tuple[str, ...]] = {}
    """Why ccache passed calls on, in its words -> the files; an empty name where it says none."""

    @property
    def past(self) -> int:
        """Number of the calls that were passed on."""
        return sum(map(len, self.refused.values()))

    def refused_gpu(self) -> dict[str, tuple[str, ...]]:
        """Of what was refused, CUDA and HIP code."""
        found = {why: tuple(file for file in files if file.endswith(_GPU)) for why, files in self.refused.items()}
        return {why: files for why, files in found.items() if files}

    def __str__(self) -> str:
        """One line for a log."""
        words = f"{self.hits:,} from the compiler cache, {self.misses:,} compiled"
        if self.refused:
            words += f", {self.past:,} not cacheable ({describe(self.refused)})"
        return words


def describe(refused: dict[str, tuple[str, ...]]) -> str:
    """Reasons with some of their files."""
    return "; ".join(f"{why}{_some(files)}" for why, files in sorted(refused.items()))


def _some(files: tuple[str, ...]) -> str:
    names = sorted({file.rpartition("/")[2] for file in files if file})
    return f": {some_of(names, _SHOWN)}" if names else ""


def read_stats_log(text: str) -> CacheUse:
    """Sum a log up. Calls that only link, preprocess or fail are no use of the cache."""
    hits = misses = 0
    refused: dict[str, list[str]] = {}
    file = ""
    for line in text.splitlines():
        if line.startswith("#"):
            file = line[1:].strip()
        elif line in _HITS:
            hits += 1
        elif line == _MISS:
            misses += 1
        elif line in _REFUSED or (line == _LINK and file.endswith(_GPU)):
            refused.setdefault(line.replace("_", " "), []).append(file)
    return CacheUse(hits=hits, misses=misses, refused={why: tuple(files) for why, files in refused.items()})
