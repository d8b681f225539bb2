//! A model as a client sends it, changed anywhere, then prepared and executed.
//!
//! Looked at: all that the contract promises of any model ([`burst_verify::fuzzing`]), within the memory that one
//! judged model may have, and its time.

use burst_hal::{ExecutionPreference, PrepareOptions, Priority};
use burst_verify::fuzzing::{judge_model, model_of};
use burst_wire::control::{decode_model, encode_model};

use crate::judged::{device, succeeded};
use crate::{Input, Script, Seed, seed};

/// How it is prepared (two bytes), the choices of which requests are made, the values of constants, each with
/// its length before it, and the structure.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let options = PrepareOptions {
        preference: ExecutionPreference::from_code(input.u8().into())
            .unwrap_or(ExecutionPreference::FastSingleAnswer),
        priority: Priority::from_code(input.u8().into()).unwrap_or(Priority::Medium),
        deadline: None,
    };
    let count = input.u8().into();
    let choices = input.bytes(count);
    let count = input.u16().into();
    let values = input.bytes(count).to_vec();
    match decode_model(input.rest(), values.into(), Vec::new()) {
        Ok(model) => succeeded(judge_model(&**device(), &model, &options, choices)),
        Err(_) => false,
    }
}

/// The models of the target `device`, as they are sent.
pub fn seeds() -> Vec<Seed> {
    let models = crate::device::seeds().into_iter();
    models
        .filter_map(|(name, bytes)| {
            let model = model_of(&bytes);
            let (structure, _) = encode_model(&model).ok()?;
            let values = u16::try_from(model.operand_values.len()).ok()?;
            let script = Script::new().bytes(&[1, 1, 8, 0, 1, 2, 3, 4, 5, 6, 7]).u16(values);
            Some(seed(&name, script.bytes(&model.operand_values).bytes(&structure)))
        })
        .collect()
}
