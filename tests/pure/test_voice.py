"""Messages, hints, help and rules read as English that was written, not translated (CONTRIBUTING, "Voice")."""

import re

import pytest

from support.texts import is_prose, user_texts

PATTERNS: dict[str, tuple[str, str, str]] = {
    "is no": (
        r"(?<!\b[Tt]here )\b(?:is|are|was|were) no (?!longer\b|more\b)",
        "'x' is no version",
        "there is no such file: 'x' is not a version and no longer needed",
    ),
    "no name of": (
        r"^no (?:\w+ )?(?:name|line|list|table|page|path|entry) (?:of|for) an?\b",
        "no name of a wheel",
        "no name",
    ),
    "none": (r"\b(?:that|which) (?:is|are) none\b|\bis none of\b", "a number that is none", "none of them fits"),
    "whoever": (r"\b[Ww]hoever\b", "Whoever asks gets an error", "Anyone who asks gets an error"),
    "of which": (r"\bof (?:which|whom)\b|\bwhere(?:in|of)\b", "tools, of which one fails", "tools; one of them fails"),
    "says of": (r"\b(?:says?|tells?|speaks?) (?:no|nothing|of)\b", "says nothing of Debian", "does not mention Debian"),
    "anew": (r"\banew\b|\bafresh\b|\bbeforehand\b", "configure it anew", "configure it again"),
    "holds": (r"\bholds? (?:an?|no|the|other|another|code|more|what)\b", "holds a header", "holds: one, two"),
    "lies": (r"\b(?:lie|lies|lay) (?!about\b)", "lies in the folder", "is in the folder"),
    "brings": (r"\b(?:brings?|brought) ", "the wheel brings libc10", "the wheel provides libc10"),
    "is said": (r"\b(?:is|are|be) (?:said|meant|told|asked for)\b|\bas asked\b", "a pattern is said", "he said: it is"),
    "is to be": (r"\b(?:is|are) to be\b", "what is to be changed", "what to change"),
    "inversion": (
        r"^(?:What|Where|Which|Who|How)\b[^?]*\b(?:says?|tells?|decides?) the \w+\.?$|^Of an? \w+ (?:all|the|only)\b",
        "Which file belongs where says the manifest",
        "What the manifest says",
    ),
    "has not": (r"\bhas (?:not|no place)\b(?! (?:been|yet|run|\w+ed)\b)", "has not the number 3", "has not changed"),
    "stands": (r"\bstands? (?:for|in|there|at|before|behind|beside)\b", "what stands there", "the standard"),
    "goes on": (r"\b(?:go|goes|going|went) on\b", "goes on from here", "continues from here"),
    "so many": (r"\b(?:so|equally) many\b", "compress with so many threads", "many threads"),
    "as it makes": (r"\bas \w+ (?:makes|writes|wants) (?:it|them)\b", "such as unpack makes it", "as it makes sense"),
    "no word": (r"\b(?:and|without|with) (?:no|a) word\b", "ended without a word", "without a message"),
    "else than": (r"\belse than\b|\banother \w+ than\b", "something else than built", "something other than built"),
    "taken in": (r"\b(?:taken|took|take) in(?:to)?\b", "taken in from /usr/lib", "copied from /usr/lib"),
    "is there twice": (r"\bis there (?:twice|once|more|already)\b", "is there twice", "occurs twice"),
    "knows nothing": (r"\bknows? (?:no|nothing|of)\b", "CMake knows nothing of it", "CMake does not know it"),
    "is of": (r"\b(?:is|are) of (?!the form\b|type\b)", "the wheel is of version 2", "the wheel has version 2"),
    "to program": (
        r"\bvalues? that (?:is|are) there\b|\bwhat (?:is|was) (?:wanted|there)\b",
        "what is wanted",
        "what you want",
    ),
}
"""Name of a pattern -> what it looks like, a text with it, one without."""
ALLOWED: dict[str, str] = {}
"""Text -> why it may read so."""


@pytest.mark.parametrize("name", PATTERNS)
def test_each_pattern_finds_what_it_is_for(name: str) -> None:
    pattern, bad, good = PATTERNS[name]
    assert re.search(pattern, bad)
    assert not re.search(pattern, good)


def test_no_text_reads_as_translated() -> None:
    texts = [each for each in user_texts() if each.text not in ALLOWED]
    found = [
        f"{each.place}: {name}: {each.text}"
        for each in texts
        for name, row in PATTERNS.items()
        if re.search(row[0], each.text)
    ]
    assert not found, "\n".join(found)


def test_texts_are_collected_from_every_kind_of_place() -> None:
    texts = {each.text for each in user_texts()}
    assert len(texts) > 3000
    for known in (
        "exactly one of X is required, found X",  # a message of a recipe
        "File patterns for what to exclude.",  # a key of the recipe's model
        "Test the installed packages.",  # the runtime's help
        "Copy missing libraries into wheels, unless another distribution provides them, and retag the wheels.",
    ):
        assert known in texts


def test_programs_and_patterns_are_not_prose() -> None:
    assert is_prose("is not a wheel")
    assert not any(map(is_prose, ("wheel", "#!/bin/sh -e x", "import sys\nprint(sys)", r"(?:not) found\s+here")))
