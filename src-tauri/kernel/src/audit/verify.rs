//! Checking the chain: row by row, and its end against the heads that a witness signed.

use serde::Serialize;

use super::JournalRow;
use super::chain::{Columns, Hash, Head, Sealed};
use crate::error::SysError;
use crate::provider::{Judgement, Witness};

/// Findings told at most; a chain that is broken everywhere says so in its first rows.
const FINDINGS_MOST: usize = 100;

/// What a check of the journal found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// Whether every row is as it was written and none is missing, the last ones included.
    pub whole: bool,
    /// Rows that were looked at.
    pub rows: u64,
    /// Where the chain ends.
    pub head: Head,
    /// The last signed head that is genuine.
    pub signed: Option<Head>,
    /// What is wrong, in the order in which it was found.
    pub findings: Vec<Finding>,
    /// Findings left out because there were too many.
    pub left_out: u64,
}

impl Verification {
    /// How far the journal is signed, in words.
    pub fn signing(&self) -> String {
        let signed = self.signed.as_ref().map_or(0, |signed| signed.sequence);
        match self.head.sequence.saturating_sub(signed) {
            0 => "signed to the last row".to_owned(),
            more => format!("signed up to row {signed}, {more} since"),
        }
    }
}

/// One thing that is wrong with the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What is wrong.
    pub what: What,
    /// The row it was found at.
    pub row: Option<u64>,
    /// The same in words.
    pub words: String,
}

/// What can be wrong with a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A row is not as it was written.
    Altered,
    /// Rows were taken out.
    Missing,
    /// A row or a file cannot be read.
    Unreadable,
    /// The last rows were taken away.
    TailRemoved,
    /// The chain was made anew: a row is not the one that was signed.
    Rewritten,
    /// A signature does not fit.
    BadSignature,
    /// A head was signed by another key.
    OtherKey,
    /// A remembered head cannot be read.
    TornHead,
    /// No signed head is remembered.
    NoHead,
    /// A file of older rows is not there.
    SegmentMissing,
    /// The journal itself tells that it was broken before.
    Told,
}

/// Kind of the rows by which the kernel tells of a break that it met when it opened the journal.
pub(crate) const BREAK: &str = "break";

/// Checks rows as they come, in order.
#[derive(Debug)]
pub struct Verifier {
    head: Head,
    rows: u64,
    signed: Vec<Sealed>,
    genuine: Option<Head>,
    findings: Vec<Finding>,
    left_out: u64,
}

impl Verifier {
    /// For rows that go on from `base`.
    pub fn new(base: Head) -> Self {
        Self {
            head: base,
            rows: 0,
            signed: Vec::new(),
            genuine: None,
            findings: Vec::new(),
            left_out: 0,
        }
    }

    /// Takes a head that was signed; the rows are compared with it as they come.
    pub fn expect(&mut self, sealed: Sealed, witness: &dyn Witness) {
        let Head { sequence, .. } = sealed.head;
        match witness.judge(&sealed) {
            Judgement::Genuine => {
                if self.genuine.is_none_or(|head| head.sequence < sequence) {
                    self.genuine = Some(sealed.head);
                }
                self.signed.push(sealed);
            }
            Judgement::OtherKey => self.find(
                What::OtherKey,
                Some(sequence),
                format!(
                    "the head at row `{sequence}` was signed by another key, `{}`",
                    crate::escape::shown(&sealed.key)
                ),
            ),
            Judgement::Forged => self.find(
                What::BadSignature,
                Some(sequence),
                format!("the signature of the head at row `{sequence}` does not fit"),
            ),
        }
    }

    /// Takes what the witness remembers.
    pub fn expect_remembered(&mut self, witness: &dyn Witness) {
        match witness.last() {
            Ok(Some(sealed)) => self.expect(sealed, witness),
            Ok(None) => self.find(
                What::NoHead,
                None,
                "no signed head is remembered, so removed last rows would not be seen".to_owned(),
            ),
            Err(error) => self.torn("that is remembered", &error),
        }
    }

    /// Tells that a signed head cannot be read.
    pub fn torn(&mut self, which: &str, error: &SysError) {
        let words = format!("the signed head {which} cannot be read: {}", error.message);
        self.find(What::TornHead, None, words);
    }

    /// Goes on with the rows of another file.
    pub fn segment(&mut self, number: u64) {
        self.head.segment = number;
    }

    /// Looks at the next row.
    pub fn row(&mut self, row: &JournalRow) {
        self.rows += 1;
        let expected = self.head.sequence + 1;
        let follows = row.id == expected;
        if !follows {
            self.gap(expected, row.id);
        }
        // After a gap a row cannot be checked: the hash it goes on from is not there.
        if follows && Columns::from(row).after(&self.head.hash) != row.hash {
            let words = format!("row `{}` is not as it was written", row.id);
            self.find(What::Altered, Some(row.id), words);
        }
        if row.kind == BREAK {
            let words = format!("row `{}` tells: {}", row.id, row.detail);
            self.find(What::Told, Some(row.id), words);
        }
        self.pass(row.id, row.hash);
    }

    /// A row is there whose columns cannot be read. Its hash counts for the next one, if it has one.
    pub fn unreadable(&mut self, id: u64, hash: Option<Hash>, why: &str) {
        self.rows += 1;
        let words = format!("row `{id}` cannot be read: {why}");
        self.find(What::Unreadable, Some(id), words);
        self.pass(id, hash.unwrap_or(self.head.hash));
    }

    /// The rows of a file cannot be read on.
    pub fn damaged(&mut self, why: &str) {
        let after = self.head.sequence;
        let words = format!("the file cannot be read after row `{after}`: {why}");
        self.find(What::Unreadable, Some(after), words);
    }

    /// The file of older rows is not there; the chain goes on from where it ended.
    pub fn segment_missing(&mut self, file: &str, end: Head) {
        let (first, last) = (self.head.sequence + 1, end.sequence);
        let words = format!("`{file}` with rows `{first}` to `{last}` is not there");
        self.find(What::SegmentMissing, Some(first), words);
        self.signed.retain(|sealed| sealed.head.sequence > last);
        self.head = end;
    }

    /// The rows looked at so far ended with a file: where the next says that it goes on from must be
    /// one of them, `found` by its number.
    pub fn joint(&mut self, file: &str, next: Head, found: Option<Hash>) {
        let (sequence, ends) = (next.sequence, self.head.sequence);
        let after = ends.checked_sub(sequence);
        if found != Some(next.hash)
            || after.is_none()
            || after != self.head.count.checked_sub(next.count)
        {
            let words = format!(
                "the rows after `{file}` go on from row `{sequence}`, which is not one of it"
            );
            self.find(What::Altered, Some(sequence), words);
        }
    }

    /// The last row that was looked at.
    pub fn sequence(&self) -> u64 {
        self.head.sequence
    }

    /// What was found.
    pub fn finish(mut self) -> Verification {
        let ends = self.head.sequence;
        let beyond = self.signed.iter().map(|sealed| sealed.head.sequence).max();
        if let Some(signed) = beyond.filter(|signed| *signed > ends) {
            let words = format!(
                "the journal ends at row `{ends}`, row `{signed}` was signed: the last {} rows were removed",
                signed - ends
            );
            self.find(What::TailRemoved, Some(ends), words);
        }
        Verification {
            whole: self.findings.is_empty(),
            rows: self.rows,
            head: self.head,
            signed: self.genuine,
            findings: self.findings,
            left_out: self.left_out,
        }
    }

    fn gap(&mut self, expected: u64, found: u64) {
        if found < expected {
            let words = format!("row `{found}` stands after row `{}`", expected - 1);
            self.find(What::Altered, Some(found), words);
            return;
        }
        let words = match found - expected {
            1 => format!("row `{expected}` was removed"),
            _ => format!("rows `{expected}` to `{}` were removed", found - 1),
        };
        self.find(What::Missing, Some(expected), words);
    }

    fn pass(&mut self, id: u64, hash: Hash) {
        self.head = Head {
            segment: self.head.segment,
            sequence: id,
            count: self.head.count + 1,
            hash,
        };
        let (here, later) = std::mem::take(&mut self.signed)
            .into_iter()
            .partition(|sealed| sealed.head.sequence <= id);
        self.signed = later;
        let here: Vec<Sealed> = here;
        for Sealed { head: signed, .. } in here {
            if signed.sequence == id && (signed.hash, signed.count) != (hash, self.head.count) {
                let words = format!("row `{id}` or one before it is not the one that was signed");
                self.find(What::Rewritten, Some(id), words);
            }
        }
    }

    fn find(&mut self, what: What, row: Option<u64>, words: String) {
        if self.findings.len() == FINDINGS_MOST {
            self.left_out += 1;
            return;
        }
        self.findings.push(Finding { what, row, words });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::super::chain::tests::chain;
    use super::super::pen::Pen;
    use super::*;
    use crate::error::Code;
    use crate::process::Pid;

    fn head(rows: &[JournalRow]) -> Head {
        rows.last().map_or(Head::EMPTY, |row| Head {
            segment: 1,
            sequence: row.id,
            count: row.id,
            hash: row.hash,
        })
    }

    fn verified(rows: &[JournalRow], witness: &Pen) -> Verification {
        let mut verifier = Verifier::new(Head::EMPTY);
        verifier.expect_remembered(witness);
        rows.iter().for_each(|row| verifier.row(row));
        verifier.finish()
    }

    fn found(verification: &Verification) -> Vec<(What, Option<u64>)> {
        let told = verification.findings.iter();
        told.map(|finding| (finding.what, finding.row)).collect()
    }

    /// Hashes the rows anew from `from` on, as somebody with the database but without the key can.
    fn rehash(rows: &mut [JournalRow], from: usize) {
        for i in from..rows.len() {
            let before = if i == 0 {
                Hash::GENESIS
            } else {
                rows[i - 1].hash
            };
            rows[i].hash = Columns::from(&rows[i]).after(&before);
        }
    }

    #[test]
    fn a_whole_chain_is_whole_with_rows_that_are_not_signed_yet() {
        let rows = chain(9);
        let told = verified(&rows, &Pen::holding(head(&rows[..7])));
        assert!(told.whole, "{told:?}");
        assert_eq!((told.rows, told.head.sequence), (9, 9));
        assert_eq!(told.signed.unwrap().sequence, 7);
    }

    #[test]
    fn a_change_of_any_column_is_found_at_its_row() {
        type Change = fn(&mut JournalRow);
        let changes: &[Change] = &[
            |row| row.at_ms += 1,
            |row| row.pid = Pid(99),
            |row| row.run += 1,
            |row| row.seq = None,
            |row| row.kind.push('x'),
            |row| row.name.push('x'),
            |row| row.detail.push(' '),
            |row| row.resource = None,
            |row| row.capability = Some(3),
            |row| row.decision = Some("denied".to_owned()),
            |row| row.by = None,
            |row| row.wait_ms = None,
            |row| row.run_ms = Some(0),
            |row| row.facts = Some(r#"{"bytes":8}"#.to_owned()),
            |row| row.hash.0[31] ^= 1,
        ];
        for (i, change) in changes.iter().enumerate() {
            let mut rows = chain(9);
            let pen = Pen::holding(head(&rows));
            change(&mut rows[4]);
            let told = verified(&rows, &pen);
            assert!(!told.whole);
            assert_eq!(found(&told)[0], (What::Altered, Some(5)), "change {i}");
        }
    }

    #[test]
    fn what_was_removed_or_moved_is_told() {
        let whole = chain(9);
        let pen = Pen::holding(head(&whole));
        let without = |ids: &[u64]| -> Vec<JournalRow> {
            let kept = whole.iter().filter(|row| !ids.contains(&row.id));
            kept.cloned().collect()
        };
        let told = verified(&without(&[4]), &pen);
        assert_eq!(found(&told)[0], (What::Missing, Some(4)));
        assert_eq!(told.findings[0].words, "row `4` was removed");
        let told = verified(&without(&[4, 5, 6]), &pen);
        assert_eq!(told.findings[0].words, "rows `4` to `6` were removed");
        let told = verified(&without(&[8, 9]), &pen);
        assert_eq!(found(&told), [(What::TailRemoved, Some(7))]);
        assert!(
            told.findings[0].words.contains("the last 2 rows"),
            "{told:?}"
        );
        assert_eq!(found(&verified(&[], &pen)), [(What::TailRemoved, Some(0))]);
        let mut swapped = whole.clone();
        swapped.swap(3, 4);
        (swapped[3].id, swapped[4].id) = (4, 5);
        assert_eq!(
            found(&verified(&swapped, &pen))[0],
            (What::Altered, Some(4))
        );
    }

    #[test]
    fn a_chain_made_anew_is_seen_by_its_signed_head() {
        let mut rows = chain(9);
        let pen = Pen::holding(head(&rows));
        rows[4].detail = "done: nothing".to_owned();
        rehash(&mut rows, 4);
        assert_eq!(found(&verified(&rows, &pen)), [(What::Rewritten, Some(9))]);
        // Removed and numbered anew: the count tells, even if hashes could be made to fit.
        let mut rows = chain(9);
        rows.remove(2);
        for (i, row) in rows.iter_mut().enumerate() {
            row.id = i as u64 + 1;
        }
        rehash(&mut rows, 2);
        assert_eq!(
            found(&verified(&rows, &pen)),
            [(What::TailRemoved, Some(8))]
        );
    }

    #[test]
    fn a_head_that_is_foreign_forged_torn_or_gone_is_told() {
        let rows = chain(3);
        let with = |last| found(&verified(&rows, &Pen::new("mine", last)));
        let foreign = Pen::sign("other", head(&rows));
        assert_eq!(with(Ok(Some(foreign))), [(What::OtherKey, Some(3))]);
        let forged = Sealed {
            head: head(&rows),
            ..Pen::sign("mine", head(&rows[..2]))
        };
        assert_eq!(with(Ok(Some(forged))), [(What::BadSignature, Some(3))]);
        let torn = SysError::new(Code::Invalid, "half of it is missing");
        assert_eq!(with(Err(torn)), [(What::TornHead, None)]);
        assert_eq!(with(Ok(None)), [(What::NoHead, None)]);
    }

    #[test]
    fn findings_are_bounded() {
        let mut rows = chain(300);
        rows.iter_mut().for_each(|row| row.at_ms = 0);
        let told = verified(&rows, &Pen::holding(head(&chain(300))));
        assert_eq!((told.findings.len(), told.left_out), (FINDINGS_MOST, 200));
    }
}
