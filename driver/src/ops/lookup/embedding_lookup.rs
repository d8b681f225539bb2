//! EMBEDDING_LOOKUP: rows of a table, by their positions.
//!
//! Inputs: INT32 positions `[k]`, table `[rows, ...]` of two or more dimensions. Output: `[k, ...]`.
//! A position outside of the table is an error.
//!
//! Source: NNAPI `types.hal`, `OperationType::EMBEDDING_LOOKUP`.

use burst_hal::HalVersion::{V1_0, V1_2, V1_3};
use burst_hal::OperationType;

use crate::OpError;
use crate::op::types::{TF16, TF32, TI32, TQ8, TQ8S};
use crate::op::{Form, Inferred, OpDef, OpTraits, Plain, Run, Signature};
use crate::ops::lookup::rows::{Table, list_length, rows_of};
use crate::ops::quantization::rules::expect_same;
use crate::tensor::Args;

/// The definition of EMBEDDING_LOOKUP.
pub static DEF: OpDef = OpDef {
    code: OperationType::EmbeddingLookup,
    validate,
    body: &Plain { infer, prepare: None, execute },
    traits: OpTraits::PLAIN.no_zero_sized(),
};

const FORMS: &[Form] = &[
    Form::new(V1_0, &[TI32, TF32], &[TF32]),
    Form::new(V1_2, &[TI32, TI32], &[TI32]),
    Form::new(V1_2, &[TI32, TQ8], &[TQ8]),
    Form::new(V1_3, &[TI32, TF16], &[TF16]),
    Form::new(V1_3, &[TI32, TQ8S], &[TQ8S]),
];

fn validate(signature: &Signature<'_>) -> Result<(), crate::SignatureError> {
    signature.expect_forms(FORMS)
}

fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    let (output, _) = args.outputs.first().ok_or(OpError::Arity { want: 1, got: 0 })?;
    expect_same(args.input(1)?.info, output)?;
    let count = list_length(args.dims(0)?)?;
    let table = args.dims(1)?;
    if table.len() < 2 {
        return Err(OpError::shape("a table of fewer than two dimensions", table, &[]));
    }
    rows_of(table, count).map(Inferred::one)
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    let positions = run.input(0)?;
    let table = Table::new(&run.input(1)?)?;
    let mut checkpoints = run.stop.checkpoints();
    let rows = run.output(0)?.bytes_mut().chunks_exact_mut(table.row_bytes());
    for (row, position) in rows.zip(positions.i32()?) {
        checkpoints.after(1 + row.len() / 16)?;
        let found = usize::try_from(*position).ok().and_then(|position| table.row(position));
        row.copy_from_slice(found.ok_or(OpError::value("position in a table", *position))?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Tensor, has_form, run_one};
    use burst_hal::OperandType::{
        TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm, TensorQuant8AsymmSigned,
    };

    #[test]
    fn rows_come_in_the_order_of_the_positions() {
        let table = Tensor::f32(&[3, 1, 2], &[0.0, 1.0, 10.0, 11.0, 20.0, 21.0]);
        let lookup = |positions: &[i32]| {
            let count = u32::try_from(positions.len()).unwrap();
            let positions = Tensor::i32(&[count], positions);
            run_one(&DEF, &[positions, table.clone()], Tensor::output(TensorFloat32))
        };
        let got = lookup(&[2, 0, 2, 1]).unwrap();
        assert_eq!(got.values::<f32>(), [20.0, 21.0, 0.0, 1.0, 20.0, 21.0, 10.0, 11.0]);
        assert_eq!(got.dims.as_slice(), [4, 1, 2]);
        for outside in [3, -1, i32::MIN, i32::MAX] {
            assert!(lookup(&[0, outside]).is_err(), "{outside}");
        }
        assert!(lookup(&[]).is_err());
    }

    #[test]
    fn stored_values_are_copied_as_they_are() {
        let positions = Tensor::i32(&[1], &[1]);
        let table = Tensor::i8(&[2, 2], &[1, 2, -3, 4], 0.5, -1);
        let out = Tensor::output(TensorQuant8AsymmSigned);
        let list = [positions, table];
        let got = run_one(&DEF, &list, out.clone().quantized(0.5, -1)).unwrap();
        assert_eq!(got.values::<i8>(), [-3, 4]);
        assert!(run_one(&DEF, &list, out.quantized(0.25, -1)).is_err());
    }

    #[test]
    fn a_list_is_no_table() {
        let list = [Tensor::i32(&[1], &[0]), Tensor::f32(&[2], &[0.0, 1.0])];
        assert!(run_one(&DEF, &list, Tensor::output(TensorFloat32)).is_err());
        let list = [Tensor::i32(&[1, 1], &[0]), Tensor::f32(&[1, 1], &[0.0])];
        assert!(run_one(&DEF, &list, Tensor::output(TensorFloat32)).is_err());
    }

    #[test]
    fn forms_come_with_their_version() {
        for (ty, since) in [
            (TensorFloat32, V1_0),
            (TensorInt32, V1_2),
            (TensorQuant8Asymm, V1_2),
            (TensorFloat16, V1_3),
            (TensorQuant8AsymmSigned, V1_3),
        ] {
            for version in [V1_0, V1_2, V1_3] {
                let has = has_form(&DEF, version, &[TensorInt32, ty], &[ty]);
                assert_eq!(has, version >= since, "{ty} in {version}");
            }
        }
    }
}
