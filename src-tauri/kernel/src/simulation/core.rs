//! A language model whose answers are written beforehand.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use crate::error::{Code, SysError};
use crate::provider::{
    Cancel, ChatReply, ChatRequest, CoreInfo, Finish, LlmCore, Message, TokenSink,
};

/// Gives its answers one after another, a token a word; the same answers in every history.
#[derive(Clone)]
pub struct ScriptedCore {
    answers: Arc<Mutex<VecDeque<String>>>,
}

impl ScriptedCore {
    /// A core that will say these, in order, and then refuse.
    pub fn new<S: Into<String>>(answers: impl IntoIterator<Item = S>) -> Self {
        Self {
            answers: Arc::new(Mutex::new(answers.into_iter().map(Into::into).collect())),
        }
    }

    /// Answers not given yet.
    pub fn left(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<String>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl LlmCore for ScriptedCore {
    fn info(&self) -> CoreInfo {
        CoreInfo {
            model: "scripted".to_owned(),
            context: 8192,
            local: true,
        }
    }

    async fn chat(
        &self,
        request: ChatRequest,
        sink: TokenSink,
        cancel: Cancel,
    ) -> Result<ChatReply, SysError> {
        let Some(answer) = self.lock().pop_front() else {
            return Err(
                SysError::new(Code::Unavailable, "the script has no further answer")
                    .hint("write one for each question"),
            );
        };
        let most = usize::try_from(request.max_tokens).unwrap_or(usize::MAX);
        let words = answer.split_inclusive(' ');
        let text: String = words.clone().take(most).collect();
        let finish = match (cancel.is_cancelled(), words.count() > most) {
            (true, _) => Finish::Cancelled,
            (_, true) => Finish::Length,
            _ => Finish::Stop,
        };
        sink(&text);
        let count = |text: &str| u32::try_from(text.split_whitespace().count()).unwrap_or(u32::MAX);
        Ok(ChatReply {
            finish,
            prompt_tokens: request.messages.iter().map(|m| count(&m.content)).sum(),
            cached_tokens: 0,
            tokens: count(&text),
            text,
        })
    }

    async fn score(
        &self,
        _messages: Vec<Message>,
        _prefix: String,
        choices: Vec<String>,
        _cancel: Cancel,
    ) -> Result<Vec<f64>, SysError> {
        // Shorter is likelier: an order that depends on nothing else.
        Ok(choices.iter().map(|c| -(c.len() as f64)).collect())
    }

    async fn count_tokens(&self, text: String) -> Result<u32, SysError> {
        Ok(u32::try_from(text.split_whitespace().count()).unwrap_or(u32::MAX))
    }
}
