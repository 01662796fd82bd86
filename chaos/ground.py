"""The machines of a run, as far as this computer can give them what the faults need."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path

from chaos import link, shim
from chaos.faults import FAULTS, Needs
from chaos.machine import Machine, Site, running

DISK_BYTES = 1 << 30
"""Size of the small disk: Postgres' own files, its log, and the points' data."""


class Ground:
    """Starts a machine when a fault needs it: with the embedded Postgres, behind a link, or of the version before."""

    def __init__(self, folder: Path, endpoint: str, faults: list[str], before: Path | None) -> None:
        self._folder, self._endpoint, self._before = folder, endpoint, before
        self._needs = {FAULTS[fault].needs for fault in faults}
        self._special = {Needs.LINK: self._linked, Needs.BEFORE: self._earlier}
        self._machines: dict[Needs, tuple[Machine, ExitStack]] = {}

    def machine_for(self, fault: str) -> Machine:
        """Returns the running machine that this fault strikes.

        Raises:
            NotRecovered: it does not start.
        """
        kind = FAULTS[fault].needs if FAULTS[fault].needs in self._special else Needs.NOTHING
        if kind not in self._machines:
            with ExitStack() as stack:
                machine = stack.enter_context(self._special.get(kind, self._local)())
                self._machines[kind] = machine, stack.pop_all()
        return self._machines[kind][0]

    def drop(self, machine: Machine) -> None:
        """Stops a machine; the next fault gets a new one with a store of its own."""
        for kind, (kept, stack) in list(self._machines.items()):
            if kept is machine:
                del self._machines[kind]
                stack.close()

    def close(self) -> None:
        """Stops the machines."""
        for machine, _ in list(self._machines.values()):
            self.drop(machine)

    @contextmanager
    def _local(self) -> Iterator[Machine]:
        place = self._new_folder()
        data = place / "data"
        data.mkdir()
        with _small_disk(data) if Needs.DISK in self._needs else nullcontext():
            preloaded = shim.Shim(place, data) if Needs.SHIM in self._needs else None
            with running(self._site(place, preloaded)) as machine:
                yield machine

    @contextmanager
    def _linked(self) -> Iterator[Machine]:
        place = self._new_folder()
        with link.linked(place / "data") as way, running(self._site(place, way=way)) as machine:
            yield machine

    @contextmanager
    def _earlier(self) -> Iterator[Machine]:
        place = self._new_folder()
        with running(self._site(place, before=self._before)) as machine:
            yield machine

    def _new_folder(self) -> Path:
        made = Path(tempfile.mkdtemp(dir=self._folder))
        made.chmod(0o755)
        return made

    def _site(
        self,
        place: Path,
        library: shim.Shim | None = None,
        way: link.Link | None = None,
        before: Path | None = None,
    ) -> Site:
        return Site(
            data=place / "data",
            log=place / "log",
            endpoint=self._endpoint,
            shim=library,
            link=way,
            before=before,
        )


@contextmanager
def _small_disk(folder: Path) -> Iterator[None]:
    _run("mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder))
    try:
        folder.chmod(0o755)
        yield
    finally:
        _run("umount", "--lazy", str(folder))


def lacking(*, before: bool) -> dict[Needs, str]:
    """Returns the needs of faults that this computer does not meet, with the reason."""
    checks = {Needs.DISK: _can_mount, Needs.SHIM: shim.can_be_built, Needs.LINK: link.can_be_made}
    checks[Needs.BEFORE] = lambda: before
    return {needs: needs.value for needs, check in checks.items() if not check()}


def _can_mount() -> bool:
    with tempfile.TemporaryDirectory() as folder, suppress(OSError, subprocess.CalledProcessError):
        with _small_disk(Path(folder)):
            pass
        return True
    return False


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
