"""The character tokenizer of the lab models: one token per printable ASCII character."""

from tokenizers import Regex, Tokenizer, decoders
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split
from transformers import PreTrainedTokenizerFast

PAD, EOS, UNK = "<pad>", "<eos>", "<unk>"
CHARACTERS = "\n" + "".join(chr(code) for code in range(32, 127))
VOCABULARY: dict[str, int] = {
    token: index for index, token in enumerate((PAD, EOS, UNK, *CHARACTERS))
}
PAD_ID, EOS_ID, UNK_ID = VOCABULARY[PAD], VOCABULARY[EOS], VOCABULARY[UNK]


def build_tokenizer() -> PreTrainedTokenizerFast:
    """Builds the tokenizer.

    It knows newline and all printable ASCII; any other character becomes `<unk>`. It adds
    no special tokens, pads on the left, and decodes to the exact text.

    Returns:
        An ordinary fast tokenizer, to be saved with `save_pretrained`.
    """
    core = Tokenizer(WordLevel(VOCABULARY, unk_token=UNK))
    core.pre_tokenizer = Split(Regex(r"[\s\S]"), behavior="isolated")
    core.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token=PAD,
        eos_token=EOS,
        unk_token=UNK,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
        model_max_length=256,
    )


def encode(text: str) -> list[int]:
    """Returns the token ids of a text, one per character.

    Raises:
        ValueError: If a character is neither newline nor printable ASCII.
    """
    unknown = sorted(set(text) - set(CHARACTERS))
    if unknown:
        raise ValueError(f"lab models know newline and printable ASCII only, got {unknown[0]!r}.")
    return [VOCABULARY[character] for character in text]
