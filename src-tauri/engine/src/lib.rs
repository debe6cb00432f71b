//! The inference engine: GGUF files, quantised kernels, the Llama family, KV cache, sampling, constrained decoding.
