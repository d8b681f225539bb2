//! RANDOM_MULTINOMIAL: draws of classes, each as likely as `exp` of its logit.
//!
//! Inputs: logits `[batch, classes]`, number of draws (INT32 scalar, above 0), INT32 seeds `[2]`.
//! Output: INT32 classes `[batch, draws]`. A logit that is not finite stands for a class that is
//! never drawn. The same seeds give the same draws; with two seeds of 0 every execution draws anew.
//!
//! Source: NNAPI 1.2 `types.hal`, `OperationType::RANDOM_MULTINOMIAL`.

use std::hash::{BuildHasher, Hasher, RandomState};

use burst_hal::HalVersion::V1_2;
use burst_hal::{OperandType, OperationType};

use crate::OpError;
use crate::op::types::{I32, TF16, TF32, TI32};
use crate::op::{
    Form, Inferred, OpDef, OpTraits, Operands, Parsed, Run, Signature, WithAttributes,
};
use crate::ops::attributes::positive_i32;
use crate::ops::lookup::philox::uniform;
use crate::tensor::{Args, TensorRef};

/// The definition of RANDOM_MULTINOMIAL.
pub static DEF: OpDef = OpDef {
    code: OperationType::RandomMultinomial,
    validate,
    body: &WithAttributes { parse, infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized().impure(),
};

const FORMS: &[Form] =
    &[Form::new(V1_2, &[TF32, I32, TI32], &[TI32]), Form::new(V1_2, &[TF16, I32, TI32], &[TI32])];

/// Draws between two looks at the deadline.
const DRAWS_PER_CHECK: usize = 4096;

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

/// How often is drawn from each batch.
fn parse(operands: &dyn Operands) -> Result<u32, OpError> {
    positive_i32(operands, 1, "number of draws")
}

fn infer(args: &Args<'_>, draws: Parsed<'_, u32>) -> Result<Inferred, OpError> {
    let draws = *draws?;
    let seeds = args.dims(2)?;
    if seeds != [2] {
        return Err(OpError::shape("seeds", seeds, &[2]));
    }
    let logits = args.dims(0)?;
    match *logits {
        // Classes must be numbers that the output has room for.
        [batches, classes] if batches > 0 && (1..=i32::MAX as u32).contains(&classes) => {
            Ok(Inferred::one([batches, draws].as_slice()))
        }
        _ => Err(OpError::shape("logits", logits, &[1, 1])),
    }
}

fn execute(run: &mut Run<'_, '_>, _: &u32) -> Result<(), OpError> {
    let (logits, stop) = (run.input(0)?, run.stop);
    let [batches, classes] = *logits.dims else {
        return Err(OpError::shape("logits", logits.dims, &[1, 1]));
    };
    let key = key(run.input(2)?.i32()?)?;
    let classes = classes as usize;
    let sums = run.scratch.f32(classes)?;
    let [out] = &mut *run.outputs else {
        return Err(OpError::Arity { want: 1, got: run.outputs.len() });
    };
    let out = out.i32_mut()?;
    let draws = out.len() / (batches as usize).max(1);
    let mut index = 0;
    for (batch, row) in out.chunks_exact_mut(draws.max(1)).enumerate() {
        running_sums(&logits, batch * classes, sums)?;
        for part in row.chunks_mut(DRAWS_PER_CHECK) {
            stop.check()?;
            for class in part {
                *class = draw(sums, uniform(index, key));
                index += 1;
            }
        }
    }
    Ok(())
}

/// The generator's key. Two seeds of 0 ask for any; a new hasher's keys come from the system.
#[allow(clippy::cast_possible_truncation, reason = "both halves are used")]
fn key(seeds: &[i32]) -> Result<[u32; 2], OpError> {
    match *seeds {
        [0, 0] => {
            let random = RandomState::new().build_hasher().finish();
            Ok([random as u32, (random >> 32) as u32])
        }
        [a, b] => Ok([a.cast_unsigned(), b.cast_unsigned()]),
        _ => Err(OpError::Range { what: "number of seeds" }),
    }
}

/// Fills `sums` with the sums of the weights of all classes up to each. The weight of the likeliest
/// class is 1.
fn running_sums(logits: &TensorRef<'_>, first: usize, sums: &mut [f32]) -> Result<(), OpError> {
    let range = first..first + sums.len();
    let short = OpError::Internal { what: "a tensor is shorter than its shape" };
    match logits.info.ty {
        OperandType::TensorFloat16 => {
            for (sum, logit) in sums.iter_mut().zip(logits.f16()?.get(range).ok_or(short)?) {
                *sum = logit.to_f32();
            }
        }
        _ => sums.copy_from_slice(logits.f32()?.get(range).ok_or(short)?),
    }
    let finite = sums.iter().copied().filter(|logit| logit.is_finite());
    let largest = finite.fold(f32::NEG_INFINITY, f32::max);
    let mut total = 0.0;
    for sum in sums {
        if sum.is_finite() {
            total += f64::from(*sum - largest).exp();
        }
        #[allow(clippy::cast_possible_truncation, reason = "rounded sums still ascend")]
        let rounded = total as f32;
        *sum = rounded;
    }
    if total > 0.0 { Ok(()) } else { Err(OpError::Range { what: "logits: no class can be drawn" }) }
}

/// The class whose part of the total a number in `0..1` falls into.
fn draw(sums: &[f32], number: f64) -> i32 {
    let total = sums.last().copied().map_or(0.0, f64::from);
    // The product may round up to the total, where no class is left.
    let point = (number * total).min(total.next_down());
    let class = sums.partition_point(|sum| f64::from(*sum) <= point);
    i32::try_from(class).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, run_one};

    fn draws(logits: Tensor, count: i32, seeds: [i32; 2]) -> Result<Vec<i32>, OpError> {
        let list = [logits, Tensor::scalar_i32(count), Tensor::i32(&[2], &seeds)];
        run_one(&DEF, &list, Tensor::output(OperandType::TensorInt32)).map(|got| got.values())
    }

    #[test]
    fn classes_are_drawn_as_often_as_they_are_likely() {
        // Weights 1, 2 and 5, the second batch the other way round, with a large common factor.
        let logits = [0.0, 2f32.ln(), 5f32.ln(), 50.0 + 5f32.ln(), 50.0 + 2f32.ln(), 50.0];
        for logits in [Tensor::f32(&[2, 3], &logits), Tensor::f16(&[2, 3], &logits)] {
            let got = draws(logits, 8000, [3, 4]).unwrap();
            for (batch, wants) in got.chunks(8000).zip([[1000, 2000, 5000], [5000, 2000, 1000]]) {
                for (class, want) in (0..).zip(wants) {
                    let count = batch.iter().filter(|drawn| **drawn == class).count();
                    // Standard deviations are below 44; a half near 52 is off by up to 1.6 %.
                    assert!(count.abs_diff(want) < 250, "class {class}: {count} of {want}");
                }
            }
        }
    }

    #[test]
    fn classes_without_weight_are_never_drawn() {
        let logits = [f32::NEG_INFINITY, 0.0, f32::NAN, -1000.0, f32::INFINITY];
        let got = draws(Tensor::f32(&[1, 5], &logits), 1000, [1, 0]).unwrap();
        assert!(got.iter().all(|class| *class == 1));
        assert!(draws(Tensor::f32(&[1, 1], &[f32::NAN]), 1, [1, 1]).is_err());
    }

    #[test]
    fn ends_of_the_range_fall_into_the_outer_classes() {
        let sums = [0.0, 1.0, 1.0, 3.0, 3.0];
        for (number, class) in [(0.0, 1), (0.333, 1), (0.334, 3), (1f64.next_down(), 3)] {
            assert_eq!(draw(&sums, number), class, "{number}");
        }
    }

    #[test]
    fn seeds_decide() {
        let logits = || Tensor::f32(&[1, 1000], &[0.0; 1000]);
        let with = |seeds| draws(logits(), 100, seeds).unwrap();
        assert_eq!(with([5, 6]), with([5, 6]));
        assert_ne!(with([5, 6]), with([6, 5]));
        assert_ne!(with([0, 0]), with([0, 0]), "1000^100 to 1 against");
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let logits = Tensor::f32(&[1, 2], &[0.0; 2]);
        for count in [0, -1, i32::MIN] {
            assert!(draws(logits.clone(), count, [1, 2]).is_err(), "{count} draws");
        }
        assert!(draws(Tensor::f32(&[2], &[0.0; 2]), 1, [1, 2]).is_err());
        assert!(draws(Tensor::f32(&[1, 0], &[]), 1, [1, 2]).is_err());
        let list = [logits, Tensor::scalar_i32(1), Tensor::i32(&[3], &[1, 2, 3])];
        assert!(run_one(&DEF, &list, Tensor::output(OperandType::TensorInt32)).is_err());
    }
}
