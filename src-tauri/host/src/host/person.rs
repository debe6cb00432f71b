//! Commands about what a person is asked.

use steward_kernel::{Taken, human};

use super::{Host, Surface};
use crate::surface::{Answer, Decide, Problem, Reply};
use crate::view;

impl Host {
    pub(super) async fn approvals(&self) -> Result<Reply, Problem> {
        let approvals = self.kernel.approvals().await?;
        Ok(Reply::Approvals {
            approvals: approvals.into_iter().map(view::approval).collect(),
        })
    }

    pub(super) async fn decide(&self, decide: Decide, by: Surface) -> Result<Reply, Problem> {
        if by == Surface::Window {
            return Err(
                Problem::new("denied", "an approval is answered where it is shown")
                    .hint("open the approval and answer it there"),
            );
        }
        let Decide { id, answer, digest } = decide;
        let answer = match answer {
            Answer::Yes => human::Answer::Yes,
            Answer::No => human::Answer::No,
            Answer::Always { scope } => human::Answer::Always { scope },
        };
        let asked = self.kernel.approvals().await?;
        let run = asked.iter().find(|asked| asked.id == id).map(|a| a.run);
        let taken = self.kernel.decide(id, answer, &digest, by.name()).await?;
        self.go_on(taken, run).await
    }

    pub(super) async fn questions(&self) -> Result<Reply, Problem> {
        let questions = self.kernel.questions().await?;
        Ok(Reply::Questions {
            questions: questions.into_iter().map(view::question).collect(),
        })
    }

    pub(super) async fn answer_question(
        &self,
        id: u64,
        text: &str,
        by: Surface,
    ) -> Result<Reply, Problem> {
        let asked = self.kernel.questions().await?;
        let run = asked.iter().find(|asked| asked.id == id).map(|q| q.run);
        let taken = self.kernel.answer(id, text, by.name()).await?;
        self.go_on(taken, run).await
    }

    /// A run that waited since an earlier start goes on once it is answered.
    async fn go_on(&self, taken: Taken, run: Option<u64>) -> Result<Reply, Problem> {
        if taken == Taken::Counted
            && let Some(run) = run
        {
            self.kernel.resume(Some(run)).await?;
        }
        Ok(decided(taken))
    }
}

fn decided(taken: Taken) -> Reply {
    match taken {
        Taken::Counted => Reply::Decided {
            counted: true,
            note: None,
        },
        Taken::TooLate(why) => Reply::Decided {
            counted: false,
            note: Some(why),
        },
    }
}
