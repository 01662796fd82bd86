"""Text as a reader takes it in, whatever its characters: look-alikes, invisible ones, full-width forms. Pure."""

import re
import unicodedata
from dataclasses import dataclass

INVISIBLE = re.compile(
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
)
TAG_START, TAG_END = 0xE0020, 0xE007E
"""Tag characters, each an ASCII character that nobody sees."""
LOOK_ALIKES = str.maketrans(
    "аеорсухіјѕԁԛԝһӏкмтвнɡАВЕКМНОРСТУХІЈЅαοενικρτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧıȷℓ",
    "aeopcyxijsdqwhlkmtbhgABEKMHOPCTYXIJSaoevikptuxABEZHIKMNOPTYXijl",
)
"""Letters of Cyrillic and Greek that look like Latin ones; read so only in words that have Latin letters too, or
nothing but look-alikes beside such words."""
FOREIGN = re.compile(r"[\u0370-\u03ff\u0400-\u052fıȷℓɡ]")
LATIN = re.compile(r"[A-Za-z]")
WORD = re.compile(r"\w+")
SPACED = re.compile(r"(?<![^\W_])(?:[^\W\d_](?:[ \t]|[.\-_*·•|/]{1,2})){4,}[^\W\d_](?![^\W_])")
"""Letters with something between each two of them."""
BETWEEN = re.compile(r"[ \t.\-_*·•|/]")


@dataclass(frozen=True, slots=True)
class Normal:
    """A text as it reads, and where each of its characters stood."""

    text: str
    places: tuple[int, ...] | None
    """Of each character in the text as it was given; None: the same."""
    hidden: int = 0
    """Invisible characters that stood between letters."""
    tags: str = ""
    """What tag characters spell."""

    def place(self, at: int, length: int) -> int:
        """Where a place of the normal text stood; its end is the given text's."""
        if self.places is None:
            return at
        return self.places[at] if at < len(self.places) else length


def normal(text: str) -> Normal:
    """The text as it reads."""
    if text.isascii():
        return Normal(text=text, places=None)
    tags = "".join(chr(ord(letter) - 0xE0000) for letter in text if TAG_START <= ord(letter) <= TAG_END)
    hidden = len(re.findall(rf"(?<=\w)(?:{INVISIBLE.pattern})+(?=\w)", text))
    letters: list[str] = []
    places: list[int] = []
    for place, letter in enumerate(text):
        if letter < "\x80":
            letters.append(letter)
            places.append(place)
        elif not INVISIBLE.match(letter):
            folded = unicodedata.normalize("NFKC", letter)
            letters.append(folded)
            places += [place] * len(folded)
    return Normal(text=_without_look_alikes("".join(letters)), places=tuple(places), hidden=hidden, tags=tags)


def _without_look_alikes(text: str) -> str:
    if not FOREIGN.search(text) or not LATIN.search(text):
        return text
    return WORD.sub(lambda match: _as_latin(match[0]), text)


def _as_latin(word: str) -> str:
    if FOREIGN.search(word) and LATIN.search(word):
        return word.translate(LOOK_ALIKES)
    return word


def joined(text: str) -> list[tuple[str, int, int]]:
    """Each run of spaced letters as one word, with where it starts and ends."""
    return [(BETWEEN.sub("", match[0]), match.start(), match.end()) for match in SPACED.finditer(text)]
