"""Writes architectures.json: tiny models with made-up weights, and what `transformers` computes with them.

    pip install torch transformers numpy && python3 tests/goldens/architectures.py

The weights follow from a seed, so that the file holds shapes only; the test writes the same ones
into a GGUF file. Names, shapes and the order of rows are GGUF's.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy
import torch
import transformers

WIDTH, HIDDEN, VOCAB, CONTEXT = 32, 48, 96, 128
HEADS, KV_HEADS, HEAD_LEN = 4, 2, 16
EPSILON = 1e-5
PROMPT_LEN, ANSWER_LEN = 40, 12


class Noise:
    """A linear congruential generator, the same as the test's."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def values(self, count: int) -> numpy.ndarray:
        out = numpy.empty(count, numpy.float32)
        for at in range(count):
            self.state = (self.state * 6364136223846793005 + 1) % (1 << 64)
            out[at] = numpy.float32(numpy.float32(self.state >> 33) / numpy.float32(2.0**31) - numpy.float32(0.5))
        return out


class Model:
    def __init__(self, seed: int) -> None:
        self.noise = Noise(seed)
        self.tensors: list[dict[str, Any]] = []
        self.values: dict[str, numpy.ndarray] = {}

    def add(self, name: str, *shape: int, scale: float, offset: float = 0.0) -> None:
        """Adds a tensor of `offset + scale * noise`; the shape has rows first."""
        values = self.noise.values(math.prod(shape))
        self.values[name] = (values * numpy.float32(scale) + numpy.float32(offset)).reshape(shape)
        self.tensors.append({"name": name, "dims": list(reversed(shape)), "scale": scale, "offset": offset})

    def given(self, name: str, values: list[float]) -> None:
        self.tensors.append({"name": name, "dims": [len(values)], "values": values})


def adjacent_to_halves(weight: numpy.ndarray) -> numpy.ndarray:
    """Rows of heads as `transformers` has them, where GGUF has the two of a pair side by side."""
    heads = weight.reshape(-1, HEAD_LEN // 2, 2, *weight.shape[1:])
    return heads.swapaxes(1, 2).reshape(weight.shape)


def build(row: dict[str, Any], seed: int) -> dict[str, Any]:
    model = Model(seed)
    layers, queries, keys = row["layers"], HEADS * HEAD_LEN, KV_HEADS * HEAD_LEN
    norm = {"scale": 0.4, "offset": 1.0}
    model.add("token_embd.weight", VOCAB, WIDTH, scale=1.0)
    model.add("output_norm.weight", WIDTH, **norm)
    if not row.get("tied"):
        model.add("output.weight", VOCAB, WIDTH, scale=1.0)
    for layer in range(layers):
        at = f"blk.{layer}."
        model.add(at + "attn_norm.weight", WIDTH, **norm)
        model.add(at + "ffn_norm.weight", WIDTH, **norm)
        for name, rows, cols in [
            ("attn_q", queries, WIDTH), ("attn_k", keys, WIDTH), ("attn_v", keys, WIDTH),
            ("attn_output", WIDTH, queries), ("ffn_gate", HIDDEN, WIDTH), ("ffn_up", HIDDEN, WIDTH),
            ("ffn_down", WIDTH, HIDDEN),
        ]:
            model.add(f"{at}{name}.weight", rows, cols, scale=0.8)
        if row.get("biases"):
            for name, rows in [("attn_q", queries), ("attn_k", keys), ("attn_v", keys)]:
                model.add(f"{at}{name}.bias", rows, scale=0.6)
        if row.get("head_norms"):
            model.add(at + "attn_q_norm.weight", HEAD_LEN, **norm)
            model.add(at + "attn_k_norm.weight", HEAD_LEN, **norm)
        if row.get("post_norms"):
            model.add(at + "post_attention_norm.weight", WIDTH, **norm)
            model.add(at + "post_ffw_norm.weight", WIDTH, **norm)
    if factors := row.get("rope_factors"):
        model.given("rope_freqs.weight", factors)
    return logits_of(row, model)


NAMES = {
    "attn_norm.weight": "input_layernorm.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight",
    "attn_q.weight": "self_attn.q_proj.weight",
    "attn_k.weight": "self_attn.k_proj.weight",
    "attn_v.weight": "self_attn.v_proj.weight",
    "attn_output.weight": "self_attn.o_proj.weight",
    "attn_q.bias": "self_attn.q_proj.bias",
    "attn_k.bias": "self_attn.k_proj.bias",
    "attn_v.bias": "self_attn.v_proj.bias",
    "attn_q_norm.weight": "self_attn.q_norm.weight",
    "attn_k_norm.weight": "self_attn.k_norm.weight",
    "ffn_gate.weight": "mlp.gate_proj.weight",
    "ffn_up.weight": "mlp.up_proj.weight",
    "ffn_down.weight": "mlp.down_proj.weight",
}
GEMMA_NAMES = NAMES | {
    "ffn_norm.weight": "pre_feedforward_layernorm.weight",
    "post_attention_norm.weight": "post_attention_layernorm.weight",
    "post_ffw_norm.weight": "post_feedforward_layernorm.weight",
}


def state_of(row: dict[str, Any], model: Model) -> dict[str, torch.Tensor]:
    gemma = row["architecture"] == "gemma3"
    names, state = GEMMA_NAMES if gemma else NAMES, {}
    for name, values in model.values.items():
        if name.startswith("blk."):
            _, layer, part = name.split(".", 2)
            to = f"model.layers.{layer}.{names[part]}"
        else:
            to = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight",
                  "output.weight": "lm_head.weight"}[name]
        if row["architecture"] == "llama" and ("attn_q." in name or "attn_k." in name):
            values = adjacent_to_halves(values)
        # Gemma's norms count from one; GGUF has that added already.
        if gemma and "norm" in name:
            values = values - numpy.float32(1)
        state[to] = torch.from_numpy(values.copy())
    if row.get("tied"):
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    return state


def logits_of(row: dict[str, Any], model: Model) -> dict[str, Any]:
    common = {
        "vocab_size": VOCAB, "hidden_size": WIDTH, "intermediate_size": HIDDEN, "num_hidden_layers": row["layers"],
        "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "head_dim": HEAD_LEN, "rms_norm_eps": EPSILON,
        "max_position_embeddings": CONTEXT, "tie_word_embeddings": bool(row.get("tied")), "bos_token_id": 0,
        "eos_token_id": VOCAB - 1, "pad_token_id": 0, "attn_implementation": "eager", **row["config"],
    }
    network = row["model"](row["config_of"](**common)).float().eval()
    missing, unexpected = network.load_state_dict(state_of(row, model), strict=False)
    assert not unexpected and not [name for name in missing if "rotary" not in name], (missing, unexpected)
    ids = [(at * 29 + 7) % (VOCAB - 3) for at in range(PROMPT_LEN)]
    with torch.no_grad():
        rows = network(torch.tensor([ids])).logits[0]
        answer: list[int] = []
        for _ in range(ANSWER_LEN):
            last = network(torch.tensor([ids + answer])).logits[0, -1]
            best = last.topk(2).values
            # So close a choice may fall otherwise in other arithmetic.
            assert best[0] - best[1] > 1e-3, (row["name"], answer)
            answer.append(int(last.argmax()))
    return {
        "name": row["name"],
        "architecture": row["architecture"],
        "metadata": {
            "block_count": row["layers"], "context_length": CONTEXT, "embedding_length": WIDTH,
            "feed_forward_length": HIDDEN, "attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS,
            "attention.key_length": HEAD_LEN, "attention.value_length": HEAD_LEN,
            "attention.layer_norm_rms_epsilon": EPSILON, **row["metadata"],
        },
        "seed": model_seed(row),
        "tensors": model.tensors,
        "prompt": ids,
        "logits": {str(at): [round(float(value), 5) for value in rows[at]] for at in (0, 17, PROMPT_LEN - 1)},
        "answer": answer,
    }


def llama3_factors(theta: float, factor: float, low: float, high: float, original: int) -> list[float]:
    """What Llama 3.1 divides each frequency by."""
    out = []
    for pair in range(HEAD_LEN // 2):
        wavelength = 2 * math.pi * theta ** (2 * pair / HEAD_LEN)
        if wavelength < original / high:
            out.append(1.0)
        elif wavelength > original / low:
            out.append(factor)
        else:
            smooth = (original / wavelength - low) / (high - low)
            out.append(1 / ((1 - smooth) / factor + smooth))
    return out


LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
ROWS = [
    {
        "name": "llama 3 with scaled rotations", "architecture": "llama", "layers": 2,
        "model": transformers.LlamaForCausalLM, "config_of": transformers.LlamaConfig,
        "config": {"rope_parameters": {"rope_type": "llama3", "rope_theta": 500.0, **LLAMA3}},
        "metadata": {"rope.freq_base": 500.0},
        "rope_factors": llama3_factors(500.0, 8.0, 1.0, 4.0, 64),
    },
    {
        "name": "mistral", "architecture": "llama", "layers": 2,
        "model": transformers.MistralForCausalLM, "config_of": transformers.MistralConfig,
        "config": {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}, "sliding_window": None},
        "metadata": {"rope.freq_base": 1e6},
    },
    {
        "name": "qwen 2", "architecture": "qwen2", "layers": 2, "biases": True, "tied": True,
        "model": transformers.Qwen2ForCausalLM, "config_of": transformers.Qwen2Config,
        "config": {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}, "use_sliding_window": False},
        "metadata": {"rope.freq_base": 1e6},
    },
    {
        "name": "qwen 2 with linear scaling", "architecture": "qwen2", "layers": 2, "biases": True,
        "model": transformers.Qwen2ForCausalLM, "config_of": transformers.Qwen2Config,
        "config": {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4}, "use_sliding_window": False},
        "metadata": {"rope.freq_base": 1e4, "rope.scaling.type": "linear", "rope.scaling.factor": 4.0},
    },
    {
        "name": "qwen 3", "architecture": "qwen3", "layers": 2, "head_norms": True,
        "model": transformers.Qwen3ForCausalLM, "config_of": transformers.Qwen3Config,
        "config": {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}, "use_sliding_window": False},
        "metadata": {"rope.freq_base": 1e6},
    },
    {
        "name": "gemma 3", "architecture": "gemma3", "layers": 7, "head_norms": True, "post_norms": True, "tied": True,
        "model": transformers.Gemma3ForCausalLM, "config_of": transformers.Gemma3TextConfig,
        "config": {
            "sliding_window": 9, "query_pre_attn_scalar": HEAD_LEN, "hidden_activation": "gelu_pytorch_tanh",
            "layer_types": ["full_attention" if layer == 5 else "sliding_attention" for layer in range(7)],
            "rope_parameters": {
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
                "full_attention": {"rope_type": "default", "rope_theta": 1e6},
            },
        },
        "metadata": {"rope.freq_base": 1e6, "attention.sliding_window": 9},
    },
]


def model_seed(row: dict[str, Any]) -> int:
    return 100 + ROWS.index(row)


def main() -> None:
    goldens = [build(row, model_seed(row)) for row in ROWS]
    Path(__file__).with_name("architectures.json").write_text(json.dumps(goldens) + "\n")


if __name__ == "__main__":
    main()
