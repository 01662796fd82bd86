"""Removes words that look like dates and are none: `it may fail`, `Spring Boot`, `2024 tokens`. Pure."""

import re

PLACEHOLDER = "~"
"""Replaces a false date, so that no date is read across its place."""

AFTER_A_MONTH = (
    "of|and|or|to|until|till|through|the|an?|we|she|he|they|it|i|you|did|was|were|is|are|had|when|that|which|who|what|"
    "where|with|for|from|by|on|at|in|this|last|next|year|before|after|since|about|but|how|why|there|our|my|his|her|"
    "their|its|between|during|because|while|than"
)
"""Words that follow the month May. After the verb `may` comes another verb or an adverb."""
NUMBERED_THINGS = (
    "steps?|phases?|stages?|parts?|versions?|nodes?|items?|workers?|shards?|options?|levels?|cases?|rules?|points?|"
    "layers?|tasks?|jobs?|runs?|tests?|lines?|pages?|rows?|columns?|replicas?|attempts?|no|nr|number|chapters?|"
    "sections?|figures?|tables?|tiers?|groups?|batch|class|type"
)
UNITS = (
    "tokens?|rows?|[kmgt]i?b|bytes?|bits?|ms|msecs?|milliseconds?|secs?|seconds?|minutes?|hours?|px|pixels?|char(?:acter)?s?|"
    "lines?|words?|rpm|qps|rps|k?hz|[mg]hz|kg|km|mm|cm|met(?:er|re)s|miles?|usd|eur|dollars?|euros?|dimensions?|"
    "iterations?|epochs?|times|percent"
)
COUNTED_THINGS = (
    "users?|customers?|requests?|records?|files?|items?|steps?|tests?|memories|documents?|pages?|points?|samples?|entries|"
    "messages?|workers?|threads?|calls?|queries|retries|connections?|jobs|runs|nodes?|features?|columns?|chunks?|events?|"
    "results?|vectors?|questions|keys?|values?|elements?|objects?|images?|units?|people|errors?|matches|candidates?|hits|"
    "examples?|cells?|clients?|sessions?|tasks|texts|titles|links|edges|vertices|parameters?|slots?|partitions?|batches"
)
SIZES = (
    "limits?|budget|size|timeout|port|length|width|height|window|maximum|minimum|max|min|count|threshold|capacity|"
    "dimensions?|resolution|buffer|ttl|total|seed|batch|quota|depth|offset"
)
NUMBER = r"(?:19|20)[0-9][0-9]\b"
SPRING_THINGS = (
    "boot|data|security|cloud|batch|framework|mvc|webflux|beans?|context|config|integration|cleaning|constants?|loaded|"
    "force|tension|water|rolls?|onions?"
)
FALL_THINGS = "detection|damage|risks?|prevention|asleep|victim|foul|flat|prey|guards?"
PARTICLES = "back|off|apart|behind|short|over|down|out|under|up|into"
SEASON_OR_DATE = (
    "(?:the )?(?:spring|summer|autumn|winter|[a-z]{3,9} [0-9]|[0-9]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
)

FALSE_DATES = tuple(
    re.compile(pattern)
    for pattern in (
        # The verb "may", or "MAY" in a standard: neither an end nor a word that follows a month comes after it.
        rf"\b(?:may|MAY)\b(?!\s*$|\s*[^\w\s'’]|\s+(?:[0-9]|(?i:{AFTER_A_MONTH})\b))",
        rf"\b(?:may|MAY)(?=\s+[0-9]{{1,2}}\s+(?!(?i:{AFTER_A_MONTH})\b|(?:19|20)[0-9]{{2}}\b)[a-z])",
        r"\b[Tt]his may\b(?!\s*(?:$|[?.!;:)]))",
        r"\bMay(?=\s+(?:be|have|not|never|also|need)\b)",
        rf"\b(?i:{NUMBERED_THINGS})\s+[0-9]+\s+(?i:may|march)\b",
        # The framework Spring, mechanical springs, and the verb "fall".
        rf"\b(?:Spring|Fall|SPRING|FALL)(?=\s+[A-Z][A-Za-z])|\b(?i:spring)(?=[ -](?i:{SPRING_THINGS})\b)",
        rf"\b(?i:spring|fall)s?(?=[ -]?(?i:{PARTICLES})\b)|\b(?i:fall)(?=[ -](?i:through)\b(?! (?i:{SEASON_OR_DATE})))",
        rf"\b(?i:fall)(?=[ -](?i:{FALL_THINGS})\b)",
        # Quantities.
        rf"\b(?:{NUMBER}\s+(?:to|and|or)\s+)?{NUMBER}(?=[ -]?(?i:{UNITS})\b|[ ]?%)",
        rf"\b(?i:to|by|of)\s+(?:{NUMBER}\s+(?:to|and|or)\s+)?{NUMBER}(?=\s+(?i:{COUNTED_THINGS})\b)",
        rf"\b(?i:{SIZES})\s+(?:(?:is|was|set)\s+)?(?:from\s+{NUMBER}\s+)?(?:of|to|by|from|at|until)\s+{NUMBER}(?![-/.][0-9])",
    )
)


def without_false_dates(text: str) -> str:
    """Replaces each false date by PLACEHOLDER. The text must have its original case."""
    for pattern in FALSE_DATES:
        text = pattern.sub(PLACEHOLDER, text)
    return text
