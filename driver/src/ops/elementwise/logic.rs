//! What LOGICAL_AND and LOGICAL_OR share: two BOOL8 inputs that broadcast.

use burst_hal::HalVersion::V1_2;

use crate::op::types::TB8;
use crate::op::{Form, Inferred, Run, Signature};
use crate::ops::broadcast::{Side, broadcast_shape, zip};
use crate::tensor::Args;
use crate::{OpError, SignatureError};

pub(super) fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    const FORMS: &[Form] = &[Form::new(V1_2, &[TB8, TB8], &[TB8])];
    signature.expect_forms(FORMS)
}

pub(super) fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    Ok(Inferred::one(broadcast_shape(args.dims(0)?, args.dims(1)?)?))
}

/// Combines truth values: any byte but 0 is true, and true is written as 1.
pub(super) fn execute(
    run: &mut Run<'_, '_>,
    combine: impl Fn(bool, bool) -> bool + Sync,
) -> Result<(), OpError> {
    let (a, b) = (run.input(0)?, run.input(1)?);
    let a = Side { values: a.u8()?, dims: a.dims };
    let b = Side { values: b.u8()?, dims: b.dims };
    let (out, mut runner) = run.output_and_runner()?;
    zip(&mut runner, out.u8_mut()?, a, b, |x, y| combine(x != 0, y != 0).into())
}
