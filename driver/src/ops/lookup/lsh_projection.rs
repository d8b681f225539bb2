//! LSH_PROJECTION: a short signature of a list of items, such that similar lists have similar ones
//! (locality-sensitive hashing).
//!
//! Inputs: hash seeds `[hashes, bits]` with at most 32 bits, items `[n, ...]` of any type, weights
//! `[n]` (optional), kind. Output: for DENSE one INT32 per bit `[hashes * bits]`, for SPARSE one
//! INT32 per hash `[hashes]` with its bits, the first one highest.
//!
//! A bit is the sign of the weighted sum over items of a 64-bit fingerprint of seed and item.
//! SPARSE adds `hash * 2^bits`, so that different hashes have different signatures. DENSE needs
//! weights; both sparse kinds must have none.
//!
//! Source: NNAPI 1.0 and 1.2 `types.hal`, `OperationType::LSH_PROJECTION`.

use burst_hal::HalVersion::{V1_0, V1_2};
use burst_hal::{OperandType, OperationType};

use crate::OpError;
use crate::op::types::{I32, TF16, TF32, TI32, TQ8};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, TypeSet, WithAttributes,
};
use crate::ops::lookup::fingerprint::fingerprint64;
use crate::tensor::{Args, TensorRef, Value};

/// The definition of LSH_PROJECTION.
pub static DEF: OpDef = OpDef {
    code: OperationType::LshProjection,
    validate,
    body: &WithAttributes { parse: Kind::parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN.omit(&[2]).no_zero_sized(),
};

const OLD_ITEM: TypeSet = TF32.or(TI32).or(TQ8);
const ITEM: TypeSet = OLD_ITEM.or(TF16);
const FORMS: &[Form] = &[
    Form::new(V1_0, &[TF32, OLD_ITEM, TF32, I32], &[TI32]),
    Form::new(V1_2, &[TF32, ITEM, TF32, I32], &[TI32]),
    Form::new(V1_2, &[TF16, ITEM, TF16, I32], &[TI32]),
];

const SEEDS: usize = 0;
const ITEMS: usize = 1;
const WEIGHTS: usize = 2;
const KIND: usize = 3;

/// Bits that a signature has room for.
const MAX_BITS: u32 = 32;

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// SPARSE without the part that tells hashes apart.
    SparseDeprecated,
    Dense,
    Sparse,
}

impl Kind {
    fn parse(operands: &dyn Operands) -> Result<Self, OpError> {
        let code = operands.i32(KIND)?;
        Ok(match code {
            1 => Kind::SparseDeprecated,
            2 => Kind::Dense,
            3 => Kind::Sparse,
            _ => return Err(OpError::value("kind of projection", code)),
        })
    }

    fn check_weights(self, given: bool) -> Result<(), OpError> {
        match (self, given) {
            (Kind::Dense, false) => Err(OpError::Omitted { index: WEIGHTS }),
            (Kind::Sparse | Kind::SparseDeprecated, true) => {
                Err(OpError::Range { what: "number of inputs: a sparse projection has no weights" })
            }
            _ => Ok(()),
        }
    }
}

fn infer(args: &Args<'_>, kind: Parsed<'_, Kind>) -> Result<Inferred, OpError> {
    let kind = *kind?;
    match args.input(WEIGHTS)?.value {
        Value::Unknown => {}
        value => kind.check_weights(matches!(value, Value::Bytes(_)))?,
    }
    let (hashes, bits) = seed_counts(args.dims(SEEDS)?)?;
    let items = args.dims(ITEMS)?;
    if items.is_empty() || items.contains(&0) {
        return Err(OpError::shape("items to project", items, &[]));
    }
    let count = match kind {
        Kind::Dense => hashes.checked_mul(bits).ok_or(OpError::Range { what: "number of bits" })?,
        Kind::Sparse | Kind::SparseDeprecated => hashes,
    };
    Ok(Inferred::one([count].as_slice()))
}

/// How many hashes there are, and bits of each.
fn seed_counts(seeds: &[u32]) -> Result<(u32, u32), OpError> {
    match *seeds {
        [hashes, bits @ 1..=MAX_BITS] if hashes > 0 => Ok((hashes, bits)),
        _ => Err(OpError::shape("seeds of a projection", seeds, &[1, MAX_BITS])),
    }
}

fn execute(run: &mut Run<'_, '_>, kind: &Kind) -> Result<(), OpError> {
    let weights = run.optional(WEIGHTS);
    kind.check_weights(weights.is_some())?;
    let (seeds, items, stop) = (run.input(SEEDS)?, run.input(ITEMS)?, run.stop);
    let (_, bits) = seed_counts(seeds.dims)?;
    let projection = Projection::new(items, weights)?;
    let key = run.scratch.u8(SEED_BYTES + projection.item_bytes)?;
    let [out] = &mut *run.outputs else {
        return Err(OpError::Arity { want: 1, got: run.outputs.len() });
    };
    let out = out.i32_mut()?;
    let mut bit = |index: usize| -> Result<u32, OpError> {
        stop.check()?;
        projection.bit(float(&seeds, index)?, key).map(u32::from)
    };
    for (index, value) in out.iter_mut().enumerate() {
        if *kind == Kind::Dense {
            *value = bit(index)?.cast_signed();
            continue;
        }
        let first = index * bits as usize;
        let mut signature = 0u32;
        for position in first..first + bits as usize {
            signature = signature << 1 | bit(position)?;
        }
        if *kind == Kind::Sparse {
            signature = signature.wrapping_add(offset(index, bits));
        }
        *value = signature.cast_signed();
    }
    Ok(())
}

/// `hash * 2^bits`, of which only the low 32 bits count.
#[allow(clippy::cast_possible_truncation, reason = "the arithmetic is modulo 2^32")]
fn offset(hash: usize, bits: u32) -> u32 {
    ((hash as u64) << bits) as u32
}

/// Seeds are hashed as `f32`, whatever type they have.
const SEED_BYTES: usize = size_of::<f32>();

/// Element `index` of a float tensor.
fn float(tensor: &TensorRef<'_>, index: usize) -> Result<f32, OpError> {
    let value = match tensor.info.ty {
        OperandType::TensorFloat16 => tensor.f16()?.get(index).map(|half| half.to_f32()),
        _ => tensor.f32()?.get(index).copied(),
    };
    value.ok_or(OpError::Internal { what: "a tensor is shorter than its shape" })
}

/// Items with their weights.
struct Projection<'a> {
    items: &'a [u8],
    item_bytes: usize,
    weights: Option<TensorRef<'a>>,
}

impl<'a> Projection<'a> {
    fn new(items: TensorRef<'a>, weights: Option<TensorRef<'a>>) -> Result<Self, OpError> {
        let count = items.dims.first().copied().unwrap_or(0);
        if let Some(weights) = weights
            && weights.dims != [count]
        {
            return Err(OpError::shape("items and their weights", items.dims, weights.dims));
        }
        let bytes = items.bytes.ok_or(OpError::Omitted { index: ITEMS })?;
        let item_bytes = bytes.len().checked_div(count as usize).filter(|bytes| *bytes > 0);
        let item_bytes = item_bytes.ok_or(OpError::shape("items", items.dims, &[]))?;
        Ok(Projection { items: bytes, item_bytes, weights })
    }

    /// Whether the weighted sum of the items' fingerprints with this seed is above 0. `key` is
    /// room for a seed and an item.
    fn bit(&self, seed: f32, key: &mut [u8]) -> Result<bool, OpError> {
        let (front, back) = key.split_at_mut(SEED_BYTES);
        front.copy_from_slice(&seed.to_le_bytes());
        back.copy_from_slice(&self.items[..self.item_bytes]);
        let mut score = 0.0;
        for (index, item) in self.items.chunks_exact(self.item_bytes).enumerate() {
            key[SEED_BYTES..].copy_from_slice(item);
            #[allow(clippy::cast_precision_loss, reason = "the definition says so")]
            let value = fingerprint64(key).cast_signed() as f64;
            score += match &self.weights {
                Some(weights) => f64::from(float(weights, index)?) * value,
                None => value,
            };
        }
        Ok(score > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, has_form, run_one};

    /// Seeds whose bits for the only item are known: see `known_bits`.
    fn inputs(kind: i32, weight: Option<f32>) -> Vec<Tensor> {
        vec![
            Tensor::f32(&[2, 2], &[0.5, 1.5, 2.5, 3.5]),
            Tensor::i32(&[1, 1], &[77]),
            weight.map_or(Tensor::omitted(OperandType::TensorFloat32), |w| Tensor::f32(&[1], &[w])),
            Tensor::scalar_i32(kind),
        ]
    }

    fn values(list: &[Tensor]) -> Result<Vec<i32>, OpError> {
        let out = Tensor::output(OperandType::TensorInt32);
        run_one(&DEF, list, out).map(|got| got.values())
    }

    /// The top bits of the fingerprints of the eight bytes of each seed and the item; a number is
    /// above 0 when its top bit is clear.
    fn known_bits() -> [u32; 4] {
        [0.5f32, 1.5, 2.5, 3.5].map(|seed| {
            let mut key = [0; 8];
            key[..4].copy_from_slice(&seed.to_le_bytes());
            key[4..].copy_from_slice(&77i32.to_le_bytes());
            u32::from(fingerprint64(&key) >> 63 == 0)
        })
    }

    #[test]
    fn every_kind_packs_the_same_bits() {
        let [a, b, c, d] = known_bits().map(u32::cast_signed);
        assert_eq!(values(&inputs(1, None)).unwrap(), [2 * a + b, 2 * c + d]);
        assert_eq!(values(&inputs(3, None)).unwrap(), [2 * a + b, 4 + 2 * c + d]);
        assert_eq!(values(&inputs(2, Some(0.1))).unwrap(), [a, b, c, d]);
        assert_eq!(values(&inputs(2, Some(-0.1))).unwrap(), [1 - a, 1 - b, 1 - c, 1 - d]);
        // A sum of 0 is not above 0.
        assert_eq!(values(&inputs(2, Some(0.0))).unwrap(), [0; 4]);
    }

    #[test]
    fn dense_needs_weights_and_sparse_has_none() {
        assert!(values(&inputs(2, None)).is_err());
        assert!(values(&inputs(1, Some(1.0))).is_err());
        assert!(values(&inputs(3, Some(1.0))).is_err());
        for kind in [0, 4, -1] {
            assert!(values(&inputs(kind, None)).is_err(), "{kind}");
        }
        let mut list = inputs(2, None);
        list[WEIGHTS] = Tensor::f32(&[2], &[1.0, 1.0]);
        assert!(values(&list).is_err(), "two weights for one item");
    }

    #[test]
    fn signatures_have_at_most_32_bits() {
        let mut list = inputs(3, None);
        list[SEEDS] = Tensor::f32(&[2, 32], &[0.5; 64]);
        let all = if known_bits()[0] == 1 { -1 } else { 0 };
        assert_eq!(values(&list).unwrap(), [all, all], "2^32 does not count");
        list[SEEDS] = Tensor::f32(&[1, 33], &[0.5; 33]);
        assert!(values(&list).is_err());
    }

    #[test]
    fn items_may_be_halves_since_1_2() {
        use OperandType::{Int32, TensorFloat16, TensorFloat32, TensorInt32};
        let form = |version, item, seed| {
            has_form(&DEF, version, &[seed, item, seed, Int32], &[TensorInt32])
        };
        assert!(form(V1_0, TensorInt32, TensorFloat32));
        assert!(!form(V1_0, TensorFloat16, TensorFloat32));
        assert!(form(V1_2, TensorFloat16, TensorFloat32));
        assert!(form(V1_2, TensorFloat32, TensorFloat16));
    }
}
