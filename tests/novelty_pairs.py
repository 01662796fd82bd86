"""Texts for novelty: what is stored, the same facts in other words, the same vocabulary with other facts."""

# ruff: noqa: E501 - a text is one line

PAIRS = {
    "english": [
        (
            "The market of food supplements in Russia reached 221 billion rubles in 2025, and Evalar leads with 17 %.",
            "Evalar is the leader with 17 % of Russia's food supplement market, which came to 221 billion rubles in 2025.",
            "The market of food supplements in Russia reached 305 billion rubles in 2027, and Solgar leads with 23 %.",
        ),
        (
            "Nightly backups of the Frankfurt cluster finish in 42 minutes since the operators turned compression on.",
            "With compression enabled by the operators, the Frankfurt cluster is now backed up within 42 minutes each night.",
            "Nightly backups of the Dublin cluster fail after 90 minutes since the operators turned encryption on.",
        ),
        (
            "The pump of block 3 leaks in winter because its oil is too thick for the cold valves.",
            "In cold weather block 3's pump is leaky: the oil gets too viscous for valves that are cold.",
            "The pump of block 7 stalls in summer because its filter is too small for the dusty air.",
        ),
        (
            "Dr. Keller measured a throughput of 1,250 requests per second on eight cores after the cache was rewritten.",
            "After rewriting the cache, Dr. Keller saw 1,250 requests served per second by eight cores.",
            "Dr. Novak measured a throughput of 380 requests per second on two cores after the index was removed.",
        ),
        (
            "The city council of Lyon approved 14 kilometres of new tram lines in March, at a cost of 310 million euros.",
            "In March Lyon's councillors agreed to build 14 kilometres of tramway for 310 million euros.",
            "The city council of Nantes rejected 6 kilometres of new tram lines in October, at a cost of 95 million euros.",
        ),
        (
            "Vaccinated hens laid 12 % more eggs than the control group over 20 weeks at the Ghent farm.",
            "Over 20 weeks at the farm in Ghent, egg production of hens that got the vaccine was 12 % above the control group's.",
            "Vaccinated hens laid 5 % fewer eggs than the control group over 8 weeks at the Turin farm.",
        ),
        (
            "The scout verifies producers in the state register before the director accepts the list.",
            "Before the director takes the list, producers are checked by the scout against the government register.",
            "The scout skips producers outside the trade register after the judge rejects the list.",
        ),
    ],
    "russian": [
        (
            "Рынок пищевых добавок в России достиг 221 млрд рублей в 2025 году, лидирует Эвалар с долей 17 %.",
            "Лидером российского рынка пищевых добавок, объём которого в 2025 году составил 221 млрд рублей, остаётся Эвалар с 17 %.",
            "Рынок пищевых добавок в России достиг 305 млрд рублей в 2027 году, лидирует Солгар с долей 23 %.",
        ),
        (
            "Ночное копирование кластера во Франкфурте занимает 42 минуты с тех пор, как операторы включили сжатие.",
            "После того как операторы включили сжатие, кластер во Франкфурте копируется каждую ночь за 42 минуты.",
            "Ночное копирование кластера в Дублине обрывается через 90 минут с тех пор, как операторы включили шифрование.",
        ),
        (
            "Насос третьего блока течёт зимой, потому что масло слишком густое для холодных клапанов.",
            "Зимой у насоса третьего блока появляется течь: для холодных клапанов масло чересчур густое.",
            "Насос седьмого блока глохнет летом, потому что фильтр слишком мал для пыльного воздуха.",
        ),
        (
            "Доктор Келлер измерил 1250 запросов в секунду на восьми ядрах после переписывания кеша.",
            "Когда кеш переписали, доктор Келлер получил на восьми ядрах 1250 запросов в секунду.",
            "Доктор Новак измерил 380 запросов в секунду на двух ядрах после удаления индекса.",
        ),
        (
            "Городской совет Лиона одобрил в марте 14 километров новых трамвайных линий стоимостью 310 млн евро.",
            "В марте советники Лиона согласились построить 14 километров трамвайных путей за 310 млн евро.",
            "Городской совет Нанта отклонил в октябре 6 километров новых трамвайных линий стоимостью 95 млн евро.",
        ),
        (
            "Вакцинированные куры на ферме в Генте за 20 недель снесли на 12 % больше яиц, чем контрольная группа.",
            "За 20 недель на ферме в Генте привитые куры дали на 12 % больше яиц по сравнению с контрольной группой.",
            "Вакцинированные куры на ферме в Турине за 8 недель снесли на 5 % меньше яиц, чем контрольная группа.",
        ),
        (
            "Скаут проверяет производителей по государственному реестру, прежде чем директор примет список.",
            "Прежде чем список будет принят директором, скаут сверяет производителей с госреестром.",
            "Скаут пропускает производителей вне торгового реестра, после того как судья отклонит список.",
        ),
    ],
}
UNRELATED = {
    "english": [
        "Container ships cross the Panama canal in nine hours.",
        "Medieval monks copied manuscripts by candle light in cold rooms.",
        "The violin sonata ends with a quiet movement in G minor.",
        "A pastry chef folds butter into dough eleven times.",
        "Glaciers carve valleys with the rocks that they carry.",
        "The referee added four minutes after a long injury.",
    ],
    "russian": [
        "Контейнеровозы проходят Панамский канал за девять часов.",
        "Средневековые монахи переписывали рукописи при свечах в холодных кельях.",
        "Соната для скрипки завершается тихой частью соль минор.",
        "Кондитер складывает тесто со сливочным маслом одиннадцать раз.",
        "Ледники вытачивают долины камнями, которые несут с собой.",
        "Рефери добавил четыре минуты после долгой травмы.",
    ],
}
