"""Pure functions over text: sentences, words, names, dates, packing by tokens."""
