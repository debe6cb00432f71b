//! LLM cores behind the kernel's LlmCore trait.
