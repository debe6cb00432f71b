//! One step: a run of tokens through all layers, on the threads of the pool.
//!
//! Hidden states between phases lie tile by tile (`[tile][column][16]`), so that the rows that a
//! thread computes are one piece of memory.

use std::ops::Range;

use super::Config;
use super::op::Rows;
use super::product::{Scratch, Tiles, add_product, product};
use super::weights::{Layer, Layout};
use crate::attention::{Partial, Query, SEGMENT, attend_segment};
use crate::cancel::Cancel;
use crate::kernels::{Activations, Isa, TILE, WIDE, read_row, rms_norm, swiglu};
use crate::kv::KvCache;
use crate::pool::Pool;

/// Tokens that a step takes at most: enough that unpacking weights is paid off, few enough that a
/// cancelled prefill ends soon.
pub(crate) const STEP_TOKENS: usize = 128;

/// Threads and work memory, used by one step at a time.
pub(crate) struct Runtime {
    pool: Pool,
    isa: Isa,
    hidden: Tiles,
    projected: Tiles,
    gated: Tiles,
    input: Activations,
    inner: Activations,
    partials: Vec<Partial>,
    rotations: Vec<[f32; 2]>,
}

/// What a step works on.
pub(crate) struct Step<'a> {
    pub(super) config: &'a Config,
    pub(super) layout: &'a Layout,
    pub(super) start: usize,
    pub(super) rope_factors: Option<&'a [f32]>,
    pub(super) runtime: &'a mut Runtime,
    pub(super) cache: &'a mut KvCache,
    pub(super) rows: Rows,
    pub(super) cancel: &'a Cancel,
    pub(super) cancelled: bool,
}

impl Runtime {
    pub(crate) fn new(pool: Pool) -> Self {
        Self {
            pool,
            isa: Isa::detect(),
            hidden: Tiles::default(),
            projected: Tiles::default(),
            gated: Tiles::default(),
            input: Activations::default(),
            inner: Activations::default(),
            partials: Vec::new(),
            rotations: Vec::new(),
        }
    }
}

impl Runtime {
    pub(super) fn isa(&self) -> Isa {
        self.isa
    }
}

impl Step<'_> {
    /// Runs the tokens; gives the logits of the wanted rows, or none after a cancel.
    pub(super) fn run(&mut self, tokens: &[i32], weights: &[u8], norms: &[f32]) -> Vec<f32> {
        let arena = &weights[self.start..];
        let width = self.config.width;
        let norm = |index: usize| &norms[index * width..][..width];
        self.cache.reserve(tokens.len());
        self.embed(tokens, arena);
        self.prepare_rotations(tokens.len());
        let layout = self.layout;
        for (index, layer) in layout.layers.iter().enumerate() {
            if self.cancel.is_cancelled() {
                self.cancelled = true;
                return Vec::new();
            }
            self.normalise(norm(2 * index), 0..tokens.len());
            self.project(layer, arena);
            self.store_kv(index);
            if tokens.len() == 1 {
                self.attend_one(index);
            } else {
                self.attend_all(index);
            }
            self.add_attention(layer, arena);
            self.normalise(norm(2 * index + 1), 0..tokens.len());
            self.feed_forward(layer, arena);
        }
        self.cache.advance(tokens.len());
        let wanted = match self.rows {
            Rows::None => return Vec::new(),
            Rows::Last => tokens.len() - 1..tokens.len(),
            Rows::All => 0..tokens.len(),
        };
        self.normalise(norm(2 * self.config.layers), wanted);
        self.logits(arena)
    }

    fn embed(&mut self, tokens: &[i32], arena: &[u8]) {
        let mut values = vec![0.0; self.config.width];
        self.runtime.hidden.reset(self.config.width, tokens.len());
        for (column, &token) in tokens.iter().enumerate() {
            read_row(&self.layout.embedding, arena, token as usize, &mut values);
            self.runtime.hidden.write(column, &values);
        }
    }

    /// Cosine and sine of each position's rotations, one pair of elements after the other.
    fn prepare_rotations(&mut self, count: usize) {
        let pairs = self.config.rotated / 2;
        let rotations = &mut self.runtime.rotations;
        rotations.clear();
        for position in self.cache.len()..self.cache.len() + count {
            for pair in 0..pairs {
                let exponent = -2.0 * pair as f64 / self.config.rotated as f64;
                let factor = self
                    .rope_factors
                    .map_or(1.0, |factors| f64::from(factors[pair]));
                let frequency = f64::from(self.config.rope_base).powf(exponent) / factor;
                let (sin, cos) = (position as f64 * frequency).sin_cos();
                rotations.push([cos as f32, sin as f32]);
            }
        }
    }

    /// Norms the given columns of the hidden state into `input`.
    fn normalise(&mut self, weight: &[f32], columns: Range<usize>) {
        let Runtime {
            pool,
            isa,
            hidden,
            input,
            ..
        } = &mut *self.runtime;
        let epsilon = self.config.epsilon;
        input.reset(self.config.width, columns.len());
        pool.pieces(
            &mut input.panels_mut(),
            1,
            || (),
            |(), index, panels| {
                for panel in panels {
                    for (offset, values) in panel.columns_mut().enumerate() {
                        hidden.read(columns.start + index * WIDE + offset, 0, values);
                        rms_norm(*isa, values, weight, epsilon);
                    }
                    panel.quantise(*isa);
                }
            },
        );
    }

    /// Queries, keys and values of all columns, rotated by their positions; queries scaled.
    fn project(&mut self, layer: &Layer, arena: &[u8]) {
        let Runtime {
            pool,
            isa,
            projected,
            input,
            rotations,
            ..
        } = &mut *self.runtime;
        let (head_len, rotated) = (self.config.head_len, self.config.rotated);
        let scale = 1.0 / (head_len as f32).sqrt();
        let (query_tiles, key_tiles) = (layer.query.tiles(), layer.key.tiles());
        let rows = layer.query.rows + layer.key.rows + layer.value.rows;
        projected.reset(rows, input.columns());
        pool.pieces(
            &mut projected.data,
            projected.stride,
            Scratch::default,
            |scratch, tile, out| {
                let (matrix, own_tile, scale) = if tile < query_tiles {
                    (&layer.query, tile, Some(scale))
                } else if tile < query_tiles + key_tiles {
                    (&layer.key, tile - query_tiles, Some(1.0))
                } else {
                    (&layer.value, tile - query_tiles - key_tiles, None)
                };
                let first = own_tile * TILE % head_len;
                product(
                    *isa,
                    [matrix],
                    arena,
                    own_tile,
                    input,
                    scratch,
                    |column, [values]| {
                        let out = &mut out[column * TILE..][..TILE];
                        out.copy_from_slice(values);
                        let Some(scale) = scale else { return };
                        if first < rotated {
                            let rotations = &rotations[(column * rotated + first) / 2..];
                            rotate(out, rotations);
                        }
                        out.iter_mut().for_each(|value| *value *= scale);
                    },
                );
            },
        );
    }

    fn store_kv(&mut self, layer: usize) {
        let Runtime { isa, projected, .. } = &mut *self.runtime;
        let head_len = self.config.head_len;
        let keys = self.config.heads * head_len;
        let values = keys + self.config.kv_heads * head_len;
        let (mut key, mut value) = (vec![0.0; head_len], vec![0.0; head_len]);
        let mut scratch = vec![0; head_len];
        for column in 0..projected.columns {
            let position = self.cache.len() + column;
            for head in 0..self.config.kv_heads {
                projected.read(column, keys + head * head_len, &mut key);
                projected.read(column, values + head * head_len, &mut value);
                self.cache
                    .write(*isa, (layer, head), position, &key, &value, &mut scratch);
            }
        }
    }

    /// Attention of a single column, shared out by KV head and segment.
    fn attend_one(&mut self, layer: usize) {
        let Runtime {
            pool,
            isa,
            projected,
            input,
            partials,
            ..
        } = &mut *self.runtime;
        let Config {
            heads,
            kv_heads,
            head_len,
            ..
        } = *self.config;
        let (group, cache) = (self.config.group(), &*self.cache);
        let positions = cache.len() + 1;
        let segments = positions.div_ceil(SEGMENT);
        partials.resize_with(segments * heads, || Partial::new(head_len));
        pool.pieces(
            partials,
            group,
            || (),
            |(), index, partials| {
                let (segment, kv_head) = (index / kv_heads, index % kv_heads);
                let queries: Vec<_> = projected.data[kv_head * group * head_len..]
                    .chunks_exact(head_len)
                    .take(group)
                    .map(|vector| Query { vector, positions })
                    .collect();
                attend_segment(*isa, cache, (layer, kv_head), segment, &queries, partials);
            },
        );
        let (merged, later) = partials.split_at_mut(heads);
        for later in later.chunks_exact(heads) {
            for (merged, later) in merged.iter_mut().zip(later) {
                merged.merge(later);
            }
        }
        input.reset(heads * head_len, 1);
        for mut panel in input.panels_mut() {
            for column in panel.columns_mut() {
                for (merged, out) in merged.iter().zip(column.chunks_exact_mut(head_len)) {
                    merged.write(out);
                }
            }
            panel.quantise(*isa);
        }
    }

    /// Attention of several columns, shared out by panels of columns.
    fn attend_all(&mut self, layer: usize) {
        let Runtime {
            pool,
            isa,
            projected,
            input,
            ..
        } = &mut *self.runtime;
        let Config {
            heads,
            kv_heads,
            head_len,
            ..
        } = *self.config;
        let (group, cache) = (self.config.group(), &*self.cache);
        input.reset(heads * head_len, projected.columns);
        let state = || {
            let queries = WIDE * group;
            let partials = vec![Partial::new(head_len); queries];
            (vec![0.0; queries * head_len], partials.clone(), partials)
        };
        pool.pieces(&mut input.panels_mut(), 1, state, |state, index, panels| {
            let (vectors, partials, merged) = state;
            for panel in panels {
                let mut outs: Vec<_> = panel.columns_mut().collect();
                let first = index * WIDE;
                let last = first + outs.len();
                for kv_head in 0..kv_heads {
                    let mut queries = Vec::with_capacity(outs.len() * group);
                    for (at, vector) in vectors.chunks_exact_mut(head_len).enumerate() {
                        let (column, head) = (first + at / group, kv_head * group + at % group);
                        if column < last {
                            projected.read(column, head * head_len, vector);
                            queries.push(Query {
                                vector,
                                positions: cache.len() + column + 1,
                            });
                        }
                    }
                    merged.iter_mut().for_each(Partial::clear);
                    for segment in 0..(cache.len() + last).div_ceil(SEGMENT) {
                        attend_segment(*isa, cache, (layer, kv_head), segment, &queries, partials);
                        for (merged, partial) in merged.iter_mut().zip(&*partials) {
                            merged.merge(partial);
                        }
                    }
                    for (at, merged) in merged.iter().take(queries.len()).enumerate() {
                        let head = kv_head * group + at % group;
                        merged.write(&mut outs[at / group][head * head_len..][..head_len]);
                    }
                }
                panel.quantise(*isa);
            }
        });
    }

    /// Adds the attention's output product to the hidden state.
    fn add_attention(&mut self, layer: &Layer, arena: &[u8]) {
        let Runtime {
            pool,
            isa,
            hidden,
            input,
            ..
        } = &mut *self.runtime;
        add_product(pool, *isa, &layer.attention_out, arena, input, hidden);
    }

    fn feed_forward(&mut self, layer: &Layer, arena: &[u8]) {
        let Runtime {
            pool,
            isa,
            hidden,
            gated,
            input,
            inner,
            ..
        } = &mut *self.runtime;
        let matrices = [&layer.gate, &layer.up];
        gated.reset(self.config.hidden, input.columns());
        pool.pieces(
            &mut gated.data,
            gated.stride,
            Scratch::default,
            |scratch, tile, out| {
                let out = out.as_chunks_mut::<TILE>().0;
                product(
                    *isa,
                    matrices,
                    arena,
                    tile,
                    input,
                    scratch,
                    |column, [gate, up]| {
                        swiglu(*isa, gate, up, &mut out[column]);
                    },
                );
            },
        );
        inner.reset(self.config.hidden, gated.columns);
        pool.pieces(
            &mut inner.panels_mut(),
            1,
            || (),
            |(), index, panels| {
                for panel in panels {
                    for (offset, values) in panel.columns_mut().enumerate() {
                        gated.read(index * WIDE + offset, 0, values);
                    }
                    panel.quantise(*isa);
                }
            },
        );
        add_product(pool, *isa, &layer.down, arena, inner, hidden);
    }

    /// Logits of the columns in `input`, one row each.
    fn logits(&mut self, arena: &[u8]) -> Vec<f32> {
        let Runtime {
            pool, isa, input, ..
        } = &mut *self.runtime;
        let matrix = &self.layout.output;
        let mut tiles = Tiles::default();
        tiles.reset(matrix.rows, input.columns());
        pool.pieces(
            &mut tiles.data,
            tiles.stride,
            Scratch::default,
            |scratch, tile, out| {
                product(
                    *isa,
                    [matrix],
                    arena,
                    tile,
                    input,
                    scratch,
                    |column, [values]| {
                        out[column * TILE..][..TILE].copy_from_slice(values);
                    },
                );
            },
        );
        if tiles.columns == 1 {
            tiles.data.truncate(matrix.rows);
            return tiles.data;
        }
        let mut rows = vec![0.0; tiles.columns * matrix.rows];
        for (column, row) in rows.chunks_exact_mut(matrix.rows).enumerate() {
            tiles.read(column, 0, row);
        }
        rows
    }
}

/// Rotates adjacent pairs, as GGUF files of this family want it.
fn rotate(values: &mut [f32], rotations: &[[f32; 2]]) {
    for (pair, [cos, sin]) in values.as_chunks_mut::<2>().0.iter_mut().zip(rotations) {
        let [a, b] = *pair;
        *pair = [a * cos - b * sin, a * sin + b * cos];
    }
}
