"""A toy pipeline of four agents that runs ten rounds on a service: `python examples/pipeline.py [URL] [WORKSPACE]`.

Director, Scout, Researcher and Judge are plain functions. No model thinks for them: each acts on the text that it is
given, and does what it always does where that text says nothing. Take a workspace that is empty; each round prints
what each agent was given, what came of it, and the Judge's score.
"""

import re
import sys
from dataclasses import dataclass, field
from uuid import UUID

from priors_client import Client
from priors_client.models import CueInput, FiltersInput

REGISTER = {
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
"""The truth. A scout may look up three producers a round."""
LOOK_UPS = 3
RUMOUR = "Solgar: licence lost years ago, writes somebody in a forum on food supplements."
CLAIM = re.compile(r"\b([A-Z][a-z]+): licence (valid|lost)")
SEGMENTS = [
    "vitamins",
    "minerals",
    "probiotics",
    "omega-3",
    "collagen",
    "magnesium",
    "teas",
    "proteins",
    "iron",
    "zinc",
]
SOURCES = ("producers' statements", "retail audits")
"""The sources of a market figure; a director takes the first, unless it is told otherwise."""


@dataclass
class Round:
    """What the agents of one round know and make of it."""

    run_id: str
    task: str
    source: str = SOURCES[0]
    claims: dict[str, str] = field(default_factory=dict)
    report: str = ""
    read: dict[UUID, str] = field(default_factory=dict)
    """The memories that the scout was given."""
    given: list[str] = field(default_factory=list)
    """What each agent was given, in a line."""


def before(priors: Client, this: Round, agent: str, plan: str) -> str:
    """Returns what was learnt about a plan."""
    # These agents would rather hear a lesson too many: a plan of two acts has two of them.
    answer = priors.activate(plan=plan, agent=agent, run_id=this.run_id, budget_tokens=250, min_score=0.2)
    lessons = [f"“{cue.lesson}”" for cue in answer.cues]
    this.given.append(f"{agent:<10} {', '.join(lessons) or 'nothing'}")
    return answer.markdown


def state_of(name: str) -> str:
    """Returns the state of a producer's licence by the register: valid or lost; empty if there is no such producer."""
    found = CLAIM.search(f"{name}: {REGISTER.get(name, '')}")
    return found[2] if found else ""


def director(priors: Client, this: Round) -> None:
    """Chooses where the market figure comes from."""
    lessons = before(priors, this, "director", "Choose the source of the market figure.")
    this.source = next((source for source in SOURCES[1:] if source in lessons), SOURCES[0])


def scout(priors: Client, this: Round) -> None:
    """Believes what it reads of producers, looks three others up, and remembers these."""
    section = priors.history(
        f"Which producers of food supplements have a licence, valid or lost? {this.task}",
        agent="scout",
        run_id=this.run_id,
        k=10,
        budget_tokens=900,
        filters=FiltersInput(kinds=["note"]),
    )
    this.read = {hit.id: hit.body for hit in section.hits}
    for name, state in CLAIM.findall(section.markdown):
        this.claims.setdefault(name, state)
    this.given.append(f"{'scout':<10} {len(this.read)} notes in {section.tokens} tokens: {', '.join(this.claims)}")
    unknown = [name for name in REGISTER if name not in this.claims]
    for name in unknown[:LOOK_UPS]:
        note = f"{name}: {REGISTER[name]}."
        this.claims[name] = state_of(name)
        priors.store("note", body=note, tags=["producer"], run_id=this.run_id, wait="embedded")


def researcher(priors: Client, this: Round) -> None:
    """Writes the report."""
    lessons = before(priors, this, "researcher", "Write how large the market is, and add up the sums of money in it.")
    figure = "The market has 221 billion"
    figure += " rubles" if "currency" in lessons else ""
    figure += " in 2025" if "year" in lessons else ""
    producers = "; ".join(f"{name}: licence {state}" for name, state in this.claims.items())
    this.report = f"{figure}, by {this.source}. Producers: {producers}."


LESSONS = {
    "by retail audits": ("choosing the source of a market figure", "Take market figures from retail audits."),
    "in 2025": ("writing how large a market is", "A size without its year is worthless: say of which year it is."),
    "rubles": ("adding up sums of money", "Sums need a currency; our readers count in rubles."),
}
"""What a report must say, and what the judge teaches where it does not."""


def judge(priors: Client, this: Round) -> float:
    """Scores the report, rates what the scout was given, and teaches one lesson: that of the first fault."""
    faults = [wanted for wanted in LESSONS if wanted not in this.report]
    right = sum(state_of(name) == state for name, state in this.claims.items())
    wrong = [name for name, state in this.claims.items() if state_of(name) != state]
    score = round(max(0.0, 2 * (len(LESSONS) - len(faults)) + 4 * right / len(REGISTER) - len(wrong)), 1)
    for memory_id, body in this.read.items():
        found = CLAIM.search(body)
        if found:
            is_right = state_of(found[1]) == found[2]
            priors.rate(memory_id, 1 if is_right else -1, comment="checked in the state register", run_id=this.run_id)
    if faults:
        trigger, lesson = LESSONS[faults[0]]
        priors.store_cues(CueInput(kind="correction", trigger=trigger, lesson=lesson, evidence=faults[0]))
    issues = [*(f"the report does not say {fault!r}" for fault in faults), *(f"{name} is wrong" for name in wrong)]
    priors.complete_run(
        this.run_id, task=this.task, output=this.report, final_score=score, issues=issues, remember=False
    )
    this.given.append(f"{'judge':<10} score {score}: {'; '.join(issues) or 'no issue'}")
    return score


def run(priors: Client, number: int) -> float:
    """Runs one round and prints it; returns its score."""
    segment = SEGMENTS[number % len(SEGMENTS)]
    this = Round(run_id=f"pipeline-{number + 1}", task=f"Report on the market of food supplements: {segment}")
    priors.record_run(this.run_id, agent="director")
    director(priors, this)
    scout(priors, this)
    researcher(priors, this)
    score = judge(priors, this)
    print(f"\n## Round {number + 1}: {segment}")
    print("\n".join(this.given))
    return score


def play(priors: Client, rounds: int = len(SEGMENTS)) -> list[float]:
    """Plays the rounds, after somebody has stored a rumour; returns their scores."""
    priors.store("note", body=RUMOUR, tags=["producer"], wait="embedded")
    scores = [run(priors, number) for number in range(rounds)]
    print(f"\nscores: {', '.join(map(str, scores))}")
    return scores


def main() -> None:
    """Plays ten rounds in the workspace of the command line."""
    url, workspace, *_ = *sys.argv[1:], *("http://127.0.0.1:8000", "pipeline")[len(sys.argv) - 1 :]
    with Client(url, workspace=workspace) as priors:
        play(priors)


if __name__ == "__main__":
    main()
