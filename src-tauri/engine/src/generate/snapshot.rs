//! Sessions as bytes, and back.
//!
//! A snapshot holds what cannot be had from the request again: the generated tokens, the packed
//! keys and values, where the random numbers stand, and for a search all of its texts. Text, stop
//! strings and grammar follow from the tokens. It begins with a mark, a version and its length, and
//! ends with a SHA-256 of all before; it names the digests of the model and of the request, and
//! goes with no others.

use std::collections::HashMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::beam::Ended;
use super::branch::{Branch, shown};
use super::digest::request_digest;
use super::logprob::Likelihood;
use super::session::{Session, has_ended};
use super::state::{Stage, State};
use super::{Finish, GenerateRequest, Sequence, TokenLogprob};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::kv::{KvCache, POSITIONS, Page, PageMemory};

const MARK: &[u8; 8] = b"stwd-gen";
const VERSION: u32 = 2;
pub(super) const DIGEST: usize = 32;

impl Session {
    /// The whole state, for [`Engine::restore`], which goes on with the same tokens.
    ///
    /// # Errors
    /// [`EngineError::InvalidRequest`] for a session that has ended.
    pub fn snapshot(&self) -> Result<Vec<u8>, EngineError> {
        let state = self.state.as_ref().ok_or_else(has_ended)?;
        state.snapshot()
    }
}

impl State {
    fn snapshot(&self) -> Result<Vec<u8>, EngineError> {
        let mut out = Writer::default();
        out.bytes(self.engine.digest()?);
        out.bytes(&request_digest(&self.engine, &self.request, &self.prompt));
        out.number(match self.stage {
            Stage::New => 0,
            Stage::Prefill => 1,
            Stage::Decode => 2,
        });
        out.number(self.out.cached_tokens);
        out.bytes(&self.sampler.position().to_le_bytes());
        out.bytes(&self.out.prefill_seconds.to_le_bytes());
        out.bytes(&self.out.decode_seconds.to_le_bytes());
        // While it stands still, its keys and values are among those that are kept, or gone.
        let sequences: Vec<Sequence> = {
            let mut prefixes = self.engine.prefixes();
            let known = |branch: &Branch| prefixes.recall(&branch.sequence.tokens);
            self.branches.iter().map(known).collect()
        };
        let pages = HeldPages::of(&sequences);
        out.number(pages.list.len());
        for (page, count) in &pages.list {
            let shape = self.engine.pages().shape();
            out.number(*count);
            shape.pack(page, *count, &mut out.0);
        }
        out.number(self.branches.len());
        for (branch, sequence) in self.branches.iter().zip(&sequences) {
            out.branch(branch, sequence, &pages);
        }
        out.number(self.search.ended.len());
        for ended in &self.search.ended {
            out.ids(&ended.ids);
            out.floats(&ended.logprobs);
            out.number(usize::from(ended.finish == Finish::Length));
        }
        Ok(out.sealed())
    }
}

impl Engine {
    /// The session of `request` as [`Session::snapshot`] gave it.
    ///
    /// # Errors
    /// [`EngineError::Snapshot`] where it is broken, or of another version, request or model;
    /// otherwise as for [`Engine::begin`].
    pub fn restore(
        &self,
        request: GenerateRequest,
        snapshot: &[u8],
    ) -> Result<Session, EngineError> {
        let mut from = Reader(unsealed(snapshot)?);
        let mut session = self.begin(request)?;
        let state = session.state.as_mut().ok_or_else(has_ended)?;
        self.read(state, &mut from)?;
        if !from.0.is_empty() {
            return refused("something follows its end");
        }
        state.put_down();
        self.make_room(0);
        Ok(session)
    }

    fn read(&self, session: &mut State, from: &mut Reader<'_>) -> Result<(), EngineError> {
        if from.take(DIGEST)? != self.digest()? {
            return refused("it is of another model");
        }
        if from.take(DIGEST)? != request_digest(self, &session.request, &session.prompt) {
            return refused("it is of another request, or of another length of context");
        }
        session.stage = match from.number(2)? {
            0 => Stage::New,
            1 => Stage::Prefill,
            _ => Stage::Decode,
        };
        session.out.cached_tokens = from.number(session.prompt.len())?;
        session
            .sampler
            .set_position(u64::from_le_bytes(from.array()?));
        session.out.prefill_seconds = f64::from_le_bytes(from.array()?);
        session.out.decode_seconds = f64::from_le_bytes(from.array()?);
        let pages = from.pages(self)?;
        let count = from.number(session.request.beams)?;
        if count == 0 {
            return refused("it has no text");
        }
        let new = session.branches.remove(0);
        for _ in 0..count {
            let branch = from.branch(session, &new, &pages)?;
            session.branches.push(branch);
        }
        if count > 1 && session.stage != Stage::Decode {
            return refused("it has several texts before the first token");
        }
        let len = session.branches[0].ids.len();
        if session
            .branches
            .iter()
            .any(|branch| branch.ids.len() != len)
        {
            return refused("its texts are of unlike lengths");
        }
        for _ in 0..from.number(session.request.beams)? {
            let ended = from.ended(session)?;
            session.search.ended.push(ended);
        }
        session.retell()
    }
}

impl State {
    /// Puts together the texts, of which that of a search is told at its end only.
    fn retell(&mut self) -> Result<(), EngineError> {
        for branch in &mut self.branches {
            for &id in &branch.ids {
                let text = branch.text.push(shown(&self.engine, id));
                if self.request.beams == 1 {
                    self.out.text.push_str(&text);
                }
            }
            if branch.text.stopped() {
                return refused("its text has ended");
            }
        }
        Ok(())
    }
}

/// The pages of all branches, each once, with the most positions of it that one of them needs.
struct HeldPages<'a> {
    list: Vec<(&'a Page, usize)>,
    places: HashMap<*const PageMemory, usize>,
}

impl<'a> HeldPages<'a> {
    fn of(sequences: &'a [Sequence]) -> Self {
        let mut pages = Self {
            list: Vec::new(),
            places: HashMap::new(),
        };
        for sequence in sequences {
            for (page, count) in sequence.cache.filled() {
                let next = pages.list.len();
                let place = *pages.places.entry(Arc::as_ptr(page)).or_insert(next);
                match pages.list.get_mut(place) {
                    Some((_, most)) => *most = count.max(*most),
                    None => pages.list.push((page, count)),
                }
            }
        }
        pages
    }
}

#[derive(Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn number(&mut self, number: usize) {
        self.bytes(&(number as u32).to_le_bytes());
    }

    pub(super) fn ids(&mut self, ids: &[u32]) {
        self.number(ids.len());
        self.0.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
    }

    fn floats(&mut self, values: &[f32]) {
        self.number(values.len());
        self.0
            .extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len());
        self.bytes(text.as_bytes());
    }

    fn likely(&mut self, tokens: &[TokenLogprob]) {
        self.number(tokens.len());
        for TokenLogprob { id, logprob } in tokens {
            self.bytes(&id.to_le_bytes());
            self.bytes(&logprob.to_le_bytes());
        }
    }

    fn alternatives(&mut self, all: &[Vec<TokenLogprob>]) {
        self.number(all.len());
        all.iter().for_each(|tokens| self.likely(tokens));
    }

    fn branch(&mut self, branch: &Branch, sequence: &Sequence, pages: &HeldPages<'_>) {
        self.ids(&branch.ids);
        self.floats(&branch.logprobs);
        let forced = branch.pending.len() - branch.forced;
        self.ids(&branch.pending[forced..]);
        self.alternatives(&branch.top_logprobs);
        self.number(usize::from(branch.ahead.is_some()));
        if let Some(ahead) = &branch.ahead {
            self.bytes(&ahead.logprob.to_le_bytes());
            self.likely(&ahead.top);
        }
        let taken = branch.grammar.as_ref().map(|grammar| grammar.taken());
        self.ids(taken.unwrap_or_default());
        self.number(sequence.tokens.len());
        for (page, _) in sequence.cache.filled() {
            self.number(pages.places[&Arc::as_ptr(page)]);
        }
    }

    /// The whole, with what goes before and after it.
    fn sealed(self) -> Vec<u8> {
        let len = MARK.len() + size_of::<u32>() + size_of::<u64>() + self.0.len() + DIGEST;
        let mut all = Vec::with_capacity(len);
        all.extend_from_slice(MARK);
        all.extend_from_slice(&VERSION.to_le_bytes());
        all.extend_from_slice(&(len as u64).to_le_bytes());
        all.extend(self.0);
        let digest = Sha256::digest(&all);
        all.extend_from_slice(&digest);
        all
    }
}

/// What a whole snapshot holds between its head and its digest.
fn unsealed(snapshot: &[u8]) -> Result<&[u8], EngineError> {
    let mut from = Reader(snapshot);
    if from.take(MARK.len())? != MARK {
        return refused("it does not begin like one");
    }
    let version = u32::from_le_bytes(from.array()?);
    if version != VERSION {
        return refused(format!("it is of version `{version}`, not `{VERSION}`"));
    }
    let len = u64::from_le_bytes(from.array()?);
    if len != snapshot.len() as u64 {
        let found = snapshot.len();
        return refused(format!("it has `{found}` bytes, not `{len}` as it says"));
    }
    let Some((body, digest)) = from.0.split_last_chunk::<DIGEST>() else {
        return refused("it is cut off");
    };
    let sealed = &snapshot[..snapshot.len() - DIGEST];
    if Sha256::digest(sealed)[..] != digest[..] {
        return refused("its bytes have changed");
    }
    Ok(body)
}

fn refused<T>(problem: impl Into<String>) -> Result<T, EngineError> {
    Err(EngineError::Snapshot(problem.into()))
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], EngineError> {
        let Some((taken, rest)) = self.0.split_at_checked(count) else {
            return refused("it is cut off");
        };
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], EngineError> {
        let Some((taken, rest)) = self.0.split_first_chunk::<N>() else {
            return refused("it is cut off");
        };
        self.0 = rest;
        Ok(*taken)
    }

    /// A number of at most `limit`.
    fn number(&mut self, limit: usize) -> Result<usize, EngineError> {
        let number = u32::from_le_bytes(self.array()?) as usize;
        if number > limit {
            return refused(format!("it counts `{number}` where at most {limit} can be"));
        }
        Ok(number)
    }

    /// Four bytes each of as many things as are counted first, at most `limit`.
    fn words(&mut self, limit: usize) -> Result<&'a [[u8; 4]], EngineError> {
        let count = self.number(limit)?;
        Ok(self.take(count * size_of::<u32>())?.as_chunks::<4>().0)
    }

    fn floats(&mut self, limit: usize) -> Result<Vec<f32>, EngineError> {
        let words = self.words(limit)?;
        Ok(words
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect())
    }

    fn ids(&mut self, engine: &Engine, limit: usize) -> Result<Vec<u32>, EngineError> {
        let words = self.words(limit)?;
        let ids: Vec<u32> = words
            .iter()
            .map(|bytes| u32::from_le_bytes(*bytes))
            .collect();
        match ids
            .iter()
            .find(|&&id| id as usize >= engine.tokenizer().len())
        {
            Some(id) => refused(format!("`{id}` is no token")),
            None => Ok(ids),
        }
    }

    /// The likeliest tokens in one place; as many as were asked for, or as there are.
    fn likely(&mut self, session: &State) -> Result<Vec<TokenLogprob>, EngineError> {
        let vocab = session.engine.info().vocab;
        let count = self.number(session.request.top_logprobs)?;
        if count != session.request.top_logprobs.min(vocab) {
            return refused("it lacks some of the likeliest tokens");
        }
        (0..count)
            .map(|_| {
                let id = self.number(vocab - 1)? as u32;
                let logprob = f32::from_le_bytes(self.array()?);
                Ok(TokenLogprob { id, logprob })
            })
            .collect()
    }

    fn alternatives(
        &mut self,
        session: &State,
        tokens: usize,
    ) -> Result<Vec<Vec<TokenLogprob>>, EngineError> {
        let count = self.number(tokens)?;
        if count
            != if session.request.top_logprobs > 0 {
                tokens
            } else {
                0
            }
        {
            return refused("its tokens and the likeliest in their place do not match");
        }
        (0..count).map(|_| self.likely(session)).collect()
    }

    fn ahead(&mut self, session: &State) -> Result<Option<Likelihood>, EngineError> {
        if self.number(1)? == 0 {
            return Ok(None);
        }
        Ok(Some(Likelihood {
            logprob: f32::from_le_bytes(self.array()?),
            top: self.likely(session)?,
        }))
    }

    fn pages(&mut self, engine: &Engine) -> Result<Vec<(Page, usize)>, EngineError> {
        let shape = engine.pages().shape();
        let most = engine.info().context.div_ceil(POSITIONS) * super::MAX_BEAMS;
        let mut pages = Vec::new();
        for _ in 0..self.number(most)? {
            let count = self.number(POSITIONS)?;
            let packed = self.take(shape.packed_bytes(count))?;
            pages.push((engine.pages().unpack(packed, count), count));
        }
        Ok(pages)
    }

    /// A branch of `session`, whose branch at the beginning is `new`.
    fn branch(
        &mut self,
        session: &State,
        new: &Branch,
        pages: &[(Page, usize)],
    ) -> Result<Branch, EngineError> {
        let engine = &session.engine;
        let room = engine.info().context - session.prompt.len();
        let room = room.min(session.request.max_tokens);
        let ids = self.ids(engine, room)?;
        let logprobs = self.floats(room)?;
        let scored = session.request.logprobs || session.request.beams > 1;
        if logprobs.len() != if scored { ids.len() } else { 0 } {
            return refused("its tokens and their log-probabilities do not match");
        }
        let forced = self.ids(engine, room - ids.len())?;
        let top_logprobs = self.alternatives(session, ids.len())?;
        let ahead = self.ahead(session)?;
        // A constraint may force more than there is room for.
        let taken = self.ids(engine, u32::MAX as usize)?;
        let mut branch = Branch {
            sequence: new.sequence.empty(),
            pending: Vec::new(),
            forced: forced.len(),
            guessed: 0,
            ahead,
            ids,
            logprobs,
            top_logprobs,
            grammar: new.grammar.clone(),
            text: new.text.clone(),
        };
        branch.retake(&taken, &forced)?;
        let known = session.prompt.len() + branch.ids.len();
        let all = [&session.prompt[..], &branch.ids, &forced].concat();
        let run = self.number(known.min(all.len() - 1))?;
        match session.stage {
            Stage::New if run > 0 || all.len() > session.prompt.len() => {
                return refused("it has run before it began");
            }
            Stage::New => return Ok(branch),
            _ => (),
        }
        branch.sequence = self.sequence(engine, &all[..run], pages)?;
        branch.pending = all[run..].to_vec();
        Ok(branch)
    }

    fn sequence(
        &mut self,
        engine: &Engine,
        tokens: &[u32],
        pages: &[(Page, usize)],
    ) -> Result<Sequence, EngineError> {
        let mut own = Vec::new();
        for first in (0..tokens.len()).step_by(POSITIONS) {
            let needed = (tokens.len() - first).min(POSITIONS);
            match pages.get(self.number(pages.len())?) {
                Some((page, count)) if *count >= needed => own.push(Arc::clone(page)),
                _ => return refused("keys and values of some tokens are missing"),
            }
        }
        Ok(Sequence {
            cache: KvCache::of_pages(engine.pages(), own, tokens.len()),
            tokens: tokens.to_vec(),
        })
    }

    fn ended(&mut self, session: &State) -> Result<Ended, EngineError> {
        let ids = self.ids(&session.engine, session.request.max_tokens)?;
        let logprobs = self.floats(ids.len() + 1)?;
        if logprobs.len() < ids.len() {
            return refused("its tokens and their log-probabilities do not match");
        }
        let finish = match self.number(1)? {
            0 => Finish::Stop,
            _ => Finish::Length,
        };
        Ok(Ended {
            ids,
            logprobs,
            finish,
        })
    }
}

impl Branch {
    /// Takes the grammar to where it stood.
    fn retake(&mut self, taken: &[u32], forced: &[u32]) -> Result<(), EngineError> {
        let known = [&self.ids[..], forced].concat();
        let Some(grammar) = &mut self.grammar else {
            if taken.is_empty() && forced.is_empty() {
                return Ok(());
            }
            return refused("it has forced tokens and no constraint");
        };
        if !taken.starts_with(&known) {
            return refused("its tokens are not those of its constraint");
        }
        grammar.retake(taken)
    }
}
