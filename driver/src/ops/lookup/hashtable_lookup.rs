//! HASHTABLE_LOOKUP: rows of a table, by their keys.
//!
//! Inputs: INT32 lookups `[k]`, INT32 keys `[n]` in ascending order, values `[n, ...]`. Outputs: the
//! row of each lookup `[k, ...]`, all bytes 0 where its key is not there; 1 or 0 `[k]` for there or
//! not.
//!
//! Source: NNAPI `types.hal`, `OperationType::HASHTABLE_LOOKUP`.

use burst_hal::HalVersion::V1_0;
use burst_hal::{Dimensions, OperationType};

use crate::OpError;
use crate::op::types::{TF32, TI32, TQ8};
use crate::op::{Form, Inferred, OpDef, OpTraits, Plain, Run, Signature};
use crate::ops::lookup::rows::{Table, list_length, rows_of};
use crate::ops::quantization::rules::expect_same;
use crate::tensor::Args;

/// The definition of HASHTABLE_LOOKUP.
pub static DEF: OpDef = OpDef {
    code: OperationType::HashtableLookup,
    validate,
    body: &Plain { infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[
    Form::new(V1_0, &[TI32, TI32, TF32], &[TF32, TQ8]),
    Form::new(V1_0, &[TI32, TI32, TI32], &[TI32, TQ8]),
    Form::new(V1_0, &[TI32, TI32, TQ8], &[TQ8, TQ8]),
];

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    let (output, _) = args.outputs.first().ok_or(OpError::Arity { want: 2, got: 0 })?;
    expect_same(args.input(2)?.info, output)?;
    let count = list_length(args.dims(0)?)?;
    let (keys, values) = (args.dims(1)?, args.dims(2)?);
    if values.first() != Some(&list_length(keys)?) {
        return Err(OpError::shape("keys and the values they are for", keys, values));
    }
    Ok(Inferred::many([rows_of(values, count)?, Dimensions::from_slice(&[count])]))
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    let (lookups, keys) = (run.input(0)?.i32()?, run.input(1)?.i32()?);
    let values = Table::new(&run.input(2)?)?;
    let find = |lookup| keys.binary_search(lookup).ok().and_then(|index| values.row(index));
    let mut checkpoints = run.stop.checkpoints();
    let rows = run.output(0)?.bytes_mut().chunks_exact_mut(values.row_bytes());
    for (row, lookup) in rows.zip(lookups) {
        // A search, and a copy.
        checkpoints.after(keys.len().max(1).ilog2() as usize + row.len() / 16 + 1)?;
        match find(lookup) {
            Some(found) => row.copy_from_slice(found),
            None => row.fill(0),
        }
    }
    for (hit, lookup) in run.output(1)?.u8_mut()?.iter_mut().zip(lookups) {
        checkpoints.after(keys.len().max(1).ilog2() as usize + 1)?;
        *hit = u8::from(find(lookup).is_some());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, run};
    use burst_hal::OperandType::{TensorFloat32, TensorQuant8Asymm};

    #[test]
    fn lookups_hit_or_miss() {
        let list = [
            Tensor::i32(&[4], &[7, -5, 8, i32::MIN]),
            Tensor::i32(&[3], &[-5, 0, 7]),
            Tensor::f32(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        ];
        let outputs = [Tensor::output(TensorFloat32), Tensor::output(TensorQuant8Asymm)];
        let got = run(&DEF, &list, &outputs).unwrap();
        assert_eq!(got[0].values::<f32>(), [5.0, 6.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(got[0].dims.as_slice(), [4, 2]);
        assert_eq!(got[1].values::<u8>(), [1, 1, 0, 0]);
    }

    #[test]
    fn what_is_not_there_is_stored_0_not_real_0() {
        let list = [
            Tensor::i32(&[2], &[1, 2]),
            Tensor::i32(&[1], &[1]),
            Tensor::u8(&[1, 1], &[200], 0.5, 128),
        ];
        let values = Tensor::output(TensorQuant8Asymm).quantized(0.5, 128);
        let hits = Tensor::output(TensorQuant8Asymm).quantized(1.0, 0);
        let got = run(&DEF, &list, &[values, hits.clone()]).unwrap();
        assert_eq!(got[0].values::<u8>(), [200, 0]);
        let other = Tensor::output(TensorQuant8Asymm).quantized(0.5, 0);
        assert!(run(&DEF, &list, &[other, hits]).is_err());
    }

    #[test]
    fn keys_and_values_must_be_as_many() {
        let list =
            [Tensor::i32(&[1], &[1]), Tensor::i32(&[2], &[1, 2]), Tensor::i32(&[3, 1], &[1, 2, 3])];
        let outputs = [
            Tensor::output(burst_hal::OperandType::TensorInt32),
            Tensor::output(TensorQuant8Asymm),
        ];
        assert!(run(&DEF, &list, &outputs).is_err());
    }

    #[test]
    fn keys_in_disorder_are_no_danger() {
        let list = [
            Tensor::i32(&[3], &[1, 2, 3]),
            Tensor::i32(&[3], &[3, 1, 2]),
            Tensor::f32(&[3], &[30.0, 10.0, 20.0]),
        ];
        let outputs = [Tensor::output(TensorFloat32), Tensor::output(TensorQuant8Asymm)];
        let got = run(&DEF, &list, &outputs).unwrap();
        for (value, hit) in got[0].values::<f32>().into_iter().zip(got[1].values::<u8>()) {
            assert!(hit == 1 && value > 0.0 || hit == 0 && value == 0.0);
        }
    }
}
