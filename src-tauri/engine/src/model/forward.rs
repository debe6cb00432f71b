//! One step: runs of tokens, each of a sequence of its own, through all layers on the threads of the
//! pool.
//!
//! Hidden states between phases lie tile by tile (`[tile][column][16]`), so that the rows that a
//! thread computes are one piece of memory.

use super::config::{Activation, Config};
use super::op::{Rows, Run};
use super::plan::Plan;
use super::product::{Scratch, Tiles, add_product, product};
use super::weights::{Layer, Layout};
use crate::attention::{Partial, Query, attend};
use crate::kernels::{Activations, Isa, TILE, WIDE, geglu, read_row, rms_norm, swiglu};
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
    plan: Plan,
    partials: Vec<Partial>,
    /// Of layers that see all, and of those that see a window.
    rotations: [Vec<[f32; 2]>; 2],
    /// What a layer gives, where that is normed before it is added.
    given: Tiles,
}

/// What a step works on.
pub(crate) struct Step<'a, 'r> {
    pub(super) config: &'a Config,
    pub(super) layout: &'a Layout,
    pub(super) start: usize,
    pub(super) rope_factors: Option<&'a [f32]>,
    pub(super) runtime: &'a mut Runtime,
    pub(super) runs: &'a mut [Run<'r>],
    pub(super) cancelled: &'a dyn Fn() -> bool,
    pub(super) outcome: Outcome,
}

/// How a step went.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) cancelled: bool,
    /// The first layer after which each run's hidden state was not finite, for runs that failed.
    pub(super) broken: Vec<Option<usize>>,
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
            plan: Plan::default(),
            partials: Vec::new(),
            rotations: Default::default(),
            given: Tiles::default(),
        }
    }
}

impl Runtime {
    pub(super) fn pool(&mut self) -> &mut Pool {
        &mut self.pool
    }

    pub(super) fn isa(&self) -> Isa {
        self.isa
    }
}

impl Step<'_, '_> {
    /// Runs the tokens of all runs; gives the logits of the wanted rows, run by run, or none after
    /// a cancel.
    pub(super) fn run(&mut self, tokens: &[i32], weights: &[u8], vectors: &[f32]) -> Vec<f32> {
        let arena = &weights[self.start..];
        let width = self.config.width;
        let norm = |at: usize| &vectors[at..][..width];
        let threads = self.runtime.pool.threads();
        self.runtime.plan = Plan::new(self.runs, self.config.kv_heads, threads);
        for run in &mut *self.runs {
            run.cache.reserve(run.tokens.len());
        }
        self.outcome.broken = vec![None; self.runs.len()];
        self.embed(tokens, arena);
        self.prepare_rotations();
        let layout = self.layout;
        let all: Vec<usize> = (0..tokens.len()).collect();
        for (index, layer) in layout.layers.iter().enumerate() {
            if (self.cancelled)() {
                self.outcome.cancelled = true;
                return Vec::new();
            }
            let post = layer.post_norms.map(|norms| norms.map(norm));
            self.normalise(norm(layer.attention_norm), &all);
            self.project(index, arena, vectors);
            self.store_kv(index);
            self.attend(index);
            self.add_attention(layer, arena, post.map(|[norm, _]| norm));
            self.normalise(norm(layer.feed_forward_norm), &all);
            self.feed_forward(layer, arena, post.map(|[_, norm]| norm));
            self.find_broken(index);
        }
        for run in &mut *self.runs {
            run.cache.advance(run.tokens.len());
        }
        let wanted = self.wanted();
        if wanted.is_empty() {
            return Vec::new();
        }
        self.normalise(norm(layout.output_norm), &wanted);
        self.logits(arena)
    }

    /// The columns whose logits are wanted.
    fn wanted(&self) -> Vec<usize> {
        let mut wanted = Vec::new();
        let mut first = 0;
        for run in &*self.runs {
            let last = first + run.tokens.len();
            match run.rows {
                Rows::None => (),
                Rows::Last => wanted.extend((first..last).last()),
                Rows::All => wanted.extend(first..last),
            }
            first = last;
        }
        wanted
    }

    /// Finds the runs whose hidden state is not finite any more.
    fn find_broken(&mut self, layer: usize) {
        let Runtime { hidden, plan, .. } = &*self.runtime;
        if hidden.is_finite() {
            return;
        }
        for (index, column) in plan.columns.iter().enumerate() {
            let broken = &mut self.outcome.broken[column.run];
            if broken.is_none() && !hidden.column_is_finite(index) {
                *broken = Some(layer);
            }
        }
    }

    fn embed(&mut self, tokens: &[i32], arena: &[u8]) {
        let mut values = vec![0.0; self.config.width];
        self.runtime.hidden.reset(self.config.width, tokens.len());
        for (column, &token) in tokens.iter().enumerate() {
            read_row(&self.layout.embedding, arena, token as usize, &mut values);
            if let Some(scale) = self.config.embedding_scale {
                values.iter_mut().for_each(|value| *value *= scale);
            }
            self.runtime.hidden.write(column, &values);
        }
    }

    /// Cosine and sine of each column's rotations, one pair of elements after the other.
    fn prepare_rotations(&mut self) {
        let Config { rope, window, .. } = self.config;
        let mut bases = vec![(
            f64::from(rope.base),
            f64::from(rope.factor),
            self.rope_factors,
        )];
        bases.extend(window.map(|window| (f64::from(window.rope_base), 1.0, None)));
        let rotated = self.config.rotated;
        let Runtime {
            rotations, plan, ..
        } = &mut *self.runtime;
        for (rotations, (base, factor, factors)) in rotations.iter_mut().zip(bases) {
            rotations.clear();
            for position in plan.columns.iter().map(|column| column.position) {
                for pair in 0..rotated / 2 {
                    let exponent = -2.0 * pair as f64 / rotated as f64;
                    let own = factors.map_or(1.0, |factors| f64::from(factors[pair]));
                    let frequency = base.powf(exponent) / own / factor;
                    let (sin, cos) = (position as f64 * frequency).sin_cos();
                    rotations.push([cos as f32, sin as f32]);
                }
            }
        }
    }

    /// Norms the given columns of the hidden state into `input`.
    fn normalise(&mut self, weight: &[f32], columns: &[usize]) {
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
                    let columns = &columns[index * WIDE..];
                    for (&column, values) in columns.iter().zip(panel.columns_mut()) {
                        hidden.read(column, 0, values);
                        rms_norm(*isa, values, weight, epsilon);
                    }
                    panel.quantise(*isa);
                }
            },
        );
    }

    /// Queries, keys and values of all columns, rotated by their positions; queries scaled.
    fn project(&mut self, index: usize, arena: &[u8], vectors: &[f32]) {
        let layer = &self.layout.layers[index];
        let local = usize::from(self.config.window_of(index).is_some());
        let Runtime {
            pool,
            isa,
            projected,
            input,
            rotations,
            ..
        } = &mut *self.runtime;
        let rotations = &rotations[local];
        let (head_len, rotated) = (self.config.head_len, self.config.rotated);
        let scale = self.config.query_scale;
        let (query_tiles, key_tiles) = (layer.query.tiles(), layer.key.tiles());
        let rows = layer.query.rows + layer.key.rows + layer.value.rows;
        projected.reset(rows, input.columns());
        pool.pieces(
            &mut projected.data,
            projected.stride,
            Scratch::default,
            |scratch, tile, out| {
                let (which, matrix, own_tile, scale) = if tile < query_tiles {
                    (0, &layer.query, tile, Some(scale))
                } else if tile < query_tiles + key_tiles {
                    (1, &layer.key, tile - query_tiles, Some(1.0))
                } else {
                    (2, &layer.value, tile - query_tiles - key_tiles, None)
                };
                let first = own_tile * TILE % head_len;
                let bias = layer
                    .biases
                    .map(|biases| &vectors[biases[which] + own_tile * TILE..]);
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
                        for (out, bias) in out.iter_mut().zip(bias.unwrap_or_default()) {
                            *out += bias;
                        }
                        // A norm of the head comes before its rotation.
                        let Some(scale) = scale.filter(|_| layer.head_norms.is_none()) else {
                            return;
                        };
                        if first < rotated {
                            let rotations = &rotations[(column * rotated + first) / 2..];
                            rotate(out, rotations);
                        }
                        out.iter_mut().for_each(|value| *value *= scale);
                    },
                );
            },
        );
        if let Some(norms) = layer.head_norms {
            let norms = norms.map(|at| &vectors[at..][..head_len]);
            self.norm_heads(local, norms);
        }
    }

    /// Norms, rotates and scales each head's query and key.
    fn norm_heads(&mut self, local: usize, norms: [&[f32]; 2]) {
        let Runtime {
            pool,
            isa,
            projected,
            rotations,
            ..
        } = &mut *self.runtime;
        let Config {
            heads,
            kv_heads,
            head_len,
            rotated,
            epsilon,
            query_scale,
            ..
        } = *self.config;
        let (columns, stride) = (projected.columns, projected.stride);
        let size = head_len / TILE * stride;
        pool.pieces(
            &mut projected.data[..(heads + kv_heads) * size],
            size,
            || vec![0.0; head_len],
            |values, head, tiles| {
                let (norm, scale) = if head < heads {
                    (norms[0], query_scale)
                } else {
                    (norms[1], 1.0)
                };
                for column in 0..columns {
                    let at = |tile: usize| tile * stride + column * TILE;
                    for (tile, values) in values.chunks_exact_mut(TILE).enumerate() {
                        values.copy_from_slice(&tiles[at(tile)..][..TILE]);
                    }
                    rms_norm(*isa, values, norm, epsilon);
                    let rotations = &rotations[local][column * rotated / 2..];
                    rotate(&mut values[..rotated], rotations);
                    for (tile, values) in values.chunks_exact(TILE).enumerate() {
                        let out = &mut tiles[at(tile)..][..TILE];
                        for (out, value) in out.iter_mut().zip(values) {
                            *out = value * scale;
                        }
                    }
                }
            },
        );
    }

    fn store_kv(&mut self, layer: usize) {
        let Runtime {
            isa,
            projected,
            plan,
            ..
        } = &mut *self.runtime;
        let head_len = self.config.head_len;
        let keys = self.config.heads * head_len;
        let values = keys + self.config.kv_heads * head_len;
        let (mut key, mut value) = (vec![0.0; head_len], vec![0.0; head_len]);
        let mut scratch = vec![0; head_len];
        for (index, column) in plan.columns.iter().enumerate() {
            let cache = &mut self.runs[column.run].cache;
            for head in 0..self.config.kv_heads {
                projected.read(index, keys + head * head_len, &mut key);
                projected.read(index, values + head * head_len, &mut value);
                let place = (layer, head);
                cache.write(*isa, place, column.position, &key, &value, &mut scratch);
            }
        }
    }

    /// Attention of all columns: the plan's tasks by KV head, and then what they found for each
    /// column, merged.
    fn attend(&mut self, layer: usize) {
        let Runtime {
            pool,
            isa,
            projected,
            input,
            plan,
            partials,
            ..
        } = &mut *self.runtime;
        let Config {
            heads,
            kv_heads,
            head_len,
            ..
        } = *self.config;
        let (group, runs) = (self.config.group(), &*self.runs);
        let window = self.config.window_of(layer).map(|window| window.positions);
        let share = plan.together * group;
        partials.resize_with(plan.tasks.len() * kv_heads * share, || {
            Partial::new(head_len)
        });
        let state = || {
            let partials = vec![Partial::new(head_len); share];
            (vec![0.0; share * head_len], partials)
        };
        pool.pieces(
            partials,
            share,
            state,
            |(vectors, partials), index, merged| {
                let (task, kv_head) = (&plan.tasks[index / kv_heads], index % kv_heads);
                let mut queries = Vec::with_capacity(share);
                for (at, vector) in vectors.chunks_exact_mut(head_len).enumerate() {
                    let Some(&column) = task.columns.get(at / group) else {
                        break;
                    };
                    let head = kv_head * group + at % group;
                    projected.read(column, head * head_len, vector);
                    let positions = plan.columns[column].position + 1;
                    queries.push(Query {
                        vector,
                        first: window.map_or(0, |window| positions.saturating_sub(window)),
                        positions,
                    });
                }
                let cache = &*runs[plan.columns[task.columns[0]].run].cache;
                let merged = &mut merged[..queries.len()];
                let (place, segments) = ((layer, kv_head), task.segments.clone());
                attend(*isa, cache, place, segments, &queries, merged, partials);
            },
        );
        input.reset(heads * head_len, projected.columns);
        let state = || Partial::new(head_len);
        pool.pieces(
            &mut input.panels_mut(),
            1,
            state,
            |merged, index, panels| {
                for panel in panels {
                    let parts = &plan.parts[index * WIDE..];
                    for (parts, column) in parts.iter().zip(panel.columns_mut()) {
                        for (head, out) in column.chunks_exact_mut(head_len).enumerate() {
                            let (kv_head, at) = (head / group, head % group);
                            merged.clear();
                            for (task, place) in parts {
                                let share_at = (task * kv_heads + kv_head) * share;
                                merged.merge(&partials[share_at + place * group + at]);
                            }
                            merged.write(out);
                        }
                    }
                    panel.quantise(*isa);
                }
            },
        );
    }

    /// Adds the attention's output product to the hidden state.
    fn add_attention(&mut self, layer: &Layer, arena: &[u8], norm: Option<&[f32]>) {
        let Runtime {
            pool,
            isa,
            hidden,
            input,
            given,
            ..
        } = &mut *self.runtime;
        let out = norm_first(hidden, given, norm);
        add_product(pool, *isa, &layer.attention_out, arena, input, out);
        self.add_given(norm);
    }

    /// Adds what a layer gave, normed, where that is to be done.
    fn add_given(&mut self, norm: Option<&[f32]>) {
        let Some(norm) = norm else { return };
        let Runtime {
            isa, hidden, given, ..
        } = &mut *self.runtime;
        let mut values = vec![0.0; self.config.width];
        for column in 0..given.columns {
            given.read(column, 0, &mut values);
            rms_norm(*isa, &mut values, norm, self.config.epsilon);
            hidden.add(column, &values);
        }
    }

    fn feed_forward(&mut self, layer: &Layer, arena: &[u8], norm: Option<&[f32]>) {
        let activation = self.config.activation;
        let Runtime {
            pool,
            isa,
            hidden,
            gated,
            input,
            inner,
            given,
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
                    |column, [gate, up]| match activation {
                        Activation::Silu => swiglu(*isa, gate, up, &mut out[column]),
                        Activation::Gelu => geglu(*isa, gate, up, &mut out[column]),
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
        let out = norm_first(hidden, given, norm);
        add_product(pool, *isa, &layer.down, arena, inner, out);
        self.add_given(norm);
    }

    /// The tiles of the output layer that are wanted, or none for all.
    fn wanted_tiles(&self) -> Option<Vec<bool>> {
        let mut tiles = vec![false; self.layout.output.tiles()];
        for run in self.runs.iter().filter(|run| run.rows != Rows::None) {
            for &id in run.among? {
                *tiles.get_mut(id as usize / TILE)? = true;
            }
        }
        Some(tiles)
    }

    /// Logits of the columns in `input`, one row each.
    fn logits(&mut self, arena: &[u8]) -> Vec<f32> {
        let wanted = self.wanted_tiles();
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
                if wanted.as_ref().is_some_and(|wanted| !wanted[tile]) {
                    out.fill(f32::NEG_INFINITY);
                    return;
                }
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

/// Where the product of a layer goes: to the hidden state, or by itself where it is normed first.
fn norm_first<'a>(
    hidden: &'a mut Tiles,
    given: &'a mut Tiles,
    norm: Option<&[f32]>,
) -> &'a mut Tiles {
    if norm.is_none() {
        return hidden;
    }
    given.data.clear();
    given.columns = hidden.columns;
    given.stride = hidden.stride;
    given.data.resize(hidden.data.len(), 0.0);
    given
}

/// Rotates adjacent pairs.
fn rotate(values: &mut [f32], rotations: &[[f32; 2]]) {
    for (pair, [cos, sin]) in values.as_chunks_mut::<2>().0.iter_mut().zip(rotations) {
        let [a, b] = *pair;
        *pair = [a * cos - b * sin, a * sin + b * cos];
    }
}
