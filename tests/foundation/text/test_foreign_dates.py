"""Tests of the times that Russian, German, Spanish and Chinese queries name."""

from datetime import UTC, datetime

import pytest

from app.foundation.text.dates import periods
from app.foundation.text.foreign_dates import in_english

NOW = datetime(2026, 11, 18, 15, 0, tzinfo=UTC)
SAID = {
    "yesterday": ["что сломалось вчера?", "was ist gestern ausgefallen?", "¿qué falló ayer?", "昨天出了什么问题"],
    "the day before yesterday": [
        "кто звонил позавчера",
        "wer hat vorgestern angerufen",
        "quién llamó anteayer",
        "前天谁打了电话",
    ],
    "today": ["что сегодня решили", "was wurde heute entschieden", "qué se decidió hoy", "今天决定了什么"],
    "last week": [
        "о чём говорили на прошлой неделе",
        "was war letzte Woche",
        "qué pasó la semana pasada",
        "上周发生了什么",
    ],
    "last month": ["ошибки в прошлом месяце", "Fehler im letzten Monat", "errores del mes pasado", "上个月的错误"],
    "last year": ["отчёты за прошлый год", "Berichte vom letzten Jahr", "informes del año pasado", "去年的报告"],
    "this year": ["в этом году", "dieses Jahr", "este año", "今年"],
    "three days ago": ["три дня назад", "vor drei Tagen", "hace tres días", "三天前"],
    "2 weeks ago": ["2 недели назад", "vor 2 Wochen", "hace 2 semanas", "2周前"],
    "a month ago": ["месяц назад", "vor einem Monat", "hace un mes", "一个月前"],
    "last 5 days": ["за последние 5 дней", "in den letzten 5 Tagen", "en los últimos 5 días", "最近5天"],
    "last friday": ["в прошлую пятницу", "letzten Freitag", "el viernes pasado", "上周五"],
    "last summer": ["прошлым летом", "letzten Sommer", "el verano pasado", "去年夏天"],
    "on 5 may 2024": ["5 мая 2024 года", "am 5. Mai 2024", "el 5 de mayo de 2024", "2024年5月5日"],
    "in may 2024": ["в мае 2024", "im Mai 2024", "en mayo de 2024", "2024年5月"],
    "in may": ["что было в мае", "was war im Mai", "qué pasó en mayo", "五月份发生了什么"],
    "5 may": ["что было 5 мая", "was war am 5. Mai", "qué pasó el 5 de mayo", "5月5日"],
    "in 2023": ["отчёты 2023 года", "Berichte im Jahr 2023", "informes en 2023", "2023年的报告"],
    "since may 2024": ["с мая 2024 года", "seit Mai 2024", "desde mayo de 2024", "2024年5月以来"],
    "before 2023": ["до 2023 года", "vor 2023", "antes de 2023", "2023年以前"],
    "summer 2023": ["летом 2023", "Sommer 2023", "verano de 2023", "2023年夏天"],
    "2021 to 2023": ["с 2021 по 2023 год", "von 2021 bis 2023", "de 2021 a 2023", "2021年至2023年"],
    "on 2025-12-24": ["24.12.2025", "am 24.12.2025", "2025-12-24", "2025年12月24日"],
    "in december": ["в декабре", "im Dezember", "en diciembre", "12月"],
    "a few weeks ago": ["несколько недель назад", "vor ein paar Wochen", "hace unas semanas", "几周前"],
}
"""Queries in Russian, German, Spanish and Chinese, by the time that they name."""
FALSE = (
    "до 2000 символов", "в 2000 случаях", "в этот день", "лето", "маета", "сегодняшний", "пятница",
    "nach 2000 Rechnungen", "bis 2000 Zeichen", "an diesem Tag", "Sommerzeit", "Maier", "im Maßstab",
    "hasta 2000 mensajes", "en 2000 casos", "hoy en día", "mayonesa", "este día", "el martes",
    "Which bug came with version 1.2.2023?", "release 3.11.2021", "Which junior wrote this in 2000 words?",
    "переменные этой среды", "настроить эту среду", "目前天气如何", "提前天数", "一月一次",
    "前端", "五年前端经验", "本周期", "1990年代", "每周一", "三个月的保修", "上天",
)  # fmt: skip


@pytest.mark.parametrize("english", SAID)
def test_each_language_says_it(english: str) -> None:
    expected = periods(english, NOW)
    assert expected
    assert {query: periods(query, NOW) for query in SAID[english]} == dict.fromkeys(SAID[english], expected)


@pytest.mark.parametrize("query", FALSE)
def test_what_names_no_time_is_read_as_none(query: str) -> None:
    assert periods(query, NOW) == []


def test_an_english_text_stays_as_it_is() -> None:
    text = "In May 2024 the Mayo clinic may, after 3 days, march on; es este im vor."
    assert in_english(text) == text


def test_a_letter_that_only_looks_like_another_one_is_no_fault() -> None:
    """Without case, ſ is an s."""
    assert periods("im Auguſt 2024", NOW) == periods("in August 2024", NOW)
