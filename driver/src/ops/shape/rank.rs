//! RANK: the number of dimensions of a tensor.
//!
//! Input: a tensor of any type. Output: an INT32 scalar.
//!
//! Source: NNAPI 1.3 `types.hal`, `OperationType::RANK`.

use burst_hal::HalVersion::V1_3;
use burst_hal::OperationType;

use crate::op::types::{I32, TB8, TF16, TF32, TI32, TQ8, TQ8PC, TQ8S, TQ8SYMM, TQ16A, TQ16S};
use crate::op::{Form, Inferred, OpDef, OpTraits, Plain, Run, Signature, TypeSet};
use crate::tensor::Args;
use crate::{OpError, SignatureError};

/// The definition of RANK.
pub static DEF: OpDef = OpDef {
    code: OperationType::Rank,
    validate,
    body: &Plain { infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const ANY: TypeSet =
    TF32.or(TF16).or(TI32).or(TB8).or(TQ8).or(TQ8S).or(TQ8SYMM).or(TQ8PC).or(TQ16A).or(TQ16S);

fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    const FORMS: &[Form] = &[Form::new(V1_3, &[ANY], &[I32])];
    signature.expect_forms(FORMS)
}

/// The answer is a scalar, whatever the question.
fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    args.input(0)?;
    Ok(Inferred::one([].as_slice()))
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    let rank = i32::try_from(run.input(0)?.dims.len())
        .map_err(|_| OpError::Range { what: "number of dimensions" })?;
    run.output(0)?.i32_mut()?.fill(rank);
    Ok(())
}

#[cfg(test)]
mod tests {
    use burst_hal::OperandType;

    use super::*;
    use crate::ops::testing::{Tensor, has_form, run_one};

    #[test]
    fn dimensions_are_counted() {
        for (dims, want) in [(&[1][..], 1), (&[1, 1, 1], 3), (&[2, 1], 2)] {
            let count: u32 = dims.iter().product();
            let input = Tensor::bool8(dims, &vec![0; count as usize]);
            let got = run_one(&DEF, &[input], Tensor::output(OperandType::Int32)).unwrap();
            assert_eq!(got.values::<i32>(), [want]);
            assert!(got.dims.is_empty());
        }
    }

    #[test]
    fn tensors_of_any_type_have_a_rank_and_scalars_have_none() {
        for ty in OperandType::ALL.iter().filter(|ty| !ty.is_oem()) {
            let has = has_form(&DEF, V1_3, &[*ty], &[OperandType::Int32]);
            assert_eq!(has, ty.is_tensor(), "{ty:?}");
        }
    }
}
