//! The hash chain: what of a row is hashed, and the signed statement of where the chain ends.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use super::JournalRow;

/// Stands before a row's bytes; another layout of rows gets another text.
const ROW: &[u8] = b"steward journal row 1\0";

/// A hash of the chain.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// What the first row goes on from.
    pub const GENESIS: Self = Self([0; 32]);
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let mut bytes = [0; 32];
        hex::decode_to_slice(&text, &mut bytes).map_err(serde::de::Error::custom)?;
        Ok(Self(bytes))
    }
}

/// Every column of a row but its hash, borrowed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Columns<'a> {
    pub id: u64,
    pub at_ms: u64,
    pub pid: u64,
    pub run: u64,
    pub seq: Option<u64>,
    pub kind: &'a str,
    pub name: &'a str,
    pub detail: &'a str,
    pub resource: Option<&'a str>,
    pub capability: Option<u64>,
    pub decision: Option<&'a str>,
    pub by: Option<&'a str>,
    pub wait_ms: Option<u64>,
    pub run_ms: Option<u64>,
    pub facts: Option<&'a str>,
}

impl<'a> From<&'a JournalRow> for Columns<'a> {
    fn from(row: &'a JournalRow) -> Self {
        Self {
            id: row.id,
            at_ms: row.at_ms,
            pid: row.pid.0,
            run: row.run,
            seq: row.seq,
            kind: &row.kind,
            name: &row.name,
            detail: &row.detail,
            resource: row.resource.as_deref(),
            capability: row.capability,
            decision: row.decision.as_deref(),
            by: row.by.as_deref(),
            wait_ms: row.wait_ms,
            run_ms: row.run_ms,
            facts: row.facts.as_deref(),
        }
    }
}

impl Columns<'_> {
    /// The chain's hash after this row, given the one before it.
    ///
    /// The bytes are unambiguous: numbers have eight bytes, texts their length before them, and
    /// what may be absent a byte that tells whether it is there.
    pub(crate) fn after(&self, before: &Hash) -> Hash {
        let mut bytes = Writer(Vec::with_capacity(160 + self.detail.len()));
        bytes.raw(ROW);
        bytes.raw(&before.0);
        for number in [self.id, self.at_ms, self.pid, self.run] {
            bytes.number(number);
        }
        bytes.number_if(self.seq);
        for text in [self.kind, self.name, self.detail] {
            bytes.text(text);
        }
        bytes.text_if(self.resource);
        bytes.number_if(self.capability);
        bytes.text_if(self.decision);
        bytes.text_if(self.by);
        bytes.number_if(self.wait_ms);
        bytes.number_if(self.run_ms);
        bytes.text_if(self.facts);
        Hash(Sha256::digest(&bytes.0).into())
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn number(&mut self, number: u64) {
        self.raw(&number.to_be_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.raw(text.as_bytes());
    }

    fn number_if(&mut self, number: Option<u64>) {
        self.raw(&[u8::from(number.is_some())]);
        if let Some(number) = number {
            self.number(number);
        }
    }

    fn text_if(&mut self, text: Option<&str>) {
        self.raw(&[u8::from(text.is_some())]);
        if let Some(text) = text {
            self.text(text);
        }
    }
}

/// Where the chain ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// Number of the file the last row is in; earlier ones are archives.
    pub segment: u64,
    /// Number of the last row.
    pub sequence: u64,
    /// Rows in the chain.
    pub count: u64,
    /// The chain's hash up to the last row.
    pub hash: Hash,
}

impl Head {
    /// The end of a chain without rows.
    pub const EMPTY: Self = Self {
        segment: 1,
        sequence: 0,
        count: 0,
        hash: Hash::GENESIS,
    };

    /// The bytes that a witness signs.
    pub fn statement(&self) -> Vec<u8> {
        let Self {
            segment,
            sequence,
            count,
            hash,
        } = self;
        format!("steward journal head 1\n{segment} {sequence} {count} {hash}\n").into_bytes()
    }
}

/// A head with its signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sealed {
    /// What was signed.
    pub head: Head,
    /// The public key that it can be checked by, in hexadecimal digits.
    pub key: String,
    /// The signature, in hexadecimal digits.
    pub signature: String,
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::process::Pid;

    /// A chain of rows, as the journal makes them.
    pub(crate) fn chain(rows: u64) -> Vec<JournalRow> {
        let mut hash = Hash::GENESIS;
        (1..=rows)
            .map(|id| {
                let mut row = JournalRow {
                    id,
                    at_ms: 1_700_000_000_000 + id,
                    pid: Pid(1 + id % 3),
                    run: 1,
                    seq: Some(id),
                    kind: "outcome".to_owned(),
                    name: "fs.read".to_owned(),
                    detail: format!("done: {id} bytes"),
                    resource: Some(format!("notes/{id}.md")),
                    capability: Some(2),
                    decision: Some("allowed".to_owned()),
                    by: Some("capability 2".to_owned()),
                    wait_ms: Some(1),
                    run_ms: Some(2),
                    facts: Some(r#"{"bytes":7}"#.to_owned()),
                    hash,
                };
                row.hash = Columns::from(&row).after(&hash);
                hash = row.hash;
                row
            })
            .collect()
    }

    #[test]
    fn what_stands_in_one_column_cannot_be_moved_to_the_next() {
        let row = chain(1).remove(0);
        let hash = |change: fn(&mut JournalRow)| {
            let mut row = row.clone();
            change(&mut row);
            Columns::from(&row).after(&Hash::GENESIS)
        };
        let all = [
            hash(|_| {}),
            hash(|row| row.resource = None),
            hash(|row| row.resource = Some(String::new())),
            hash(|row| (row.kind, row.name) = ("outcom".into(), "efs.read".into())),
            hash(|row| (row.decision, row.by) = (row.by.take(), row.decision.take())),
            hash(|row| (row.wait_ms, row.run_ms) = (None, Some(1))),
        ];
        for (i, one) in all.iter().enumerate() {
            assert!(!all[i + 1..].contains(one), "two rows have the same hash");
        }
    }

    #[test]
    fn the_layout_of_a_hashed_row_stays() {
        // Rows of journals that exist were hashed so; a change of layout needs another `ROW`.
        assert_eq!(
            chain(3)[2].hash.to_string(),
            "4a6940171f34bbaa7c38f3269186ce6ef5cbec84353656cac13c877f13889567"
        );
    }

    #[test]
    fn a_sealed_head_survives_json() {
        let sealed = Sealed {
            head: Head {
                segment: 1,
                sequence: 3,
                count: 3,
                hash: chain(3)[2].hash,
            },
            key: "00".to_owned(),
            signature: "11".to_owned(),
        };
        let text = serde_json::to_string(&sealed).unwrap();
        assert_eq!(serde_json::from_str::<Sealed>(&text).unwrap(), sealed);
        assert!(serde_json::from_str::<Sealed>(&text[..text.len() / 2]).is_err());
    }
}
