"""Runs a command as another account, because Postgres refuses to run as root.

This is a script, started by path (`python unprivileged.py UID GID PATH… -- COMMAND…`), so it imports nothing of the
application and nothing that is slow to import. The setuid calls need a new process: in the service they would change
every thread.

If a parent folder is closed to the account (a home below /root), the command keeps one capability, as an ambient one
that survives `exec`: the right to read and search, or, if that does not suffice or is not held (as in most containers),
the right to ignore file permissions. No folder's mode changes.
"""

import ctypes
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

EXIT_UNREACHABLE = 126
"""Exit code if the account cannot reach a path that the command needs; stderr names the path."""

# Constants of the kernel, from linux/prctl.h, linux/securebits.h and linux/capability.h.
_PR_SET_KEEPCAPS, _PR_SET_SECUREBITS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 8, 28, 47, 2
_SECBIT_NO_SETUID_FIXUP = 1 << 2
_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 1, 2
_CAPABILITY_VERSION_3 = 0x20080522


class _MessageHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def as_account(uid: int, gid: int, needed: Sequence[Path], command: Sequence[str]) -> list[str]:
    """Returns the command line with which root runs `command` as `uid` and `gid`; it can then read `needed`."""
    script = [sys.executable, "-I", "-S", __file__, str(uid), str(gid)]
    return [*script, *map(str, needed), "--", *command]


def main(arguments: Sequence[str]) -> int:
    """Switches to the account and replaces this process by the command; returns only if that fails."""
    uid, gid, *rest = arguments
    middle = rest.index("--")
    needed, command = rest[:middle], rest[middle + 1 :]
    try:
        _become(int(uid), int(gid), [*needed, command[0]])
        os.execv(command[0], command)  # noqa: S606 - no shell is wanted
    except OSError as error:
        sys.stderr.write(f"account {uid}: {error}\n")
    return EXIT_UNREACHABLE


def _become(uid: int, gid: int, needed: Sequence[str]) -> None:
    os.setgroups([])
    os.setegid(gid)
    os.seteuid(uid)
    closed = _first_closed(needed)
    os.seteuid(0)
    if closed and sys.platform == "linux":
        _keep_capabilities()
    os.setgid(gid)
    os.setuid(uid)
    if closed:
        _keep_one_capability(needed)


def _keep_capabilities() -> None:
    _prctl(_PR_SET_KEEPCAPS, 1)
    # Postgres finds its programs with access(), which respects capabilities only with this bit. Without it, a closed
    # data directory still works, but closed programs do not.
    with suppress(PermissionError):
        _prctl(_PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP)


def _first_closed(needed: Sequence[str]) -> str:
    """Returns the first path that this process cannot read and search or execute; "" if there is none."""
    return next((path for path in needed if not _can_reach(path)), "")


def _can_reach(path: str) -> bool:
    wanted = os.R_OK | os.X_OK
    # Programs are found with access(), which checks the real user.
    return os.access(path, wanted, effective_ids=True) and (os.path.isdir(path) or os.access(path, wanted))  # noqa: PTH112 - Path.is_dir raises where a parent is closed


def _keep_one_capability(needed: Sequence[str]) -> None:
    if sys.platform == "linux":
        for capability in (_CAP_DAC_READ_SEARCH, _CAP_DAC_OVERRIDE):
            if _capabilities() & 1 << capability:
                _set_effective(1 << capability)
                if not _first_closed(needed):
                    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, capability)
                    return
    raise PermissionError(f"{_first_closed(needed)} is out of its reach")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _prctl(*arguments: int) -> None:
    padded = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:5]]
    _check(_libc().prctl(*padded))


def _capabilities() -> int:
    sets = (_Sets * 2)()
    _check(_libc().capget(ctypes.byref(_MessageHeader(_CAPABILITY_VERSION_3, 0)), sets))
    return int(sets[0].permitted)


def _set_effective(mask: int) -> None:
    # Both capabilities are below 32, so the second word of each set stays empty.
    sets = (_Sets * 2)(_Sets(mask, _capabilities(), mask))
    _check(_libc().capset(ctypes.byref(_MessageHeader(_CAPABILITY_VERSION_3, 0)), sets))


def _check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
