"""A hundred memories with a question each, in five languages: our own texts, and our own translations of them."""
