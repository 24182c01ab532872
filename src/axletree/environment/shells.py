"""Text that a shell evaluates: ``eval "$(axletree env activate ...)"``.

What is done depends on the shell's variables at the time, not on those that we saw: the text can be kept in a file
and sourced later, or elsewhere. It takes no function, leaves no variable but those of
:mod:`axletree.environment.apply`, and works under ``set -eu``. Nothing is changed where something can't be: a read-
only variable, an array of that name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from axletree.environment.apply import ACTIVE, ENV, by_variable, list_mark

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from axletree.environment.apply import Change
    from axletree.environment.delta import Activation, Delta

Shell = Literal["bash", "zsh", "fish"]
SHELLS: tuple[Shell, ...] = ("bash", "zsh", "fish")


def quoted(text: str, shell: Shell) -> str:
    """A word that the shell reads as this text, whatever is in it."""
    if shell == "fish":
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return "'" + text.replace("'", "'\\''") + "'"


def activation_text(activation: Activation, shell: Shell) -> str:
    """What activates an environment in a shell."""
    return _fish(activation) if shell == "fish" else _posix(activation, shell)


def undoing_text(changes: Sequence[Change], shell: Shell) -> str:
    """What makes changes in a shell; nothing gives a line that does nothing."""
    if not changes:
        return "true\n"
    lines = [_fish_change(change) if shell == "fish" else _posix_change(change, shell) for change in changes]
    return "\n".join([*lines, ""])


def _posix_change(change: Change, shell: Shell) -> str:
    name = change.variable
    if change.value is None:
        return f"\\unset -v {name}"
    text = f"\\export {name}={quoted(change.value, shell)}"
    if change.exported:
        return text
    return f"{text}; \\export -n {name}" if shell == "bash" else f"{text}; \\typeset -g +x {name}"


def _fish_change(change: Change) -> str:
    name = change.variable
    if change.value is None:
        return f"set -e {name}"
    return f"set -g{'x' if change.exported else 'u'} {name} {quoted(change.value, 'fish')}"


def _posix(activation: Activation, shell: Shell) -> str:
    changes = by_variable(activation)
    folder = quoted(activation.folder, shell)
    lines = [
        f'case "${{{ACTIVE}-}}" in *[!0-9]*|0*|?????*|"") __axletree_l=0 ;; *) __axletree_l=${ACTIVE} ;; esac',
        f'if [ "$__axletree_l" = 0 ] || [ "${{{ENV}-}}" != {folder} ]; then',
        "__axletree_s=; __axletree_h=",
        _posix_look(ENV, "", shell),
        *(_posix_look(name, list_mark(deltas), shell) for name, deltas in changes.items()),
        'if [ -n "$__axletree_s" ]; then',
        "printf '%s\\n' \"axletree: not activated: these variables are read-only or not strings:$__axletree_s\" >&2",
        "\\unset -v __axletree_l __axletree_s __axletree_h __axletree_d",
        "false",
        "else",
        "__axletree_l=$((__axletree_l + 1))",
        *_posix_remember((ENV, *changes), "WAS"),
        f"\\export {ENV}={folder}",
        *(line for name, deltas in changes.items() for line in _posix_set(name, deltas, shell)),
        *_posix_remember((ENV, *changes), "NOW"),
        '\\export "AXLETREE_${__axletree_l}_HOW=${__axletree_h# }"',
        f'\\export {ACTIVE}="$__axletree_l"',
        "\\unset -v __axletree_l __axletree_s __axletree_h __axletree_d",
        "fi",
        "else",
        "\\unset -v __axletree_l",
        "fi",
        "",
    ]
    return "\n".join(lines)


def _posix_look(name: str, mark: str, shell: Shell) -> str:
    """Note in ``__axletree_h`` how a variable is, in ``__axletree_s`` one that can't be changed."""
    if shell == "zsh":
        ask = f"__axletree_d=${{(t){name}}}"
        words = f'*readonly*|*array*|*association*|*integer*|*float*) __axletree_s="$__axletree_s {name}" ;;'
        exported = "*export*"
    else:
        ask = f'__axletree_d=$(\\declare -p {name} 2>/dev/null) || :; __axletree_d=${{__axletree_d%%"{name}"*}}'
        words = f"'declare -'*[aAinrlu]*) __axletree_s=\"$__axletree_s {name}\" ;;"
        exported = "'declare -'*x*"
    found = {how: f'__axletree_h="$__axletree_h {name}:{how}{mark}"' for how in "xpu"}
    return (
        f'__axletree_d=; if [ -n "${{{name}+x}}" ]; then {ask}; case "$__axletree_d" in {words} '
        f"{exported}) {found['x']} ;; *) {found['p']} ;; esac; else {found['u']}; fi"
    )


def _posix_remember(names: Iterable[str], what: str) -> Iterator[str]:
    for name in names:
        variable = f"AXLETREE_${{__axletree_l}}_{what}_{name}"
        yield f'if [ -n "${{{name}+x}}" ]; then \\export "{variable}=${name}"; else \\unset -v "{variable}"; fi'


def _posix_set(name: str, deltas: Iterable[Delta], shell: Shell) -> Iterator[str]:
    for delta in deltas:
        value, separator = quoted(delta.value, shell), quoted(delta.separator, shell)
        match delta.operation:
            case "set":
                yield f"\\export {name}={value}"
            case "unset":
                yield f"\\unset -v {name}"
            case "prepend" | "append":
                both = [value, separator, f'"${name}"']
                full = "".join(both if delta.operation == "prepend" else reversed(both))
                yield f'if [ -n "${{{name}-}}" ]; then \\export {name}={full}; else \\export {name}={value}; fi'


def _fish(activation: Activation) -> str:
    changes = by_variable(activation)
    names = (ENV, *changes)
    folder = quoted(activation.folder, "fish")
    lines = [
        "set -l __axletree_l 0; set -l __axletree_h; set -l __axletree_e",
        f"string match -qr '^[1-9][0-9]{{0,3}}$' -- \"${ACTIVE}\"; and set __axletree_l ${ACTIVE}",
        f'if test "$__axletree_l" = 0; or test "${ENV}" != {folder}',
        "set __axletree_l (math $__axletree_l + 1)",
        *_fish_look(ENV, ""),
        *(line for name, deltas in changes.items() for line in _fish_look(name, list_mark(deltas))),
        f"set -gx {ENV} {folder}",
        *(line for name, deltas in changes.items() for line in _fish_set(name, deltas)),
        *(_fish_remember(name, "NOW") for name in names),
        'set -gx AXLETREE_"$__axletree_l"_HOW (string join " " $__axletree_h)',
        f"set -gx {ACTIVE} $__axletree_l",
        "end",
        "set -e __axletree_l; set -e __axletree_h; set -e __axletree_e",
        "",
    ]
    return "\n".join(lines)


def _fish_look(name: str, mark: str) -> Iterator[str]:
    yield f"if set -qx {name}; set -a __axletree_h {name}:x{mark}"
    yield f"else if set -q {name}; set -a __axletree_h {name}:p{mark}"
    yield f"else; set -a __axletree_h {name}:u{mark}; end"
    yield _fish_remember(name, "WAS")


def _fish_remember(name: str, what: str) -> str:
    variable = f'AXLETREE_"$__axletree_l"_{what}_{name}'
    return f'if set -q {name}; set -gx {variable} "${name}"; else; set -e {variable}; end'


def _fish_set(name: str, deltas: Iterable[Delta]) -> Iterator[str]:
    for delta in deltas:
        value, separator = quoted(delta.value, "fish"), quoted(delta.separator, "fish")
        match delta.operation:
            case "set":
                yield f"set -gx {name} {value}"
            case "unset":
                yield f"set -e {name}"
            case "prepend" | "append":
                both = [value, separator, f'"${name}"']
                full = "".join(both if delta.operation == "prepend" else reversed(both))
                yield f'if test -n "${name}"; set -gx {name} {full}; else; set -gx {name} {value}; end'
