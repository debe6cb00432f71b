//! Text in and out: the tokenizer, the chat template, and the stream of decoded text.

mod chat;
mod scheme;
mod stream;
mod tokenizer;

pub(crate) use chat::{ChatTemplate, Piece};
pub use chat::{Message, Role};
pub(crate) use stream::TextStream;
pub(crate) use tokenizer::Tokenizer;
