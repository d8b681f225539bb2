//! States of recurrent models: outputs that are inputs of the next run.
//!
//! A state has two slots in the pool of the outputs, and requests name them alternately as input
//! and as output: a driver reads the one and writes the other, and nothing is copied between runs.

use super::error::LayoutError;
use crate::{Model, OperandType};

/// An output that is an input of the next run: a state, such as that of a recurrent layer.
///
/// The first run, and the one after a reset, begins with what lies in the input's own memory: real
/// 0 in every element (the zero point of its type), unless somebody wrote something else there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateBinding {
    /// Position among the model's inputs.
    pub input: usize,
    /// Position among the model's outputs.
    pub output: usize,
}

impl StateBinding {
    /// Checks that each pair is an input and an output of one type and shape, and that none is
    /// used twice.
    ///
    /// # Errors
    /// [`LayoutError::NotAState`] with the first pair that is not.
    pub fn check(states: &[StateBinding], model: &Model) -> Result<(), LayoutError> {
        let operand = |list: &[u32], at: usize| {
            let index = list.get(at)?;
            model.main.operands.get(*index as usize)
        };
        for (at, &StateBinding { input, output }) in states.iter().enumerate() {
            let before = operand(&model.main.input_indexes, input);
            let after = operand(&model.main.output_indexes, output);
            let alike = before
                .zip(after)
                .is_some_and(|(one, two)| one.ty == two.ty && one.dimensions == two.dimensions);
            let twice = states[..at].iter().any(|one| one.input == input || one.output == output);
            if !alike || twice {
                return Err(LayoutError::NotAState { input, output });
            }
        }
        Ok(())
    }
}

/// Which buffer holds the current value of every state, and so which request comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StatePhase {
    /// The memory of the inputs: the values that states begin with.
    #[default]
    Initial,
    /// Their first slots among the outputs.
    First,
    /// Their second slots.
    Second,
}

impl StatePhase {
    /// Every phase.
    pub const ALL: [StatePhase; 3] = [StatePhase::Initial, StatePhase::First, StatePhase::Second];

    /// The phase after a run that began in this one.
    #[must_use]
    pub const fn next(self) -> Self {
        match self {
            StatePhase::Initial | StatePhase::Second => StatePhase::First,
            StatePhase::First => StatePhase::Second,
        }
    }
}

/// Writes real 0 into every element: the zero point where the type has one. The bytes are those of
/// whole elements, in this machine's byte order.
pub fn fill_with_zero(bytes: &mut [u8], ty: OperandType, zero_point: i32) {
    let [low, high, ..] = zero_point.to_le_bytes();
    match ty {
        OperandType::TensorQuant8Asymm | OperandType::TensorQuant8AsymmSigned => bytes.fill(low),
        OperandType::TensorQuant16Asymm => {
            let element = u16::from_le_bytes([low, high]).to_ne_bytes();
            bytes.chunks_exact_mut(2).for_each(|word| word.copy_from_slice(&element));
        }
        _ => bytes.fill(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_0_is_the_zero_point_where_a_type_has_one() {
        let word = 0x1234_u16.to_ne_bytes();
        let cases: &[(OperandType, i32, [u8; 4])] = &[
            (OperandType::TensorFloat32, 7, [0; 4]),
            (OperandType::TensorFloat16, 7, [0; 4]),
            (OperandType::TensorInt32, 7, [0; 4]),
            (OperandType::TensorBool8, 7, [0; 4]),
            (OperandType::TensorQuant8Symm, 7, [0; 4]),
            (OperandType::TensorQuant16Symm, 7, [0; 4]),
            (OperandType::TensorQuant8Asymm, 200, [200; 4]),
            (OperandType::TensorQuant8AsymmSigned, -2, [254; 4]),
            (OperandType::TensorQuant16Asymm, 0x1234, [word[0], word[1], word[0], word[1]]),
        ];
        for (ty, zero_point, want) in cases {
            let mut bytes = [0xA5; 4];
            fill_with_zero(&mut bytes, *ty, *zero_point);
            assert_eq!(bytes, *want, "{ty}");
        }
    }

    #[test]
    fn the_buffers_of_states_take_turns_after_the_first_run() {
        let phases: Vec<StatePhase> =
            std::iter::successors(Some(StatePhase::default()), |phase| Some(phase.next()))
                .take(5)
                .collect();
        let [initial, first, second] = StatePhase::ALL;
        assert_eq!(phases, [initial, first, second, first, second]);
    }
}
