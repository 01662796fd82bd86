"""The text of a memory that is embedded."""


def embedded_text(title: str, body: str) -> str:
    """Title above body: what the vector arm compares."""
    return f"{title}\n{body}" if title else body
