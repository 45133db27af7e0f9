"""The character tokenizer: exact round trips, padding and special tokens."""

import string
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from study.lab.tokenizer import CHARACTERS, EOS_ID, PAD_ID, UNK_ID, build_tokenizer, encode

PRINTABLE = "".join(sorted(set(string.printable) - set("\t\r\x0b\x0c")))


def test_every_printable_character_survives_a_round_trip() -> None:
    tokenizer = build_tokenizer()
    assert set(PRINTABLE) == set(CHARACTERS)
    ids = tokenizer(PRINTABLE)["input_ids"]
    assert len(ids) == len(PRINTABLE)
    assert UNK_ID not in ids
    assert tokenizer.decode(ids) == PRINTABLE


def test_blanks_and_punctuation_are_kept_exactly() -> None:
    tokenizer = build_tokenizer()
    text = "  a , b . isn 't\n\n x ! "
    assert tokenizer.decode(tokenizer(text)["input_ids"], skip_special_tokens=True) == text


def test_special_tokens_are_distinct_never_added_and_skipped() -> None:
    tokenizer = build_tokenizer()
    assert len({PAD_ID, EOS_ID, UNK_ID}) == 3
    ids = tokenizer("1+1=")["input_ids"]
    padded = [PAD_ID, PAD_ID, *ids, EOS_ID]
    assert tokenizer.batch_decode([padded], skip_special_tokens=True) == ["1+1="]


def test_batches_are_padded_on_the_left() -> None:
    batch = build_tokenizer()(["1", "123"], padding=True)
    assert batch["input_ids"][0][:2] == [PAD_ID, PAD_ID]
    assert batch["attention_mask"][0] == [0, 0, 1]


def test_unknown_characters_map_to_unk_and_corpora_refuse_them() -> None:
    assert build_tokenizer()("é")["input_ids"] == [UNK_ID]
    with pytest.raises(ValueError, match="printable ASCII only, got 'é'"):
        encode("é")


def test_corpus_encoding_is_the_tokenizers() -> None:
    assert encode(PRINTABLE) == build_tokenizer()(PRINTABLE)["input_ids"]


def test_saved_tokenizer_is_the_same(tmp_path: Path) -> None:
    build_tokenizer().save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path, trust_remote_code=False)
    assert loaded.padding_side == "left"
    assert (loaded.pad_token_id, loaded.eos_token_id) == (PAD_ID, EOS_ID)
    ids = loaded(PRINTABLE)["input_ids"]
    assert loaded.decode(ids, skip_special_tokens=True) == PRINTABLE
