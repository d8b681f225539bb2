//! A model as a client sends it, changed anywhere, then prepared and executed.
//!
//! Looked at: all that the contract promises of any model ([`burst_verify::fuzzing`]), within the memory that one
//! judged model may have, and its time.

use burst_hal::{ExecutionPreference, PrepareOptions, Priority};
use burst_verify::fuzzing::{Made, judge_made, judge_model, made_of, model_of};
use burst_wire::control::{decode_model, encode_model};

use crate::device::is_grown;
use crate::judged::{device, succeeded};
use crate::{Input, Script, Seed, seed};

/// From this first byte on the model is chosen, and not there byte by byte.
const CHOSEN_FROM: u8 = 192;
/// Most bytes of a chosen model that are changed.
const CHANGES_MAX: usize = 8;

/// A model as it is sent, or the choices of which one is made and changed.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    match input.u8() {
        CHOSEN_FROM.. => chosen(&mut input),
        preference => sent(preference, &mut input),
    }
}

/// How it is prepared (two bytes), the choices of which requests are made, the values of constants, each with
/// its length before it, and the structure.
fn sent(preference: u8, input: &mut Input<'_>) -> bool {
    let options = PrepareOptions {
        preference: ExecutionPreference::from_code(preference.into())
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

/// The choices of which a model is made with their length before them; how many of its bytes are changed, and where
/// each is and what becomes of it; choices of which requests are made.
fn chosen(input: &mut Input<'_>) -> bool {
    let count = input.u8().into();
    let made = made_of(input.bytes(count));
    let Ok((mut structure, _)) = encode_model(&made.model) else { return false };
    let mut values = made.model.operand_values.to_vec();
    for _ in 0..input.below(CHANGES_MAX + 1) {
        let is_value = input.below(4) == 3;
        let bytes = if is_value { &mut values } else { &mut structure };
        let (at, change) = (input.u16().into(), input.u8());
        if let Some(at) = usize::checked_rem(at, bytes.len()) {
            bytes[at] ^= change;
        }
    }
    match decode_model(&structure, values.into(), made.model.pools.clone()) {
        Ok(model) => succeeded(judge_made(&**device(), &Made { model, ..made }, input.rest())),
        Err(_) => false,
    }
}

/// The models of the target `device`, as they are sent; those of the generator, as they are chosen, each with a
/// few bytes changed, or none.
pub fn seeds() -> Vec<Seed> {
    let (grown, models): (Vec<_>, Vec<_>) = crate::device::seeds().into_iter().partition(is_grown);
    let changes: [&[u8]; 3] = [&[0], &[1, 0, 9, 0, 1], &[2, 3, 40, 0, 128, 1, 77, 0, 2]];
    let chosen = grown.iter().zip(changes.into_iter().cycle()).map(|((name, bytes), change)| {
        let length = u8::try_from(bytes.len()).unwrap();
        let script = Script::new().bytes(&[CHOSEN_FROM, length]).bytes(bytes).bytes(change);
        seed(name, script.bytes(&[0, 1, 2, 3, 4, 5, 6, 7]))
    });
    let sent = models.iter().filter_map(|(name, bytes)| {
        let model = model_of(bytes);
        let (structure, _) = encode_model(&model).ok()?;
        let values = u16::try_from(model.operand_values.len()).ok()?;
        let script = Script::new().bytes(&[1, 1, 8, 0, 1, 2, 3, 4, 5, 6, 7]).u16(values);
        Some(seed(name, script.bytes(&model.operand_values).bytes(&structure)))
    });
    sent.chain(chosen).collect()
}
