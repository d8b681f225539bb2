//! MAGNITUDE: how far each value is from 0, as a float.

use burst_driver::op::{Args, Inferred, Plain, Run, Signature};
use burst_driver::{OpError, SignatureError};
use burst_hal::OperandType;

use crate::{FRACTION_BITS, NAME, TENSOR_COMPLEX_Q15};

pub(crate) static BODY: Plain = Plain { infer, prepare: None, execute };

pub(crate) fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    let value = signature.input(0);
    let is_value = value.is_some_and(|input| signature.is_type(input, NAME, TENSOR_COMPLEX_Q15));
    let is_float = signature.output(0).is_some_and(|out| out.ty == OperandType::TensorFloat32);
    let counts = (signature.inputs().len(), signature.outputs().len());
    if counts == (1, 1) && is_value && is_float { Ok(()) } else { Err(signature.no_form()) }
}

fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    Ok(Inferred::one(args.dims(0)?))
}

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    let values = run.input(0)?.i16()?.as_chunks::<2>().0;
    let one = f32::from(1_u16 << FRACTION_BITS);
    let mut checkpoints = run.stop.checkpoints();
    let output = run.output(0)?.f32_mut()?;
    for (output, value) in output.iter_mut().zip(values) {
        checkpoints.after(1)?;
        let [real, imaginary] = value.map(|part| f32::from(part) / one);
        *output = real.hypot(imaginary);
    }
    Ok(())
}
