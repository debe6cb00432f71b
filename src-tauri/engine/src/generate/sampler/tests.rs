#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const NO_TEXT: Text<'static> = Text {
    prompt: &[],
    answer: &[],
};

fn at(temperature: f32) -> Sampling {
    Sampling {
        temperature,
        ..Sampling::default()
    }
}

fn draw(sampling: Sampling, logits: &[f32], count: usize) -> Vec<u32> {
    let mut sampler = Sampler::new(sampling);
    (0..count)
        .map(|_| sampler.choose(logits, None, NO_TEXT).unwrap())
        .collect()
}

fn set(ids: &[u32], len: usize) -> SimpleVob {
    let mut set = SimpleVob::alloc(len);
    ids.iter().for_each(|id| set.allow_token(*id));
    set
}

#[test]
fn greedy_takes_the_first_of_the_largest() {
    for (logits, expected) in [
        (&[1.0, 3.0, 3.0][..], 1),
        (&[-5.0], 0),
        (&[f32::NEG_INFINITY, 2.0], 1),
    ] {
        let mut sampler = Sampler::new(Sampling::default());
        assert_eq!(sampler.choose(logits, None, NO_TEXT).unwrap(), expected);
    }
}

#[test]
fn logits_that_cannot_be_used_are_refused() {
    for (logits, said) in [
        (&[1.0, f32::NAN, 2.0][..], "token `1` is `NaN`"),
        (&[1.0, f32::INFINITY], "token `1` is `inf`"),
        (&[f32::NEG_INFINITY; 3], "no token"),
        (&[], "no token"),
    ] {
        for temperature in [0.0, 1.0] {
            let error = Sampler::new(at(temperature)).choose(logits, None, NO_TEXT);
            let error = error.unwrap_err();
            assert!(matches!(error, EngineError::Logits(_)), "{error}");
            assert!(error.to_string().contains(said), "{error}");
        }
    }
}

#[test]
fn extreme_logits_and_parameters_give_a_token() {
    let steep = Sampling {
        temperature: f32::MIN_POSITIVE,
        top_k: 1,
        top_p: f32::MIN_POSITIVE,
        min_p: 1.0,
        typical_p: f32::MIN_POSITIVE,
        repetition_penalty: 10.0,
        ..Sampling::default()
    };
    let odd = Sampling {
        temperature: 100.0,
        repetition_penalty: 0.1,
        frequency_penalty: -2.0,
        ..Sampling::default()
    };
    let text = Text {
        prompt: &[0],
        answer: &[1, 1],
    };
    for logits in [
        [f32::MAX, f32::MIN],
        [f32::MIN, f32::MIN],
        [f32::MAX, f32::MAX],
        [f32::NEG_INFINITY, f32::MIN],
        [0.0, -0.0],
    ] {
        for sampling in [&steep, &odd] {
            let id = Sampler::new(sampling.clone()).choose(&logits, None, text);
            assert!(logits[id.unwrap() as usize].is_finite());
        }
    }
}

#[test]
fn only_allowed_tokens_are_chosen() {
    let allowed = set(&[2], 3);
    for temperature in [0.0, 2.0] {
        let mut sampler = Sampler::new(at(temperature));
        let mut choose = |logits| sampler.choose(logits, Some(&allowed), NO_TEXT);
        assert_eq!(choose(&[9.0, 8.0, -1.0]).unwrap(), 2);
        assert!(choose(&[9.0, 8.0]).is_err());
    }
}

#[test]
fn a_flat_distribution_needs_more_than_the_first_looked_at() {
    let sampling = Sampling {
        top_p: 0.9,
        seed: 1,
        ..at(1.0)
    };
    let drawn = draw(sampling, &[0.0; 2000], 5000);
    assert!(drawn.iter().all(|&id| id < 1801) && drawn.iter().any(|&id| id > 1500));
}

#[test]
fn the_window_follows_the_answer() {
    let mut sampler = Sampler::new(Sampling {
        presence_penalty: 2.0,
        penalty_window: Some(2),
        ..Sampling::default()
    });
    let mut answer = Vec::new();
    for expected in [0, 1, 2, 0, 1, 2] {
        let text = Text {
            prompt: &[2, 2, 2],
            answer: &answer,
        };
        let id = sampler.choose(&[3.0, 2.5, 2.0], None, text).unwrap();
        assert_eq!(id, expected, "{answer:?}");
        answer.push(id);
    }
}

#[test]
fn the_same_seed_gives_the_same_tokens_on_any_machine() {
    let sampling = Sampling {
        top_k: 200,
        top_p: 0.95,
        min_p: 0.01,
        typical_p: 0.9,
        seed: 3,
        ..at(0.8)
    };
    let logits: Vec<f32> = (0..500u32).map(|id| (id * 37 % 101) as f32 / 8.0).collect();
    for isa in Isa::all() {
        let mut sampler = Sampler::new(sampling.clone());
        sampler.isa = isa;
        let mut chosen = [0; 12];
        chosen.fill_with(|| sampler.choose(&logits, None, NO_TEXT).unwrap());
        assert_eq!(chosen, PINNED, "{isa:?}");
    }
    assert_ne!(
        draw(
            Sampling {
                seed: 4,
                ..sampling
            },
            &logits,
            12
        ),
        PINNED
    );
}

/// As it was first drawn: another value means that stored seeds give other answers.
const PINNED: [u32; 12] = [150, 464, 161, 483, 311, 262, 352, 333, 393, 333, 464, 464];

/// Parameters of all kinds at once, and a text that they look back at.
#[derive(Debug, Clone)]
struct Case {
    sampling: Sampling,
    logits: Vec<f32>,
    allowed: Option<Vec<u32>>,
    prompt: Vec<u32>,
    answer: Vec<u32>,
}

impl Case {
    fn text(&self) -> Text<'_> {
        Text {
            prompt: &self.prompt,
            answer: &self.answer,
        }
    }

    /// The tokens that can be drawn, and how likely each is.
    fn distribution(&self) -> BTreeMap<u32, f64> {
        let allowed = self.allowed.as_ref().map(|ids| set(ids, self.logits.len()));
        let mut sampler = Sampler::new(self.sampling.clone());
        let mut candidates = Candidates::of(&self.logits, allowed.as_ref()).unwrap();
        sampler.adjust(&mut candidates, self.text());
        let highest = peak(&candidates.scores);
        let (weights, kept) = sampler.weighted(&mut candidates.scores, highest);
        let kept = kept.unwrap_or_else(|| (0..weights.len() as u32).collect());
        let of = |place: &u32| f64::from(weights[*place as usize]);
        let total: f64 = kept.iter().map(of).sum();
        kept.iter()
            .map(|place| (candidates.id(*place as usize), of(place) / total))
            .collect()
    }

    /// The same by sorting everything in f64; none where rounding decides.
    fn expected(&self) -> Option<BTreeMap<u32, f64>> {
        let mut rows: Vec<Row> = (0..)
            .zip(&self.logits)
            .filter(|(id, _)| self.allowed.as_ref().is_none_or(|ids| ids.contains(id)))
            .map(|(id, logit)| Row {
                id,
                score: self.adjusted(id, f64::from(*logit)) / f64::from(self.sampling.temperature),
                p: 0.0,
            })
            .collect();
        normalise(&mut rows);
        rows.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
        let count = self.sampling.top_k as usize;
        if count > 0 && count < rows.len() {
            if is_close(rows[count - 1].score, rows[count].score) {
                return None;
            }
            rows.truncate(count);
        }
        normalise(&mut rows);
        reach(&mut rows, self.sampling.top_p)?;
        let likeliest = rows[0].p;
        let floor = f64::from(self.sampling.min_p);
        let share = |row: &Row| row.p / likeliest;
        let is_tight = |row: &Row| share(row) < 1.0 && (share(row) - floor).abs() < 1e-5;
        if floor > 0.0 && rows.iter().any(is_tight) {
            return None;
        }
        rows.retain(|row| row.p / likeliest >= floor);
        normalise(&mut rows);
        let entropy: f64 = rows.iter().map(|row| -row.p * row.p.ln()).sum();
        let odd = |row: &Row| (-row.p.ln() - entropy).abs();
        if self.sampling.typical_p < 1.0 {
            rows.sort_by(|a, b| odd(a).total_cmp(&odd(b)).then(a.id.cmp(&b.id)));
            let unlike = |pair: &[Row]| pair[0].score != pair[1].score;
            if rows
                .windows(2)
                .any(|pair| unlike(pair) && (odd(&pair[0]) - odd(&pair[1])).abs() < 1e-4)
            {
                return None;
            }
            reach(&mut rows, self.sampling.typical_p)?;
            normalise(&mut rows);
        }
        Some(rows.iter().map(|row| (row.id, row.p)).collect())
    }

    fn adjusted(&self, id: u32, logit: f64) -> f64 {
        let s = &self.sampling;
        let biased = logit + f64::from(s.logit_bias.get(&id).copied().unwrap_or(0.0));
        let all = [&self.prompt[..], &self.answer].concat();
        let from = s
            .penalty_window
            .map_or(0, |window| all.len().saturating_sub(window as usize));
        let said = |from: usize| all[from..].iter().filter(|&&other| other == id).count() as f64;
        let mut adjusted = biased;
        if said(from) > 0.0 {
            let factor = f64::from(s.repetition_penalty);
            adjusted = if biased > 0.0 {
                biased / factor
            } else {
                biased * factor
            };
        }
        let in_answer = said(from.max(self.prompt.len()));
        let presence = if in_answer > 0.0 {
            f64::from(s.presence_penalty)
        } else {
            0.0
        };
        adjusted - in_answer * f64::from(s.frequency_penalty) - presence
    }
}

#[derive(Debug)]
struct Row {
    id: u32,
    score: f64,
    p: f64,
}

fn normalise(rows: &mut [Row]) {
    let peak = rows
        .iter()
        .map(|row| row.score)
        .fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = rows.iter().map(|row| (row.score - peak).exp()).sum();
    rows.iter_mut()
        .for_each(|row| row.p = (row.score - peak).exp() / total);
}

/// Cuts the rows off where they reach the share.
fn reach(rows: &mut Vec<Row>, share: f32) -> Option<()> {
    if share >= 1.0 {
        return Some(());
    }
    let mut reached = 0.0;
    for at in 0..rows.len() {
        reached += rows[at].p;
        if (reached - f64::from(share)).abs() < 1e-5 {
            return None;
        }
        if reached > f64::from(share) {
            rows.truncate(at + 1);
            return Some(());
        }
    }
    Some(())
}

/// Not the same, and not far enough apart for f32 to tell surely.
fn is_close(a: f64, b: f64) -> bool {
    a != b && (a - b).abs() < 1e-4
}

fn sampling() -> impl Strategy<Value = Sampling> {
    let filters = (
        prop_oneof![Just(0u32), 1u32..30, Just(5000)],
        prop_oneof![Just(1.0f32), 0.05f32..1.0],
        prop_oneof![Just(0.0f32), 0.0f32..0.5, Just(1.0)],
        prop_oneof![Just(1.0f32), 0.05f32..1.0],
    );
    let penalties = (
        prop_oneof![Just(1.0f32), 0.5f32..2.0],
        prop_oneof![Just(0.0f32), -1.0f32..1.0],
        prop_oneof![Just(0.0f32), -1.0f32..1.0],
        proptest::option::of(1u32..10),
    );
    let bias = proptest::collection::btree_map(0u32..40, -5.0f32..5.0, 0..4);
    (0.2f32..3.0, filters, penalties, bias).prop_map(
        |(temperature, (top_k, top_p, min_p, typical_p), penalties, logit_bias)| {
            let (repetition_penalty, frequency_penalty, presence_penalty, penalty_window) =
                penalties;
            Sampling {
                temperature,
                top_k,
                top_p,
                min_p,
                typical_p,
                repetition_penalty,
                frequency_penalty,
                presence_penalty,
                penalty_window,
                logit_bias,
                seed: 0,
            }
        },
    )
}

fn case() -> impl Strategy<Value = Case> {
    // Of coarse logits many are equal; of many, more than the first that are looked at are kept.
    let coarse = proptest::collection::vec((-20i32..20).prop_map(|n| n as f32 / 4.0), 1..40);
    let fine = proptest::collection::vec(-9.0f32..9.0, 1..300);
    let logits = prop_oneof![coarse, fine];
    let ids = || proptest::collection::vec(0u32..40, 0..12);
    let allowed = proptest::option::of(proptest::collection::btree_set(0u32..40, 1..20));
    (sampling(), logits, allowed, ids(), ids()).prop_map(
        |(sampling, logits, allowed, prompt, answer)| {
            let known = |id: &u32| (*id as usize) < logits.len();
            let allowed = allowed.map(|ids| ids.into_iter().filter(known).collect::<Vec<_>>());
            let allowed = allowed.filter(|ids| !ids.is_empty());
            Case {
                sampling,
                logits,
                allowed,
                prompt,
                answer,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 100_000, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn what_is_kept_is_what_sorting_everything_keeps(case in case()) {
        let expected = case.expected();
        prop_assume!(expected.is_some());
        let (found, expected) = (case.distribution(), expected.unwrap());
        let ids = |of: &BTreeMap<u32, f64>| of.keys().copied().collect::<Vec<_>>();
        prop_assert_eq!(ids(&found), ids(&expected));
        for (id, p) in &expected {
            prop_assert!((found[id] - p).abs() < 1e-4 * p + 1e-9, "{}: {} not {}", id, found[id], p);
        }
    }
}

/// Pearson's test, with fixed seeds: the drawn tokens follow the distribution.
#[test]
fn frequencies_follow_probabilities() {
    let logits: Vec<f32> = (0..60u32).map(|id| (id * 7 % 23) as f32 / 5.0).collect();
    let some = Sampling {
        top_k: 40,
        top_p: 0.95,
        min_p: 0.05,
        typical_p: 0.9,
        repetition_penalty: 1.2,
        frequency_penalty: 0.3,
        presence_penalty: 0.2,
        penalty_window: Some(6),
        logit_bias: BTreeMap::from([(3, 1.5), (9, -2.0)]),
        ..at(1.3)
    };
    for (index, sampling) in [at(1.0), at(2.5), some].into_iter().enumerate() {
        let case = Case {
            sampling: Sampling {
                seed: 40 + index as u64,
                ..sampling
            },
            logits: logits.clone(),
            allowed: None,
            prompt: vec![1, 2, 3, 3],
            answer: vec![4, 19, 4, 22],
        };
        let expected = case.expected().expect("no close call");
        let mut sampler = Sampler::new(case.sampling.clone());
        let mut seen: BTreeMap<u32, f64> = BTreeMap::new();
        let draws = 40_000;
        for _ in 0..draws {
            let id = sampler.choose(&case.logits, None, case.text()).unwrap();
            *seen.entry(id).or_default() += 1.0;
        }
        assert!(seen.keys().all(|id| expected.contains_key(id)));
        let distance: f64 = expected
            .iter()
            .map(|(id, p)| {
                let wanted = p * f64::from(draws);
                (seen.get(id).copied().unwrap_or(0.0) - wanted).powi(2) / wanted
            })
            .sum();
        // Beyond this with a probability below 0.001: mean and deviation of chi-square.
        let freedom = (expected.len() - 1) as f64;
        assert!(
            distance < freedom + 3.5 * (2.0 * freedom).sqrt(),
            "{distance} of {freedom}"
        );
    }
}
