"""Embedding models, the chat model and the tokenizer, each behind one protocol."""
