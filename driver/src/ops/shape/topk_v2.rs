//! TOPK_V2: the largest values along the last dimension.
//!
//! Inputs: a tensor, how many to find (INT32, 1 to the size of the last dimension). Outputs: the
//! values, largest first, and where they were (INT32). Of equal values the last one comes first, as in
//! the reference; the documentation leaves it open. A NaN counts as less than everything.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::TOPK_V2`.

use std::cmp::Ordering;

use burst_hal::HalVersion::{V1_2, V1_3};
use burst_hal::{Dimensions, OperandType, OperationType};
use half::f16;

use super::common;
use crate::op::types::{I32, TF16, TF32, TI32, TQ8, TQ8S};
use crate::op::{
    Checkpoints, Form, Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, Stop,
    WithAttributes,
};
use crate::ops::attributes::positive_i32;
use crate::ops::quantization::rules::expect_same_outputs;
use crate::tensor::Args;
use crate::{OpError, SignatureError};

/// The definition of TOPK_V2.
pub static DEF: OpDef = OpDef {
    code: OperationType::TopkV2,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[
    Form::new(V1_2, &[TF32, I32], &[TF32, TI32]),
    Form::new(V1_2, &[TF16, I32], &[TF16, TI32]),
    Form::new(V1_2, &[TI32, I32], &[TI32, TI32]),
    Form::new(V1_2, &[TQ8, I32], &[TQ8, TI32]),
    Form::new(V1_3, &[TQ8S, I32], &[TQ8S, TI32]),
];

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    signature.expect_forms(FORMS)
}

/// How many values to find.
fn parse(operands: &dyn Operands) -> Result<u32, OpError> {
    positive_i32(operands, 1, "number of largest values")
}

fn infer(args: &Args<'_>, k: Parsed<'_, u32>) -> Result<Inferred, OpError> {
    expect_same_outputs(args, 0)?;
    let mut shape = Dimensions::from_slice(args.dims(0)?);
    let k = *k?;
    let last = shape.last_mut().filter(|last| k <= **last);
    *last.ok_or(OpError::value("number of largest values", k))? = k;
    Ok(Inferred::many([shape.clone(), shape]))
}

fn execute(run: &mut Run<'_, '_>, k: &u32) -> Result<(), OpError> {
    if common::writes_nothing(run)? {
        return Ok(());
    }
    let input = run.input(0)?;
    let last = input.dims.last().map_or(0, |last| *last as usize);
    let k = *k as usize;
    let work = (run.scratch.i32(work(last))?, run.stop);
    let [values, indices] = run.outputs else {
        return Err(OpError::Arity { want: 2, got: run.outputs.len() });
    };
    let indices = indices.i32_mut()?;
    match input.info.ty {
        OperandType::TensorFloat32 => {
            find((input.f32()?, last), (values.f32_mut()?, indices), k, work, |a, b| {
                real_order(*a, *b)
            })
        }
        OperandType::TensorFloat16 => {
            let halves = |a: &f16, b: &f16| real_order(a.to_f32(), b.to_f32());
            find((input.f16()?, last), (values.f16_mut()?, indices), k, work, halves)
        }
        OperandType::TensorInt32 => {
            find((input.i32()?, last), (values.i32_mut()?, indices), k, work, i32::cmp)
        }
        OperandType::TensorQuant8Asymm => {
            find((input.u8()?, last), (values.u8_mut()?, indices), k, work, u8::cmp)
        }
        OperandType::TensorQuant8AsymmSigned => {
            find((input.i8()?, last), (values.i8_mut()?, indices), k, work, i8::cmp)
        }
        got => Err(OpError::Type { want: "a type with an order", got }),
    }
}

/// A total order: sorting by one that is not may panic. 0 and -0 are equal, NaNs are too and come
/// before everything else.
fn real_order(a: f32, b: f32) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}

/// Positions that are put in order without a look at the deadline: some milliseconds.
const SORTED_AT_ONCE: usize = 1 << 15;

/// Numbers of working memory that [`find`] needs for a row of so many values.
fn work(last: usize) -> usize {
    // Two lists, where sorted runs are merged.
    if last > SORTED_AT_ONCE { last.saturating_mul(2) } else { last }
}

/// Finds the `k` largest of each row of `len` values.
fn find<T: Copy>(
    (input, len): (&[T], usize),
    (values, indices): (&mut [T], &mut [i32]),
    k: usize,
    (work, stop): (&mut [i32], Stop<'_>),
    compare: impl Fn(&T, &T) -> Ordering,
) -> Result<(), OpError> {
    if len == 0 || k == 0 || k > len || i32::try_from(len).is_err() {
        return Err(OpError::Internal { what: "no row has that many values" });
    }
    let mut checkpoints = stop.checkpoints();
    let rows = input.chunks_exact(len);
    for ((row, values), indices) in
        rows.zip(values.chunks_exact_mut(k)).zip(indices.chunks_exact_mut(k))
    {
        checkpoints.after(len.min(SORTED_AT_ONCE))?;
        let value = |index: i32| &row[usize::try_from(index).unwrap_or_default()];
        let largest_first = |a: &i32, b: &i32| compare(value(*b), value(*a)).then(b.cmp(a));
        let order = if len > SORTED_AT_ONCE {
            best_of_long_row(len, k, work, &mut checkpoints, largest_first)?
        } else {
            let order = &mut work[..len];
            order.iter_mut().zip(0..).for_each(|(order, index)| *order = index);
            order.select_nth_unstable_by(k - 1, largest_first);
            order[..k].sort_unstable_by(largest_first);
            &order[..k]
        };
        for ((to, at), index) in values.iter_mut().zip(indices).zip(order) {
            *to = *value(*index);
            *at = *index;
        }
    }
    Ok(())
}

/// The first `k` positions of a long row in order, found in parts.
fn best_of_long_row<'w>(
    len: usize,
    k: usize,
    work: &'w mut [i32],
    checkpoints: &mut Checkpoints<'_>,
    order: impl Fn(&i32, &i32) -> Ordering + Copy,
) -> Result<&'w [i32], OpError> {
    let (mut from, mut to) = work.split_at_mut(len);
    if k <= SORTED_AT_ONCE / 2 {
        // The best of the best so far and of the next part.
        let (candidates, mut best) = (&mut from[..SORTED_AT_ONCE], 0);
        let mut positions = 0..i32::try_from(len).unwrap_or(i32::MAX);
        loop {
            let mut count = best;
            for (slot, position) in candidates[best..].iter_mut().zip(positions.by_ref()) {
                *slot = position;
                count += 1;
            }
            checkpoints.after(2 * count)?;
            if count <= k {
                candidates[..count].sort_unstable_by(order);
            } else {
                candidates[..count].select_nth_unstable_by(k - 1, order);
            }
            if positions.is_empty() {
                candidates[..k].sort_unstable_by(order);
                return Ok(&from[..k]);
            }
            best = k;
        }
    }
    from.iter_mut().zip(0..).for_each(|(slot, position)| *slot = position);
    for part in from.chunks_mut(SORTED_AT_ONCE) {
        checkpoints.after(part.len() * part.len().ilog2() as usize)?;
        part.sort_unstable_by(order);
    }
    let mut run = SORTED_AT_ONCE;
    while run < len {
        for (from, to) in from.chunks(2 * run).zip(to.chunks_mut(2 * run)) {
            let (left, right) = from.split_at(run.min(from.len()));
            let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
            for to in to.chunks_mut(SORTED_AT_ONCE) {
                checkpoints.after(to.len())?;
                for slot in to {
                    let is_left = match (left.peek(), right.peek()) {
                        (Some(a), Some(b)) => order(a, b) != Ordering::Greater,
                        (left, _) => left.is_some(),
                    };
                    let next = if is_left { left.next() } else { right.next() };
                    *slot = next.copied().unwrap_or_default();
                }
            }
        }
        std::mem::swap(&mut from, &mut to);
        run = run.saturating_mul(2);
    }
    Ok(&from[..k])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_rows_are_put_in_order_in_parts() {
        for len in [SORTED_AT_ONCE + 1, 2 * SORTED_AT_ONCE, 5 * SORTED_AT_ONCE + 17] {
            // Many equal values, in no order.
            let row: Vec<u8> = (0..len as u64)
                .map(|index| (index.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58) as u8)
                .collect();
            let mut want: Vec<i32> = (0..).take(len).collect();
            let at = |index: &i32| row[usize::try_from(*index).unwrap()];
            want.sort_by_key(|index| (std::cmp::Reverse(at(index)), -*index));
            for k in [1, 5, SORTED_AT_ONCE / 2, SORTED_AT_ONCE / 2 + 1, len - 1, len] {
                let (mut values, mut indices) = (vec![0; k], vec![0; k]);
                let out = (values.as_mut_slice(), indices.as_mut_slice());
                let mut work = vec![-1; work(len)];
                let work = (work.as_mut_slice(), Stop::default());
                find((&row, len), out, k, work, u8::cmp).unwrap();
                assert!(indices == want[..k], "{k} of {len}");
                assert!(values.iter().zip(&indices).all(|(value, index)| *value == at(index)));
            }
        }
    }
    use crate::ops::testing::{Tensor, infer, run};

    fn largest(input: Tensor, k: i32) -> (Tensor, Vec<i32>) {
        let values = Tensor::output(input.info.ty);
        let values = values.quantized(input.info.scale, input.info.zero_point);
        let indices = Tensor::output(OperandType::TensorInt32);
        let mut got = run(&DEF, &[input, Tensor::scalar_i32(k)], &[values, indices]).unwrap();
        let indices = got.remove(1).values();
        (got.remove(0), indices)
    }

    #[test]
    fn rows_are_searched_one_by_one() {
        let input = Tensor::f32(&[2, 3], &[1.0, 3.0, 2.0, -1.0, -3.0, -2.0]);
        let (values, indices) = largest(input, 2);
        assert_eq!(values.dims.as_slice(), [2, 2]);
        assert_eq!(values.values::<f32>(), [3.0, 2.0, -1.0, -2.0]);
        assert_eq!(indices, [1, 2, 0, 2]);
    }

    #[test]
    fn every_type_has_its_own_order() {
        let (values, indices) = largest(Tensor::i32(&[3], &[i32::MIN, 5, -1]), 3);
        assert_eq!((values.values::<i32>(), indices), (vec![5, -1, i32::MIN], vec![1, 2, 0]));
        let (values, indices) = largest(Tensor::u8(&[3], &[200, 100, 255], 0.5, 3), 2);
        assert_eq!((values.values::<u8>(), indices), (vec![255, 200], vec![2, 0]));
        let (values, indices) = largest(Tensor::i8(&[3], &[-56, 100, -1], 0.5, 3), 2);
        assert_eq!((values.values::<i8>(), indices), (vec![100, -1], vec![1, 2]));
        let (values, indices) = largest(Tensor::f16(&[3], &[0.5, -0.5, 0.25]), 1);
        assert_eq!((values.halves(), indices), (vec![0.5], vec![0]));
    }

    /// The reference sorts pairs of value and index downwards.
    #[test]
    fn of_equal_values_the_last_comes_first() {
        let (_, indices) = largest(Tensor::i32(&[5], &[7, 9, 7, 9, 7]), 4);
        assert_eq!(indices, [3, 1, 4, 2]);
        let (_, indices) = largest(Tensor::f32(&[2], &[0.0, -0.0]), 2);
        assert_eq!(indices, [1, 0], "0 and -0 are equal");
    }

    /// Comparisons with NaN are all false, which is no order; something has to be decided.
    #[test]
    fn a_nan_is_never_among_the_largest_while_others_are_left() {
        let input = Tensor::f32(&[5], &[f32::NAN, 1.0, f32::NEG_INFINITY, f32::NAN, 2.0]);
        let (values, indices) = largest(input, 4);
        assert_eq!(indices, [4, 1, 2, 3]);
        assert!(values.values::<f32>()[3].is_nan());
    }

    #[test]
    fn there_must_be_that_many() {
        let out =
            [Tensor::output(OperandType::TensorInt32), Tensor::output(OperandType::TensorInt32)];
        for (k, fine) in [(1, true), (2, true), (3, false), (0, false), (-1, false)] {
            let inputs = [Tensor::i32(&[3, 2], &[0; 6]), Tensor::scalar_i32(k)];
            assert_eq!(infer(&DEF, &inputs, &out).is_ok(), fine, "{k}");
        }
    }

    /// The last dimension of an empty tensor can be anything: it must not size our own tables.
    #[test]
    fn an_empty_tensor_takes_no_working_memory() {
        let (values, indices) = largest(Tensor::f32(&[0, u32::MAX], &[]), 2);
        assert_eq!(values.dims.as_slice(), [0, 2]);
        assert!(indices.is_empty());
    }
}
