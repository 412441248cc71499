"""Make a random Qwen3 with a tokenizer of its own: ``python make_model.py FOLDER``.

0.1 million parameters, random but the same on every machine; the tokenizer is trained on made-up
words, its chat template knows ``enable_thinking``. Needs torch, transformers and tokenizers; runs
in the environment of vLLM.
"""

import random
import sys
from collections.abc import Iterator

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

WINDOW = 2048
VOCABULARY = 512
END_OF_TEXT, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
# Generation goes on with an empty thought where thinking is off, as in Qwen3's own template.
TEMPLATE = (
    "{%- for message in messages %}"
    "{{- '<|im_start|>' ~ message.role ~ '\n' ~ message.content ~ '<|im_end|>\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}"
    "{%- if enable_thinking is defined and not enable_thinking %}"
    "{{- '<think>\n\n</think>\n\n' }}{%- endif %}{%- endif %}"
)


def sentences() -> Iterator[str]:
    """Yield lines of made-up words, the same ones in every call."""
    dice = random.Random(1)
    syllables = [a + b for a in "bdfklmnprstvz" for b in "aeiou"]
    words = ["".join(dice.choices(syllables, k=dice.randint(1, 4))) for _ in range(400)]
    for _ in range(2000):
        yield " ".join(dice.choices(words, k=12)).capitalize() + "."


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END_OF_TEXT, START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sentences(), trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        pad_token=END_OF_TEXT,
        additional_special_tokens=[START],
        model_max_length=WINDOW,
    )
    marks = ("<think>", "</think>")
    fast.add_tokens([AddedToken(mark, special=False, normalized=False) for mark in marks])
    fast.chat_template = TEMPLATE
    return fast


def make_model(tokenizer: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    """Return a model with random weights."""
    torch.manual_seed(0)
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=32,
            max_position_embeddings=WINDOW,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    ).float()


if __name__ == "__main__":
    made = make_tokenizer()
    made.save_pretrained(sys.argv[1])
    make_model(made).save_pretrained(sys.argv[1])
