"""Tokenizers for transformers' processors, made here: a dozen words, and what a model has beside words."""

from __future__ import annotations

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

WORDS = "a photograph of cat dog describe this picture what is in it and the one user".split()  # noqa: SIM905


def tokenizer(**tokens: str) -> PreTrainedTokenizerFast:
    """One that knows ``WORDS``; ``tokens`` are special ones, such as ``image_token="<image>"``."""
    numbers = {word: number for number, word in enumerate(["<pad>", "<unk>", *WORDS])}
    words = Tokenizer(models.WordLevel(numbers, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", pad_token="<pad>", extra_special_tokens=tokens)
