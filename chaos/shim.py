"""The library that is preloaded into the processes of a machine, and the faults that it makes on demand."""

import os
import shutil
import struct
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("shim.c")


class Shim:
    """The library's build, and the file by which its copies in all processes are told what to do."""

    def __init__(self, folder: Path, disk: Path) -> None:
        self._library, self._state = folder / "shim.so", folder / "shim.state"
        self._device = disk.stat().st_dev
        subprocess.run([_compiler(), "-shared", "-fPIC", "-O1", "-o", self._library, SOURCE, "-ldl"], check=True)
        self.set()

    @property
    def environment(self) -> dict[str, str]:
        """The variables that preload the library."""
        return {"LD_PRELOAD": str(self._library), "CHAOS_STATE": str(self._state)}

    def set(self, *, seconds: int = 0, read_only: bool = False) -> None:
        """Moves the clock of every process by these seconds, and tells if the disk takes changes."""
        written = os.open(self._state, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            os.pwrite(written, struct.pack("qqq", seconds, read_only, self._device), 0)
        finally:
            os.close(written)


def can_be_built() -> bool:
    """Tells if there is a compiler."""
    return bool(_compiler())


def _compiler() -> str:
    return shutil.which("cc") or shutil.which("gcc") or ""
