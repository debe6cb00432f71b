/// The name in a folder of a tensor that GGUF calls `name`.
pub(super) fn stored_name(name: &str) -> Option<String> {
    let plain = match name {
        "token_embd.weight" => "model.embed_tokens.weight",
        "output_norm.weight" => "model.norm.weight",
        "output.weight" => "lm_head.weight",
        _ => {
            let (layer, part) = name.strip_prefix("blk.")?.split_once('.')?;
            let part = match part.strip_suffix(".weight")? {
                "attn_norm" => "input_layernorm",
                "ffn_norm" => "post_attention_layernorm",
                "attn_q" => "self_attn.q_proj",
                "attn_k" => "self_attn.k_proj",
                "attn_v" => "self_attn.v_proj",
                "attn_output" => "self_attn.o_proj",
                "ffn_gate" => "mlp.gate_proj",
                "ffn_up" => "mlp.up_proj",
                "ffn_down" => "mlp.down_proj",
                _ => return None,
            };
            return Some(format!("model.layers.{layer}.{part}.weight"));
        }
    };
    Some(plain.to_owned())
}
