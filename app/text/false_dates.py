"""What looks like a time in a query and is none: `it may fail`, `Spring Boot`, `2024 tokens`. Pure."""

import re

NOTHING = "~"
"""Stands where a look-alike stood, so that no date is read across it."""

AFTER_A_MONTH = (
    "of|and|or|to|until|till|through|the|an?|we|she|he|they|it|i|you|did|was|were|is|are|had|when|that|which|who|what|"
    "where|with|for|from|by|on|at|in|this|last|next|year|before|after|since|about|but|how|why|there|our|my|his|her|"
    "their|its|between|during|because|while|than"
)
"""What follows the month in a sentence; after the verb `may` another verb does, and most adverbs."""
NUMBERED = (
    "steps?|phases?|stages?|parts?|versions?|nodes?|items?|workers?|shards?|options?|levels?|cases?|rules?|points?|"
    "layers?|tasks?|jobs?|runs?|tests?|lines?|pages?|rows?|columns?|replicas?|attempts?|no|nr|number|chapters?|"
    "sections?|figures?|tables?|tiers?|groups?|batch|class|type"
)
UNITS = (
    "tokens?|rows?|[kmgt]i?b|bytes?|bits?|ms|msecs?|milliseconds?|secs?|seconds?|minutes?|hours?|px|pixels?|char(?:acter)?s?|"
    "lines?|words?|rpm|qps|rps|k?hz|[mg]hz|kg|km|mm|cm|met(?:er|re)s|miles?|usd|eur|dollars?|euros?|dimensions?|"
    "iterations?|epochs?|times|percent"
)
COUNTED = (
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
AWAY = "back|off|apart|behind|short|over|down|out|under|up|into"
A_TIME_NEXT = (
    "(?:the )?(?:spring|summer|autumn|winter|[a-z]{3,9} [0-9]|[0-9]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
)

LOOK_ALIKES = tuple(
    re.compile(pattern)
    for pattern in (
        # The verb, in small letters or those of a standard: what follows is no end and nothing that follows a month.
        rf"\b(?:may|MAY)\b(?!\s*$|\s*[^\w\s'’]|\s+(?:[0-9]|(?i:{AFTER_A_MONTH})\b))",
        rf"\b(?:may|MAY)(?=\s+[0-9]{{1,2}}\s+(?!(?i:{AFTER_A_MONTH})\b|(?:19|20)[0-9]{{2}}\b)[a-z])",
        r"\b[Tt]his may\b(?!\s*(?:$|[?.!;:)]))",
        r"\bMay(?=\s+(?:be|have|not|never|also|need)\b)",
        rf"\b(?i:{NUMBERED})\s+[0-9]+\s+(?i:may|march)\b",
        # A framework, and what bends or drops.
        rf"\b(?:Spring|Fall|SPRING|FALL)(?=\s+[A-Z][A-Za-z])|\b(?i:spring)(?=[ -](?i:{SPRING_THINGS})\b)",
        rf"\b(?i:spring|fall)s?(?=[ -]?(?i:{AWAY})\b)|\b(?i:fall)(?=[ -](?i:through)\b(?! (?i:{A_TIME_NEXT})))",
        rf"\b(?i:fall)(?=[ -](?i:{FALL_THINGS})\b)",
        # How much, not when.
        rf"\b(?:{NUMBER}\s+(?:to|and|or)\s+)?{NUMBER}(?=[ -]?(?i:{UNITS})\b|[ ]?%)",
        rf"\b(?i:to|by|of)\s+(?:{NUMBER}\s+(?:to|and|or)\s+)?{NUMBER}(?=\s+(?i:{COUNTED})\b)",
        rf"\b(?i:{SIZES})\s+(?:(?:is|was|set)\s+)?(?:from\s+{NUMBER}\s+)?(?:of|to|by|from|at|until)\s+{NUMBER}(?![-/.][0-9])",
    )
)


def without_look_alikes(text: str) -> str:
    """`text`, in the case that it was written in, with a sign in place of each."""
    for pattern in LOOK_ALIKES:
        text = pattern.sub(NOTHING, text)
    return text
