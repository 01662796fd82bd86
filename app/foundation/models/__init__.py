"""Embedding models, the re-ranker, the chat model and the tokenizer, each behind one protocol."""
