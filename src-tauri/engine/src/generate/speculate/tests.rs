#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

/// A cost at which a step of two rows takes `ratio` times as long as one of one.
fn cost(ratio: f64) -> impl Fn(usize) -> f64 {
    move |rows| 1.0 + (ratio - 1.0) * (rows as f64 - 1.0)
}

/// Tokens by steps, as a batch of one would make them, and the steps that it took.
fn run(speculator: &mut Speculator, text: &[u32], cost: impl Fn(usize) -> f64) -> (usize, usize) {
    let (mut at, mut steps, mut rows) = (0, 0, 0);
    while at < text.len() {
        let guesses = speculator.guess(MAX_GUESSES, 1, &cost);
        steps += 1;
        rows += 1 + guesses.len();
        let right = guesses.iter().zip(&text[at..]).take_while(|(a, b)| a == b);
        let known = (right.count() + 1).min(text.len() - at);
        text[at..at + known]
            .iter()
            .for_each(|&id| speculator.push(id));
        at += known;
    }
    (steps, rows)
}

/// Numbers that do not repeat.
fn noise(len: u32, salt: u32) -> Vec<u32> {
    (0..len)
        .map(|index| (index * 7919 + salt * 104_729) % 49_000)
        .collect()
}

#[test]
fn a_text_that_repeats_takes_fewer_steps() {
    let text = noise(400, 1);
    let mut speculator = Speculator::default();
    speculator.learn(&text);
    let (steps, rows) = run(&mut speculator, &text, cost(1.1));
    assert!(steps < 60 && rows < 500, "{steps} {rows}");
}

#[test]
fn a_text_that_never_repeats_takes_no_wider_steps() {
    let mut speculator = Speculator::default();
    let (steps, rows) = run(&mut speculator, &noise(2000, 2), cost(1.1));
    assert_eq!((steps, rows), (2000, 2000));
}

#[test]
fn guesses_that_are_wrong_are_given_up_and_taken_up_again() {
    // The same three tokens, and something new each time.
    let mut wrong = Vec::new();
    for id in noise(500, 3) {
        wrong.extend([1, 2, 3, 50_000 + id]);
    }
    let mut speculator = Speculator::default();
    let cost = cost(1.5);
    let (first, rest) = wrong.split_at(400);
    run(&mut speculator, first, &cost);
    let (steps, rows) = run(&mut speculator, rest, &cost);
    assert!(rows - steps < steps / 20, "{rows} rows in {steps} steps");
    // From here on it repeats itself.
    let again = noise(60, 4).repeat(10);
    let (steps, _) = run(&mut speculator, &again, &cost);
    assert!(steps < 350, "{steps} of {}", again.len());
}

#[test]
fn where_rows_cost_as_much_as_steps_nothing_is_guessed() {
    let text = noise(100, 5);
    let mut speculator = Speculator::default();
    speculator.learn(&text);
    assert_eq!(run(&mut speculator, &text, cost(2.0)), (100, 100));
}

#[test]
fn a_full_batch_guesses_less() {
    let text = noise(100, 6);
    let mut speculator = Speculator::default();
    speculator.learn(&text);
    text[..20].iter().for_each(|&id| speculator.push(id));
    let alone = speculator.guess(MAX_GUESSES, 1, cost(1.2));
    assert_eq!(alone, text[20..20 + alone.len()]);
    assert!(alone.len() > 4, "{alone:?}");
    assert_eq!(speculator.guess(3, 1, cost(1.2)), text[20..23]);
    // The rows of many others already share what a step costs by itself.
    assert!(speculator.guess(MAX_GUESSES, 64, cost(1.2)).len() <= alone.len());
}
