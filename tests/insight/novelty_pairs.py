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

KEPT_APART = {
    "english": [
        (
            "Agents that plan before they act finish fewer tasks but make fewer mistakes.",
            "Planning ahead makes agents err less, though they complete less work.",
            "Agents that act before they plan finish more tasks but make worse reports.",
        ),
        (
            "The judge gave the literature review 8.5 points because its citations could be checked.",
            "Because one could verify its citations, the literature review got 8.5 points from the judge.",
            "The judge gave the market analysis 3.0 points because its sources could not be checked.",
        ),
        (
            "Rust rewrites of the parser halved memory use at Mozilla within two releases.",
            "Within two releases, Mozilla cut the memory consumption of its parser by half by rewriting it in Rust.",
            "Go rewrites of the scheduler doubled memory use at Dropbox within three releases.",
        ),
        (
            "Salmon farms in Norway lost 16 % of their fish in 2023, mostly to gill disease.",
            "In 2023 Norwegian salmon farming saw mortality of 16 %, largely caused by diseases of the gills.",
            "Salmon farms in Chile lost 9 % of their fish in 2019, mostly to sea lice.",
        ),
        (
            "Water boils at a lower temperature in the mountains because air pressure falls with height.",
            "Air pressure decreases with altitude, which is why water in the mountains boils at lower temperatures.",
            "Water freezes at a lower temperature in the sea because salt content rises with depth.",
        ),
    ],
    "russian": [
        (
            "Агенты, которые планируют заранее, выполняют меньше задач, но реже ошибаются.",
            "Предварительное планирование снижает число ошибок агентов, хотя и задач они выполняют меньше.",
            "Агенты, которые действуют без плана, выполняют больше задач, но пишут плохие отчёты.",
        ),
        (
            "Судья поставил обзору литературы 8,5 балла, потому что его ссылки можно проверить.",
            "Обзор литературы получил от судьи 8,5 балла: ссылки в нём поддаются проверке.",
            "Судья поставил анализу рынка 3,0 балла, потому что его источники проверить нельзя.",
        ),
        (
            "Лососёвые фермы Норвегии потеряли в 2023 году 16 % рыбы, в основном из-за болезни жабр.",
            "В Норвегии в 2023 году на лососёвых фермах погибло 16 % рыбы, главным образом от заболеваний жабр.",
            "Лососёвые фермы Чили потеряли в 2019 году 9 % рыбы, в основном из-за морских вшей.",
        ),
        (
            "В горах вода кипит при более низкой температуре, потому что давление воздуха падает с высотой.",
            "С высотой давление воздуха уменьшается, поэтому в горах температура кипения воды ниже.",
            "В море вода замерзает при более низкой температуре, потому что солёность растёт с глубиной.",
        ),
        (
            "Переход на новый кодек сократил объём архива вдвое, но экспорт стал медленнее.",
            "Новый кодек уменьшил архив в два раза ценой более медленного экспорта.",
            "Переход на новый сервер увеличил стоимость аренды вдвое, но поиск стал быстрее.",
        ),
    ],
}
"""Pairs on which nothing was set: half of them have neither a number nor a name."""
