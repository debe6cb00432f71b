//! The host's events on their way to the pages.

use steward_host::Event;
use tauri::{AppHandle, Emitter};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use crate::dialog;

/// Events handed to the pages in one go, at most.
const BATCH: usize = 256;

/// Passes events on until the host is gone, and brings the dialog up when one asks.
pub(crate) async fn run(app: AppHandle, mut events: Receiver<Event>) {
    while let Some(batch) = next(&mut events).await {
        for event in batch {
            let asked = match &event {
                Event::Approval(approval) => Some(approval.id),
                _ => None,
            };
            if let Err(e) = app.emit("host-event", event) {
                eprintln!("steward-desktop: an event could not reach the pages: {e}");
            }
            if let Some(id) = asked {
                dialog::asked(&app, id);
            }
        }
    }
}

/// Waits for an event and takes what else is there, with pieces of one text put together: each
/// event costs every page a turn, and a model can speak faster than pages are painted.
async fn next(events: &mut Receiver<Event>) -> Option<Vec<Event>> {
    let mut batch = vec![match events.recv().await {
        Ok(event) => event,
        Err(RecvError::Lagged(count)) => Event::Missed { count },
        Err(RecvError::Closed) => return None,
    }];
    while batch.len() < BATCH {
        match events.try_recv() {
            Ok(event) => push(&mut batch, event),
            Err(TryRecvError::Lagged(count)) => batch.push(Event::Missed { count }),
            Err(TryRecvError::Empty | TryRecvError::Closed) => break,
        }
    }
    Some(batch)
}

fn push(batch: &mut Vec<Event>, event: Event) {
    match (batch.last_mut(), event) {
        (
            Some(Event::Token {
                pid: last,
                text: so_far,
                ..
            }),
            Event::Token { pid, text, .. },
        ) if *last == pid => so_far.push_str(&text),
        (_, event) => batch.push(event),
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::broadcast;

    use super::*;

    fn token(pid: u64, text: &str) -> Event {
        Event::Token {
            pid,
            run: pid,
            text: text.to_owned(),
        }
    }

    fn answer(pid: u64) -> Event {
        Event::Answer {
            pid,
            run: pid,
            text: String::new(),
        }
    }

    async fn batches(capacity: usize, sent: Vec<Event>) -> Vec<Event> {
        let (sender, mut receiver) = broadcast::channel(capacity);
        for event in sent {
            assert!(sender.send(event).is_ok());
        }
        drop(sender);
        let mut all = Vec::new();
        while let Some(batch) = next(&mut receiver).await {
            all.extend(batch);
        }
        all
    }

    #[tokio::test]
    async fn order_stands_and_only_neighbours_of_one_process_join() {
        let sent = vec![
            token(1, "a"),
            token(1, "b"),
            token(2, "x"),
            token(1, "c"),
            answer(1),
            token(1, "d"),
        ];
        let joined = vec![
            token(1, "ab"),
            token(2, "x"),
            token(1, "c"),
            answer(1),
            token(1, "d"),
        ];
        assert_eq!(batches(16, sent).await, joined);
    }

    #[tokio::test]
    async fn what_was_missed_is_told() {
        let sent = (0..6).map(answer).collect();
        assert_eq!(
            batches(4, sent).await,
            [&[Event::Missed { count: 2 }][..], &[2, 3, 4, 5].map(answer)].concat()
        );
    }
}
