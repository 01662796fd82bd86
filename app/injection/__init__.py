"""Instructions to the reader, in text that is to be material. Pure: text in, findings out."""

from app.injection.finding import BLOCK, FLAG, Finding
from app.injection.scan import blocking, scan

__all__ = ["BLOCK", "FLAG", "Finding", "blocking", "scan"]
