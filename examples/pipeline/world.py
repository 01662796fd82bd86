"""The world of the toy pipeline: the truth about a market, what an agent may choose, and what its work costs.

All of it is invented. A choice that nobody advises on is drawn by a seed, so that two runs of the pipeline differ only
by what their agents have read.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

CASE = "Food supplements in Russia"
TASK = f"Report on the market: {CASE}"
VERSIONS = 10
LOOK_UPS = 2
"""Producers that the scout may look up in the register in a version."""
REGISTER: Mapping[str, str] = {
    "Evalar": "licence valid; its plant in Biysk makes herbal teas and capsules",
    "Otcpharm": "licence valid; sells vitamin drops to pharmacies from Moscow",
    "Pharmaplant": "licence lost in March, after an inspection found mould in two batches",
    "Solgar": "licence valid; imports amino acids through Saint Petersburg",
    "Biotika": "licence valid; ferments lactobacilli in Kazan",
    "Novavit": "licence lost, because the owner went bankrupt",
    "Doppelherz": "licence valid; packs German fish oil near Kaluga",
    "Ekofit": "licence lost; its laboratory was never accredited",
    "Nutrilon": "licence valid; mixes protein powder for gyms in Perm",
    "Medlux": "licence lost over a label that promised cures",
    "Siberika": "licence valid; presses cedar nuts by Lake Baikal",
    "Alina": "licence valid; a family firm with magnesium tablets in Ufa",
}
"""The truth about the producers."""
RUMOURS = (
    "Solgar: licence lost years ago, writes somebody in a forum on food supplements.",
    "Novavit: licence valid, says its own web shop.",
)
"""What somebody has noted before the first version; both are wrong."""
OTHER_WORK = (
    "The report on cold brew coffee in Norway took its market size from customs statistics, and was praised for it.",
    "For the Norwegian coffee report, amounts in kroner and a table by harbour were what the customer wanted.",
)
"""Notes of another project, which are no advice for this one."""


@dataclass(frozen=True)
class Choice:
    """Something that an agent decides in each version."""

    name: str
    agent: str
    plan: str
    """What the agent is about to do, in its own words."""
    options: tuple[str, ...]
    """What it may choose; texts name an option by these words."""
    right: str
    severity: str
    points: float
    """Points of the report where the choice is right; those of all choices and of the producers are 10."""
    fault: str
    """What the judge says of a wrong choice; `{}` is the option."""
    remedy: str
    """What it says should be done instead."""


CHOICES = (
    Choice(
        name="source",
        agent="director",
        plan="Choose the source of the market size for the report on food supplements.",
        options=("producers' statements", "a news article", "retail audits", "customs statistics"),
        right="retail audits",
        severity="P0",
        points=2.5,
        fault="The market size rests on {}, which nobody has checked.",
        remedy="Take the market size from retail audits.",
    ),
    Choice(
        name="currency",
        agent="researcher",
        plan="Write the sums of money in the report on food supplements.",
        options=("no currency", "euros", "rubles"),
        right="rubles",
        severity="P1",
        points=1.5,
        fault="The sums of money are given in {}, and our readers cannot compare them.",
        remedy="Give sums of money in rubles.",
    ),
    Choice(
        name="year",
        agent="researcher",
        plan="Write how large the market of food supplements is, and of which time the figure is.",
        options=("no year", "the year of the figure"),
        right="the year of the figure",
        severity="P1",
        points=1.5,
        fault="The market size is stated with {}, so nobody can tell how old it is.",
        remedy="State the year of the figure beside each market size.",
    ),
    Choice(
        name="method",
        agent="researcher",
        plan="Write the section on how the market of food supplements was estimated.",
        options=("one sentence", "no method section", "a table of assumptions"),
        right="a table of assumptions",
        severity="P2",
        points=1.5,
        fault="The estimate is explained by {}, which cannot be checked.",
        remedy="Explain the estimate by a table of assumptions.",
    ),
)

DRAFT_TOKENS, LOOK_UP_TOKENS, REWORK_TOKENS = 4_000, 1_200, 1_500
"""Tokens of a draft, of a look-up and of each issue that is worked in once the judge has named it.

Assumed, since no model writes here: the demonstration counts what is done, and real tokens only of what Priors returns.
"""


def drawn(choice: Choice, version: int, seed: int) -> str:
    """Returns the option that an agent takes in a version where nothing advises it."""
    digest = hashlib.blake2b(f"{seed}:{choice.name}:{version}".encode(), digest_size=4).digest()
    return choice.options[int.from_bytes(digest) % len(choice.options)]


def state_of(producer: str) -> str:
    """Returns the state of a producer's licence by the register: valid or lost."""
    return "valid" if REGISTER[producer].startswith("licence valid") else "lost"
