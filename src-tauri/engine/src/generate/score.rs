use super::logprob::logprob;
use super::{Prompt, Score};
use crate::cancel::Cancel;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::kernels::Isa;
use crate::model::Rows;

impl Engine {
    /// How likely each of `choices` is to follow the prompt. The prompt is computed once.
    ///
    /// A choice is tokenised by itself, as the model would write it from there on. Longer choices
    /// are less likely by nature: compare choices of unlike length by `logprob / tokens`.
    ///
    /// # Errors
    /// [`EngineError::Cancelled`] after a cancel; otherwise as for [`Engine::generate`].
    pub fn score(
        &self,
        prompt: &Prompt,
        choices: &[String],
        cancel: &Cancel,
    ) -> Result<Vec<Score>, EngineError> {
        let prompt = self.prompt_tokens(prompt)?;
        let choices = choices
            .iter()
            .map(|choice| self.encode(choice, false))
            .collect::<Result<Vec<_>, _>>()?;
        let longest = prompt.len() + choices.iter().map(Vec::len).max().unwrap_or(0);
        if longest > self.info().context {
            let context = self.info().context;
            return Err(EngineError::ContextOverflow {
                prompt: longest,
                context,
            });
        }
        let isa = Isa::detect();
        let mut sequence = self.recall(&prompt);
        let rest = prompt[sequence.tokens.len()..].to_vec();
        let mut first = Vec::new();
        let outcome = self.extend(&mut sequence, &rest, Rows::Last, cancel, |_, logits| {
            if logits.rows() > 0 {
                first = logits.row(0)?.to_vec();
            }
            Ok(())
        });
        self.keep(sequence.clone());
        outcome?;
        let mut scores = Vec::with_capacity(choices.len());
        for choice in choices {
            let mut total = choice
                .first()
                .map_or(0.0, |&id| f64::from(logprob(isa, &first, id)));
            if let [known @ .., _] = &choice[..] {
                let mut branch = sequence.clone();
                self.extend(&mut branch, known, Rows::All, cancel, |start, logits| {
                    for index in 0..logits.rows() {
                        let next = choice[start + index + 1];
                        total += f64::from(logprob(isa, logits.row(index)?, next));
                    }
                    Ok(())
                })?;
            }
            scores.push(Score {
                logprob: total,
                tokens: choice.len(),
            });
        }
        Ok(scores)
    }
}
