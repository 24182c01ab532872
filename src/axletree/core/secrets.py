"""Which names say that a value must not be shown: one idea of it for logs, reports, facts and recipes."""

from __future__ import annotations

import re

_NAME = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|API_?KEY|PRIVATE_?KEY|AUTH(?!ORS?(_|$))|"
    # Words that are parts of harmless ones: KEYBOARD, COMPASS, PATH.
    r"(?:^|[_-])(?:PASS|KEY|COOKIE|PAT)(?:$|[_-])",
    re.IGNORECASE,
)


def looks_secret(name: str) -> bool:
    """Whether the name of a variable or setting says that its value is a secret."""
    return _NAME.search(name) is not None
