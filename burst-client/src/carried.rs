//! States that go from one run into the next without a copy: each has two places in the memory of
//! the outputs, and requests name them in turns as input and as output.

use burst_hal::{DataLocation, Model, Operand, OperandType, RequestArgument};

use crate::ClientError;

/// An output that is an input of the next run: a state, such as that of a recurrent layer.
///
/// The first run, and the one after [`reset_states`](crate::Stream::reset_states), begins with what
/// lies in the input's own memory: real 0 in every element (the zero point of its type), unless the
/// client wrote something else there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carried {
    /// Position among the model's inputs.
    pub input: usize,
    /// Position among the model's outputs.
    pub output: usize,
}

/// Where the states are, and so which request comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// In the inputs' own memory: as they begin.
    Fresh,
    /// In their first places.
    First,
    /// In their second places.
    Second,
}

impl Turn {
    pub(crate) const ALL: [Turn; 3] = [Turn::Fresh, Turn::First, Turn::Second];

    /// Where they are after a run that began here.
    pub(crate) fn next(self) -> Turn {
        match self {
            Turn::Fresh | Turn::Second => Turn::First,
            Turn::First => Turn::Second,
        }
    }
}

/// Offset and length of a place.
type Place = (u32, u32);

/// A state with its places.
#[derive(Debug, Clone, Copy)]
struct State {
    carried: Carried,
    first: Place,
    second: Place,
}

/// All states of a stream.
#[derive(Debug, Default)]
pub(crate) struct States {
    states: Vec<State>,
}

impl States {
    /// Lengths of the places needed behind those of the outputs, for [`States::new`].
    pub(crate) fn extra_lengths(carried: &[Carried], outputs: &[u32]) -> Vec<u32> {
        carried.iter().filter_map(|one| outputs.get(one.output).copied()).collect()
    }

    /// `places` are those of the outputs, then those that [`States::extra_lengths`] asked for.
    pub(crate) fn new(carried: &[Carried], places: &[Place], outputs: usize) -> Self {
        let (own, extra) = places.split_at(outputs);
        let states = carried
            .iter()
            .zip(extra)
            .map(|(&carried, &second)| State { carried, first: own[carried.output], second })
            .collect();
        States { states }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Lets the arguments of a request name the places that are due in this turn; `pool` is the
    /// one that has them.
    pub(crate) fn name_places(
        &self,
        turn: Turn,
        pool: u32,
        inputs: &mut [RequestArgument],
        outputs: &mut [RequestArgument],
    ) {
        for State { carried, first, second } in &self.states {
            let (from, to) = match turn {
                Turn::Fresh => (None, first),
                Turn::First => (Some(first), second),
                Turn::Second => (Some(second), first),
            };
            let location =
                |&(offset, length): &Place| DataLocation { pool_index: pool, offset, length };
            if let Some(from) = from {
                inputs[carried.input].location = location(from);
            }
            outputs[carried.output].location = location(to);
        }
    }

    /// Where the value of an output lies that is a state, when it is this one's turn next.
    pub(crate) fn offset(&self, output: usize, turn: Turn) -> Option<u32> {
        let state = self.states.iter().find(|state| state.carried.output == output)?;
        Some(if turn == Turn::Second { state.second.0 } else { state.first.0 })
    }
}

/// Writes real 0 into every element of a state: the zero point of its type.
pub(crate) fn clear(bytes: &mut [u8], operand: &Operand) {
    let zero = operand.zero_point.to_le_bytes();
    match operand.ty {
        OperandType::TensorQuant8Asymm | OperandType::TensorQuant8AsymmSigned => {
            bytes.fill(zero[0]);
        }
        OperandType::TensorQuant16Asymm => {
            bytes.chunks_exact_mut(2).for_each(|word| word.copy_from_slice(&zero[..2]));
        }
        _ => bytes.fill(0),
    }
}

/// Whether each pair is an input and an output of one size, and none is used twice.
///
/// # Errors
/// [`ClientError::NotAState`] with the first pair that is not.
pub(crate) fn check(carried: &[Carried], model: &Model) -> Result<(), ClientError> {
    let operand = |list: &[u32], at: usize| {
        let index = list.get(at)?;
        model.main.operands.get(*index as usize)
    };
    for (at, &Carried { input, output }) in carried.iter().enumerate() {
        let before = operand(&model.main.input_indexes, input);
        let after = operand(&model.main.output_indexes, output);
        let alike = before
            .zip(after)
            .is_some_and(|(one, two)| one.ty == two.ty && one.dimensions == two.dimensions);
        let twice = carried[..at].iter().any(|one| one.input == input || one.output == output);
        if !alike || twice {
            return Err(ClientError::NotAState { input, output });
        }
    }
    Ok(())
}
