//! `config.json` and its neighbours, as transformers writes them.

use std::f64::consts::PI;

use serde_json::Value;

use crate::gguf::GgufError;
use crate::model::{
    Activation, Config, MAX_CONTEXT, MAX_LAYERS, MAX_WIDTH, Rope, check_head_len, check_shared,
    sized,
};

/// Tokens that end an answer, at most.
const MAX_ENDS: usize = 64;

/// Refuses what this engine would run wrongly.
pub(super) fn refuse_other_models(config: &Value) -> Result<(), GgufError> {
    let model = text(config, "model_type")?.unwrap_or("nothing");
    if model != "llama" {
        let problem = format!(
            "unknown architecture `{}`: this engine runs `llama`",
            model.escape_debug()
        );
        return Err(GgufError::invalid("`model_type`", problem));
    }
    if let Some(activation) = text(config, "hidden_act")?
        && activation != "silu"
    {
        let problem = format!(
            "`{}` is not supported: it must be `silu`",
            activation.escape_debug()
        );
        return Err(GgufError::invalid("`hidden_act`", problem));
    }
    for key in ["attention_bias", "mlp_bias"] {
        if flag(config, key)? {
            return Err(GgufError::invalid(
                format!("`{key}`"),
                "biases are not supported; use a model without them",
            ));
        }
    }
    if found(config, "quantization_config").is_some() {
        return Err(GgufError::invalid(
            "`quantization_config`",
            "quantised folders are not supported; use one with F32, F16 or BF16 weights, or a \
             GGUF file",
        ));
    }
    Ok(())
}

pub(super) fn is_tied(config: &Value) -> Result<bool, GgufError> {
    flag(config, "tie_word_embeddings")
}

pub(super) fn read(config: &Value) -> Result<Config, GgufError> {
    let size = |key: &str, limit| match whole(config, key)? {
        Some(found) => sized(key, found, limit),
        None => Err(GgufError::Missing {
            field: format!("`{key}`"),
        }),
    };
    let width = size("hidden_size", MAX_WIDTH)?;
    let heads = size("num_attention_heads", MAX_WIDTH)?;
    let kv_heads = match whole(config, "num_key_value_heads")? {
        None => heads,
        Some(found) => sized("num_key_value_heads", found, MAX_WIDTH)?,
    };
    check_shared(heads, kv_heads, "num_key_value_heads")?;
    let head_len = match whole(config, "head_dim")? {
        Some(found) => found as usize,
        None if width.is_multiple_of(heads) => width / heads,
        None => {
            let problem = format!("a width of {width} cannot be split into `{heads}` heads");
            return Err(GgufError::invalid("`num_attention_heads`", problem));
        }
    };
    check_head_len(head_len, "head_dim")?;
    if let Some(share) = number(config, "partial_rotary_factor")?
        && share != 1.0
    {
        let problem = format!("`{share}` is not supported: it must be 1");
        return Err(GgufError::invalid("`partial_rotary_factor`", problem));
    }
    let nested = found(config, "rope_parameters").unwrap_or(&Value::Null);
    let rope_base = match number(nested, "rope_theta")? {
        Some(base) => Some(base),
        None => number(config, "rope_theta")?,
    };
    Ok(Config {
        layers: size("num_hidden_layers", MAX_LAYERS)?,
        context: size("max_position_embeddings", MAX_CONTEXT)?,
        width,
        hidden: size("intermediate_size", MAX_WIDTH)?,
        heads,
        kv_heads,
        head_len,
        rotated: head_len,
        rope: Rope {
            base: positive("rope_theta", rope_base.unwrap_or(10_000.0))? as f32,
            factor: 1.0,
            halves: true,
        },
        epsilon: positive(
            "rms_norm_eps",
            number(config, "rms_norm_eps")?.unwrap_or(1e-6),
        )? as f32,
        vocab: size("vocab_size", MAX_CONTEXT)?,
        query_scale: 1.0 / (head_len as f32).sqrt(),
        embedding_scale: None,
        activation: Activation::Silu,
        window: None,
    })
}

/// What the rotation of each pair is divided by, where the context was made longer than the model
/// was first trained for.
pub(super) fn rope_factors(value: &Value, config: &Config) -> Result<Option<Vec<f32>>, GgufError> {
    let (key, scaling) = match found(value, "rope_scaling") {
        Some(scaling) => ("rope_scaling", scaling),
        None => match found(value, "rope_parameters") {
            Some(scaling) => ("rope_parameters", scaling),
            None => return Ok(None),
        },
    };
    let kind = match text(scaling, "rope_type")? {
        Some(kind) => kind,
        None => text(scaling, "type")?.unwrap_or("default"),
    };
    let need = |name: &str| match number(scaling, name)? {
        Some(found) => positive(&format!("{key}.{name}"), found),
        None => Err(GgufError::Missing {
            field: format!("`{key}.{name}`"),
        }),
    };
    let pairs = config.rotated / 2;
    match kind {
        "default" => Ok(None),
        "linear" => Ok(Some(vec![need("factor")? as f32; pairs])),
        "llama3" => {
            let factor = need("factor")?;
            let (low, high) = (need("low_freq_factor")?, need("high_freq_factor")?);
            let context = need("original_max_position_embeddings")?;
            if low >= high {
                let problem = format!("`{low}` is not below the high factor, `{high}`");
                return Err(GgufError::invalid(
                    format!("`{key}.low_freq_factor`"),
                    problem,
                ));
            }
            let of_pair = |pair: usize| {
                let exponent = 2.0 * pair as f64 / config.rotated as f64;
                let length = 2.0 * PI * f64::from(config.rope.base).powf(exponent);
                // Turns that a pair makes in the first context: many stay, few are slowed down.
                let turns = context / length;
                let kept = ((turns - low) / (high - low)).clamp(0.0, 1.0);
                (1.0 / (kept + (1.0 - kept) / factor)) as f32
            };
            Ok(Some((0..pairs).map(of_pair).collect()))
        }
        other => {
            let problem = format!(
                "`{}` is not supported: this engine knows `default`, `linear` and `llama3`",
                other.escape_debug()
            );
            Err(GgufError::invalid(format!("`{key}.rope_type`"), problem))
        }
    }
}

/// The tokens that end an answer.
pub(super) fn end_tokens(config: &Value, file: &str) -> Result<Vec<u32>, GgufError> {
    let wrong = || {
        GgufError::invalid(
            format!("`eos_token_id` in `{file}`"),
            "neither a token's number nor a list of them",
        )
    };
    let one = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    match found(config, "eos_token_id") {
        None => Ok(Vec::new()),
        Some(Value::Array(ids)) if ids.len() <= MAX_ENDS => {
            ids.iter().map(|id| one(id).ok_or_else(wrong)).collect()
        }
        Some(id) => Ok(vec![one(id).ok_or_else(wrong)?]),
    }
}

/// The chat template in a tokenizer's configuration: a text, or several with names.
pub(super) fn template(config: &Value) -> Result<Option<String>, GgufError> {
    match found(config, "chat_template") {
        None => Ok(None),
        Some(Value::String(source)) => Ok(Some(source.clone())),
        Some(Value::Array(named)) => {
            let default = named
                .iter()
                .find(|named| named.get("name").and_then(Value::as_str) == Some("default"));
            let source = default.and_then(|named| named.get("template")?.as_str());
            Ok(source.map(str::to_owned))
        }
        Some(_) => Err(GgufError::invalid(
            "`chat_template`",
            "neither a text nor a list of named texts",
        )),
    }
}

/// A value that is there and not null.
fn found<'a>(config: &'a Value, key: &str) -> Option<&'a Value> {
    config.get(key).filter(|value| !value.is_null())
}

fn text<'a>(config: &'a Value, key: &str) -> Result<Option<&'a str>, GgufError> {
    match found(config, key) {
        None => Ok(None),
        Some(Value::String(found)) => Ok(Some(found)),
        Some(_) => Err(GgufError::invalid(format!("`{key}`"), "not a string")),
    }
}

fn flag(config: &Value, key: &str) -> Result<bool, GgufError> {
    match found(config, key) {
        None => Ok(false),
        Some(Value::Bool(found)) => Ok(*found),
        Some(_) => Err(GgufError::invalid(format!("`{key}`"), "not a boolean")),
    }
}

fn whole(config: &Value, key: &str) -> Result<Option<u32>, GgufError> {
    let Some(value) = found(config, key) else {
        return Ok(None);
    };
    match value.as_u64().and_then(|found| u32::try_from(found).ok()) {
        Some(found) => Ok(Some(found)),
        None => Err(GgufError::invalid(
            format!("`{key}`"),
            "not a whole number below 2^32",
        )),
    }
}

fn number(config: &Value, key: &str) -> Result<Option<f64>, GgufError> {
    match found(config, key) {
        None => Ok(None),
        Some(value) => match value.as_f64() {
            Some(found) => Ok(Some(found)),
            None => Err(GgufError::invalid(format!("`{key}`"), "not a number")),
        },
    }
}

/// A number that stays finite and above zero as f32 too.
fn positive(key: &str, found: f64) -> Result<f64, GgufError> {
    if found as f32 > 0.0 && (found as f32).is_finite() {
        return Ok(found);
    }
    let problem = format!("`{found}` is not a finite number above zero");
    Err(GgufError::invalid(format!("`{key}`"), problem))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn llama_3(scaling: &Value) -> (Value, Config) {
        let value = json!({
            "hidden_size": 2048,
            "intermediate_size": 8192,
            "num_hidden_layers": 16,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "max_position_embeddings": 131_072,
            "rope_theta": 500_000.0,
            "rope_scaling": scaling,
            "vocab_size": 128_256,
        });
        let config = read(&value).unwrap();
        (value, config)
    }

    #[test]
    fn long_contexts_slow_down_what_turns_seldom() {
        let (value, config) = llama_3(&json!({
            "factor": 32.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
            "rope_type": "llama3",
        }));
        let factors = rope_factors(&value, &config).unwrap().unwrap();
        assert_eq!(factors.len(), 32);
        for (pair, found) in factors.iter().enumerate() {
            // As the model's authors publish it, by wave lengths.
            let frequency = 500_000f64.powf(-(pair as f64) / 32.0);
            let length = 2.0 * PI / frequency;
            let expected = if length < 8192.0 / 4.0 {
                1.0
            } else if length > 8192.0 {
                32.0
            } else {
                let smooth = (8192.0 / length - 1.0) / 3.0;
                1.0 / ((1.0 - smooth) / 32.0 + smooth)
            };
            assert!(
                (f64::from(*found) - expected).abs() < 1e-4 * expected,
                "{pair}"
            );
        }
        assert_eq!((factors[0], factors[31]), (1.0, 32.0));
        assert!(factors.iter().any(|factor| (1.5..31.0).contains(factor)));
    }

    #[test]
    fn a_base_may_stand_with_the_scaling() {
        let (mut value, _) = llama_3(&Value::Null);
        let parameters = json!({ "rope_type": "default", "rope_theta": 10.0 });
        value["rope_parameters"] = parameters;
        let config = read(&value).unwrap();
        assert_eq!(config.rope.base, 10.0);
        assert_eq!(rope_factors(&value, &config).unwrap(), None);
        let (value, config) = llama_3(&json!({ "type": "linear", "factor": 4 }));
        assert_eq!(rope_factors(&value, &config).unwrap(), Some(vec![4.0; 32]));
    }
}
