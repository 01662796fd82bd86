"""From an outcome to its compressed form: by a language model where one answers, by extraction otherwise."""

from collections.abc import Sequence
from dataclasses import replace

import structlog

from app.embeddings.provider import EmbeddingProvider, Matrix, Vector
from app.errors import EmbeddingUnavailable, LLMUnavailable
from app.llm.chat import Chat
from app.memories.wording import WORD
from app.observations.extractive import extracted, extracted_title, most_central
from app.observations.observation import FEWEST_FACTS, LLM, MOST_FACTS, Compressed, Outcome, in_one_line, issue_facts
from app.observations.prompt import compression_prompt
from app.observations.reply import parsed_reply
from app.observations.sentences import Sentence, sentences

EMBEDDED_SENTENCES = 400
"""Sentences that are embedded at most, 4 to 8 s of work; of a longer output those closest to its words' centre."""

logger = structlog.get_logger()


async def compressed(outcome: Outcome, provider: EmbeddingProvider, chat: Chat | None, *, evaluator: str) -> Compressed:
    """The outcome's title, narrative and facts, the evaluator's issues among them.

    It always succeeds: what is down, slow or wrong is left out, and `fallback` says why.
    """
    made, reason = await _by_model(outcome, chat) if chat is not None else (None, "")
    if made is None or not made.title or len(made.facts) < FEWEST_FACTS:
        made = _filled(made, await _extracted(outcome, provider), reason)
    return replace(made, facts=(*made.facts, *issue_facts(outcome.issues, evaluator)))


async def _by_model(outcome: Outcome, chat: Chat) -> tuple[Compressed | None, str]:
    """What the model made of it, or why that is not taken."""
    prompt = compression_prompt(outcome)
    try:
        reply = parsed_reply(await chat.complete(prompt))
    except LLMUnavailable as error:
        logger.warning("compressing without the language model", reason=str(error))
        return None, str(error)
    if not WORD.search(reply.narrative):
        reason = "the language model's reply has no narrative"
        logger.warning("compressing without the language model", reason=reason)
        return None, reason
    made = Compressed(
        title=reply.title,
        narrative=reply.narrative,
        facts=reply.facts,
        compressor=LLM,
        model=chat.model,
        prompt=prompt,
    )
    return made, ""


async def _extracted(outcome: Outcome, provider: EmbeddingProvider) -> Compressed:
    chosen = most_central(sentences(outcome.output), EMBEDDED_SENTENCES)
    vectors, task = await _vectors(outcome, chosen, provider)
    made = extracted(outcome, chosen, vectors, task)
    if made.narrative:
        return made
    return replace(made, narrative=in_one_line(outcome.task) or extracted_title(outcome))


async def _vectors(
    outcome: Outcome, chosen: Sequence[Sentence], provider: EmbeddingProvider
) -> tuple[Matrix | None, Vector | None]:
    if not provider.enabled or not chosen:
        return None, None
    try:
        matrix = await provider.embed_documents([outcome.task or outcome.output[:200], *(item.text for item in chosen)])
    except EmbeddingUnavailable as error:
        logger.warning("compressing by words alone", reason=str(error))
        return None, None
    return matrix[1:], matrix[0]


def _filled(made: Compressed | None, extract: Compressed, reason: str) -> Compressed:
    """What the model left out, from the extract; the whole extract where it gave nothing."""
    if made is None:
        return replace(extract, fallback=reason)
    facts = made.facts if len(made.facts) >= FEWEST_FACTS else tuple(dict.fromkeys((*made.facts, *extract.facts)))
    return replace(made, title=made.title or extract.title, facts=facts[:MOST_FACTS])
