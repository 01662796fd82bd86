"""The version of the installed package."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("priors")
except PackageNotFoundError:
    VERSION = "0+unknown"
