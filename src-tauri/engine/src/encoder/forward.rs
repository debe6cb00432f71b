//! One step of an encoder: the tokens of some texts through all layers, each text seeing itself alone.

use std::ops::Range;

use super::config::EncoderConfig;
use super::weights::{Layer, Layout, Linear, Norm};
use crate::kernels::{
    Activations, Isa, TILE, WIDE, add_times, gelu, layer_norm, read_row, softmax_terms,
};
use crate::model::{Scratch, Tiles, product};
use crate::pool::Pool;

/// Threads and work memory, used by one step at a time.
pub(super) struct Runtime {
    pool: Pool,
    isa: Isa,
    /// `[tokens, width]`.
    hidden: Vec<f32>,
    input: Activations,
    inner: Activations,
    projected: [Tiles; 3],
    out: Tiles,
    /// What each head gives, `[heads, tokens, head]`.
    mixed: Vec<f32>,
}

impl Runtime {
    pub(super) fn new(pool: Pool) -> Self {
        Self {
            pool,
            isa: Isa::detect(),
            hidden: Vec::new(),
            input: Activations::default(),
            inner: Activations::default(),
            projected: Default::default(),
            out: Tiles::default(),
            mixed: Vec::new(),
        }
    }

    pub(super) fn instructions(&self) -> &'static str {
        self.isa.name()
    }
}

/// What a step works on.
pub(crate) struct Encoding<'a> {
    pub(super) config: &'a EncoderConfig,
    pub(super) layout: &'a Layout,
    pub(super) start: usize,
    pub(super) runtime: &'a mut Runtime,
    /// Tokens of each text.
    pub(super) lens: &'a [usize],
    pub(super) cancelled: &'a dyn Fn() -> bool,
    pub(super) was_cancelled: bool,
}

impl Encoding<'_> {
    /// The vectors of all texts (`[texts, width]`), of length one; none after a cancel.
    pub(crate) fn run(&mut self, tokens: &[i32], weights: &[u8], vectors: &[f32]) -> Vec<f32> {
        let arena = &weights[self.start..];
        self.embed(tokens, arena, vectors);
        let layout = self.layout;
        for layer in &layout.layers {
            if (self.cancelled)() {
                self.was_cancelled = true;
                return Vec::new();
            }
            self.attend(layer, arena, vectors);
            self.feed_forward(layer, arena, vectors);
        }
        self.pool_texts()
    }

    /// Numbers in a vector.
    pub(crate) fn width(&self) -> usize {
        self.config.width
    }

    fn texts(&self) -> Vec<Range<usize>> {
        let mut end = 0;
        let text = |&len| {
            let start = end;
            end += len;
            start..end
        };
        self.lens.iter().map(text).collect()
    }

    fn embed(&mut self, tokens: &[i32], arena: &[u8], vectors: &[f32]) {
        let texts = self.texts();
        let EncoderConfig {
            width,
            first_position,
            epsilon,
            ..
        } = *self.config;
        let Runtime {
            pool, isa, hidden, ..
        } = &mut *self.runtime;
        hidden.resize(tokens.len() * width, 0.0);
        let layout = self.layout;
        let of = texts.iter().flat_map(|text| 0..text.len());
        let positions: Vec<usize> = of.map(|position| first_position + position).collect();
        pool.pieces(
            hidden,
            width,
            || (),
            |(), token, row| {
                read_row(&layout.words, arena, tokens[token] as usize, row);
                let position = &vectors[layout.positions + positions[token] * width..][..width];
                for (value, position) in row.iter_mut().zip(position) {
                    *value += position;
                }
                norm(*isa, row, layout.norm, vectors, epsilon);
            },
        );
    }

    fn attend(&mut self, layer: &Layer, arena: &[u8], vectors: &[f32]) {
        let texts = self.texts();
        let config = *self.config;
        let head_len = config.head_len();
        let Runtime {
            pool,
            isa,
            hidden,
            input,
            projected,
            mixed,
            ..
        } = &mut *self.runtime;
        let width = config.width;
        let tokens = hidden.len() / width;
        fill(pool, *isa, input, (width, tokens), |token, row| {
            row.copy_from_slice(&hidden[token * width..][..width]);
        });
        let linears = [layer.query, layer.key, layer.value];
        for (linear, out) in linears.iter().zip(&mut *projected) {
            multiply(pool, *isa, (linear, arena, vectors), input, out, |_| ());
        }
        mixed.resize(tokens * width, 0.0);
        let [queries, keys, values] = &*projected;
        let scale = 1.0 / (head_len as f32).sqrt();
        pool.pieces(
            mixed,
            tokens * head_len,
            Head::default,
            |head, index, out| {
                for text in &texts {
                    head.read([queries, keys, values], text, index * head_len, head_len);
                    let out = &mut out[text.start * head_len..text.end * head_len];
                    head.attend(*isa, scale, head_len, out);
                }
            },
        );
        let mixed = &*mixed;
        fill(pool, *isa, input, (width, tokens), |token, row| {
            for (head, out) in row.chunks_exact_mut(head_len).enumerate() {
                out.copy_from_slice(&mixed[(head * tokens + token) * head_len..][..head_len]);
            }
        });
        self.add(
            &layer.attention_out,
            layer.attention_norm,
            arena,
            vectors,
            false,
        );
    }

    fn feed_forward(&mut self, layer: &Layer, arena: &[u8], vectors: &[f32]) {
        let EncoderConfig {
            width,
            hidden: inner_width,
            ..
        } = *self.config;
        let Runtime {
            pool,
            isa,
            hidden,
            input,
            inner,
            out,
            ..
        } = &mut *self.runtime;
        let tokens = hidden.len() / width;
        fill(pool, *isa, input, (width, tokens), |token, row| {
            row.copy_from_slice(&hidden[token * width..][..width]);
        });
        let up = (&layer.up, arena, vectors);
        multiply(pool, *isa, up, input, out, |values| gelu(*isa, values));
        let out = &*out;
        fill(pool, *isa, inner, (inner_width, tokens), |token, row| {
            out.read(token, 0, row);
        });
        self.add(&layer.down, layer.output_norm, arena, vectors, true);
    }

    /// Adds a product to the hidden state, and norms that.
    fn add(&mut self, linear: &Linear, after: Norm, arena: &[u8], vectors: &[f32], inner: bool) {
        let EncoderConfig { width, epsilon, .. } = *self.config;
        let Runtime {
            pool,
            isa,
            hidden,
            input,
            inner: second,
            out,
            ..
        } = &mut *self.runtime;
        let input = if inner { &*second } else { &*input };
        multiply(pool, *isa, (linear, arena, vectors), input, out, |_| ());
        let out = &*out;
        pool.pieces(
            hidden,
            width,
            || vec![0.0; width],
            |given, token, row| {
                out.read(token, 0, given);
                for (value, given) in row.iter_mut().zip(given) {
                    *value += *given;
                }
                norm(*isa, row, after, vectors, epsilon);
            },
        );
    }

    /// The mean of each text's tokens, of length one.
    fn pool_texts(&self) -> Vec<f32> {
        let width = self.config.width;
        let mut out = vec![0.0; self.lens.len() * width];
        for (text, out) in self.texts().into_iter().zip(out.chunks_exact_mut(width)) {
            for row in self.runtime.hidden[text.start * width..text.end * width].chunks_exact(width)
            {
                for (sum, value) in out.iter_mut().zip(row) {
                    *sum += value;
                }
            }
            let length = out.iter().map(|value| value * value).sum::<f32>().sqrt();
            out.iter_mut().for_each(|value| *value /= length);
        }
        out
    }
}

/// One head of one text.
#[derive(Debug, Default)]
struct Head {
    /// `[tokens, head]`.
    queries: Vec<f32>,
    /// `[head, tokens]`, the tokens filled up to a multiple of 16.
    keys: Vec<f32>,
    /// `[tokens, head]`.
    values: Vec<f32>,
    scores: Vec<f32>,
    row: Vec<f32>,
    len: usize,
    padded: usize,
}

impl Head {
    fn read(
        &mut self,
        [queries, keys, values]: [&Tiles; 3],
        text: &Range<usize>,
        first: usize,
        head_len: usize,
    ) {
        self.len = text.len();
        self.padded = self.len.next_multiple_of(TILE);
        self.queries.resize(self.len * head_len, 0.0);
        self.values.resize(self.len * head_len, 0.0);
        self.keys.clear();
        self.keys.resize(self.padded * head_len, 0.0);
        self.row.resize(head_len, 0.0);
        for (at, token) in text.clone().enumerate() {
            queries.read(token, first, &mut self.queries[at * head_len..][..head_len]);
            values.read(token, first, &mut self.values[at * head_len..][..head_len]);
            keys.read(token, first, &mut self.row);
            for (element, value) in self.row.iter().enumerate() {
                self.keys[element * self.padded + at] = *value;
            }
        }
    }

    fn attend(&mut self, isa: Isa, scale: f32, head_len: usize, out: &mut [f32]) {
        let queries = self.queries.chunks_exact(head_len);
        for (query, out) in queries.zip(out.chunks_exact_mut(head_len)) {
            self.scores.clear();
            self.scores.resize(self.padded, 0.0);
            for (element, keys) in query.iter().zip(self.keys.chunks_exact(self.padded)) {
                add_times(isa, &mut self.scores, element * scale, keys);
            }
            let (_, sum) = softmax_terms(isa, &mut self.scores, self.len);
            out.fill(0.0);
            let values = self.values.chunks_exact(head_len);
            for (term, value) in self.scores.iter().zip(values) {
                add_times(isa, out, term / sum, value);
            }
        }
    }
}

fn norm(isa: Isa, row: &mut [f32], norm: Norm, vectors: &[f32], epsilon: f32) {
    let weight = &vectors[norm.weight..][..row.len()];
    let bias = &vectors[norm.bias..][..row.len()];
    layer_norm(isa, row, weight, bias, epsilon);
}

/// Fills the input of a product, a vector for each token.
fn fill(
    pool: &mut Pool,
    isa: Isa,
    input: &mut Activations,
    (len, tokens): (usize, usize),
    of: impl Fn(usize, &mut [f32]) + Sync,
) {
    input.reset(len, tokens);
    pool.pieces(
        &mut input.panels_mut(),
        1,
        || (),
        |(), index, panels| {
            for panel in panels {
                for (offset, row) in panel.columns_mut().enumerate() {
                    of(index * WIDE + offset, row);
                }
                panel.quantise(isa);
            }
        },
    );
}

/// A product with its bias; `then` is done to 16 of its values at a time.
fn multiply(
    pool: &mut Pool,
    isa: Isa,
    (linear, arena, vectors): (&Linear, &[u8], &[f32]),
    input: &Activations,
    out: &mut Tiles,
    then: impl Fn(&mut [f32; TILE]) + Sync,
) {
    let Linear { matrix, bias } = linear;
    let bias = &vectors[*bias..][..matrix.rows];
    out.reset(matrix.rows, input.columns());
    pool.pieces(
        &mut out.data,
        out.stride,
        Scratch::default,
        |scratch, tile, out| {
            let bias = &bias[tile * TILE..];
            let out = out.as_chunks_mut::<TILE>().0;
            product(
                isa,
                [matrix],
                arena,
                tile,
                input,
                scratch,
                |column, [values]| {
                    let out = &mut out[column];
                    *out = *values;
                    for (value, bias) in out.iter_mut().zip(bias) {
                        *value += bias;
                    }
                    then(out);
                },
            );
        },
    );
}
