//! What looks up rows, hashes, and draws.

use burst_hal::{OperationType as Op, OutputSpec};

use super::Make;
use super::grower::{Grower, Within};
use super::shape::int;
use super::value::{F16, F32, FLOATS, I32, NUMBERS, TQ8};

pub(super) const RECIPES: &[(Op, Make)] = &[
    (Op::EmbeddingLookup, embedding_lookup),
    (Op::HashtableLookup, hashtable_lookup),
    (Op::LshProjection, lsh_projection),
    (Op::RandomMultinomial, random_multinomial),
];

fn embedding_lookup(g: &mut Grower<'_>) {
    let x = g.tensor(NUMBERS, 2..=4);
    let count = g.rng.size(1, 4);
    let last = int(x.dims[0]) - 1;
    let rows: Vec<i32> = (0..count).map(|_| g.rng.int(0, last)).collect();
    let mut dims = x.dims.clone();
    dims[0] = count;
    let list = g.list(&[count], &rows);
    g.apply(Op::EmbeddingLookup, &[list, x.operand], x.with(&dims), x.bound);
}

fn hashtable_lookup(g: &mut Grower<'_>) {
    let x = g.tensor(&[F32, I32, TQ8], 2..=4);
    let count = g.rng.size(1, 4);
    let keys: Vec<i32> = (0..x.dims[0]).map(|row| 3 * int(row)).collect();
    let last = 3 * int(x.dims[0]);
    let wanted: Vec<i32> = (0..count).map(|_| g.rng.int(0, last)).collect();
    let mut dims = x.dims.clone();
    dims[0] = count;
    let lists = [g.list(&[count], &wanted), g.list(&[x.dims[0]], &keys)];
    let hits = OutputSpec::new(TQ8, &[count]).quantized(1.0, 0);
    let outputs = [(x.with(&dims), x.bound), (hits, 1.0)];
    g.apply_many(Op::HashtableLookup, &[lists[0], lists[1], x.operand], &outputs);
}

/// Bits of a signature, which a row's place is added above.
const MAX_BITS: u32 = 8;

fn lsh_projection(g: &mut Grower<'_>) {
    let ty = g.rng.one_of(FLOATS);
    let [hashes, bits] = [g.rng.size(1, 4), g.rng.size(1, MAX_BITS)];
    let seeds = g.random_constant(OutputSpec::new(ty, &[hashes, bits]), Within::USUAL);
    // The last bit of an item decides all bits of its hash.
    let x = g.exact_tensor(&[F32, F16, I32, TQ8], 1..=4);
    // Sparse ones of two kinds know no weights.
    let kind = g.rng.int(1, 3);
    let is_dense = kind == 2;
    let weights = if is_dense {
        g.leaf_of(OutputSpec::new(ty, &[x.dims[0]]), Within(0.1, 2.0)).operand
    } else {
        g.b.omitted(ty)
    };
    let kind = g.b.scalar_i32(kind);
    let dims = if is_dense { [hashes * bits] } else { [hashes] };
    let inputs = [seeds.operand, x.operand, weights, kind];
    g.apply(Op::LshProjection, &inputs, OutputSpec::new(I32, &dims), 2000.0);
}

fn random_multinomial(g: &mut Grower<'_>) {
    // Where no class can be drawn, as none is a number, that is an error.
    let (ty, dims) = (g.rng.one_of(FLOATS), g.dims(2..=2));
    let x = g.finite_leaf(OutputSpec::new(ty, &dims), Within(-4.0, 4.0));
    let draws = g.rng.size(1, 8);
    let count = g.b.scalar_i32(int(draws));
    let seeds = [g.rng.int(0, 1000), g.rng.int(0, 1000)];
    let seeds = g.list(&[2], &seeds);
    let out = OutputSpec::new(I32, &[x.dims[0], draws]);
    g.apply(Op::RandomMultinomial, &[x.operand, count, seeds], out, 1000.0);
}
