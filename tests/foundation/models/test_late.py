"""Late interaction: the words of a query by their vectors, and those of a text by the codes that it keeps of these."""

from hashlib import sha256

import numpy as np
import pytest

from app.foundation.models.late import BITS, MOST_WORDS, Codes, codes_of, late_scores, means_something, project_words
from app.foundation.models.local import LocalProvider
from app.foundation.models.protocols import Matrix, embed_tokens, embed_words
from tests.fakes.providers import Lent

DIMENSION = 384
NONE: Codes = np.zeros((0, BITS // 8), np.uint8)


def directions(number: int) -> Matrix:
    return np.random.default_rng(number).standard_normal((number, DIMENSION)).astype(np.float32)


def test_codes_keep_the_cosine_of_two_words() -> None:
    word, other = directions(2)
    for share in (1.0, 0.8, 0.5, 0.0):
        near = share * word / np.linalg.norm(word) + (1 - share**2) ** 0.5 * other / np.linalg.norm(other)
        cosine = float(near @ word / np.linalg.norm(near) / np.linalg.norm(word))
        ((score,),) = late_scores(project_words(word[None, :]), [[NONE, codes_of(near[None, :])]])
        assert score == pytest.approx(max(0.0, cosine), abs=0.12), share


def test_codes_are_the_same_on_every_machine() -> None:
    codes = codes_of(np.eye(DIMENSION, dtype=np.float32))
    assert codes.shape == (DIMENSION, BITS // 8)
    assert sha256(codes.tobytes()).hexdigest()[:16] == "3f7e535111229910"


def test_each_word_of_the_query_counts_once_by_its_best_match_in_the_passage_or_the_title() -> None:
    one, two, three = (row[None, :] for row in directions(3))
    query = project_words(np.concatenate([one, two]))
    said = codes_of(np.concatenate([three, one, one]))
    ((half, whole), (no_title,)) = late_scores(
        query, [[NONE, said, codes_of(np.concatenate([two, one]))], [NONE, said]]
    )
    assert half == no_title
    assert half == pytest.approx(0.5, abs=0.15)
    assert whole == pytest.approx(1.0, abs=0.1)
    ((titled,),) = late_scores(query, [[codes_of(two), said]])
    assert titled == pytest.approx(1.0, abs=0.1)


def test_the_first_words_of_a_long_request_are_compared() -> None:
    assert len(project_words(directions(MOST_WORDS + 5))) == MOST_WORDS


def test_a_text_without_words_has_no_score_and_takes_none_from_others() -> None:
    query = project_words(directions(1))
    same = codes_of(directions(1))
    ((nothing, own), (other,)) = late_scores(query, [[NONE, NONE, same], [NONE, same]])
    assert nothing == 0.0
    assert own == other > 0.9
    assert late_scores(query, []) == []


@pytest.mark.parametrize("token", ["the", ".", "…", "`", "##", "и", "[UNK]"])
def test_marks_and_words_of_every_text_mean_nothing(token: str) -> None:
    assert not means_something(token)


@pytest.mark.meaning
async def test_the_bundled_model_gives_the_same_vectors_beside_the_codes_of_the_words(provider: LocalProvider) -> None:
    texts = ["Harbour › Fees\nThe fee is paid by the ferry.", "…"]
    vectors, tokens = await embed_tokens(provider, texts)
    assert np.allclose(vectors, await provider.embed_documents(texts), atol=1e-6)
    first, second = tokens
    assert first is not None
    assert second is not None
    assert [texts[0][:end].split()[-1].strip(".") for end in first.ends] == ["Harbour", "Fees", "fee", "paid", "ferry"]
    assert first.codes.shape == (5, BITS // 8)
    assert second.codes.shape == (0, BITS // 8)


@pytest.mark.meaning
async def test_words_of_the_same_meaning_score_higher_than_others(provider: LocalProvider) -> None:
    vector, query = await embed_words(provider, "What does the boat cost?")
    assert np.allclose(vector, await provider.embed_query("What does the boat cost?"), atol=1e-6)
    assert query is not None
    _, tokens = await embed_tokens(provider, ["The ferry's price is two euros.", "The judge was ill on Monday."])
    codes = [item.codes for item in tokens if item is not None]
    ((near, far),) = late_scores(project_words(query), [[NONE, *codes]])
    assert near > far + 0.1


@pytest.mark.meaning
async def test_a_query_without_words_and_a_provider_without_tokens_have_none(provider: LocalProvider) -> None:
    assert (await embed_words(provider, "…"))[1] is None
    lent = Lent(provider)
    assert (await embed_words(lent, "harbour"))[1] is None
    vectors, tokens = await embed_tokens(lent, ["harbour"])
    assert (vectors.shape, tokens) == ((1, DIMENSION), [None])
