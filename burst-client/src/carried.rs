//! States that go from one run into the next without a copy: each has two places in the memory of
//! the outputs, and requests name them in turns as input and as output.

use burst_hal::{DataLocation, Model, RequestArgument};

use crate::ClientError;

/// An output that is an input of the next run: a state, such as that of a recurrent layer.
///
/// Before the first run, and after [`reset_states`](crate::Stream::reset_states), it is all zeros.
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
    /// Nowhere: they are zeros.
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
    /// A place that nobody ever writes.
    zeros: u32,
}

impl States {
    /// Lengths of the places needed behind those of the outputs, for [`States::new`].
    pub(crate) fn extra_lengths(carried: &[Carried], outputs: &[u32]) -> Vec<u32> {
        let mut lengths: Vec<u32> =
            carried.iter().filter_map(|one| outputs.get(one.output).copied()).collect();
        lengths.extend(lengths.iter().copied().max());
        lengths
    }

    /// `places` are those of the outputs, then those that [`States::extra_lengths`] asked for.
    pub(crate) fn new(carried: &[Carried], places: &[Place], outputs: usize) -> Self {
        let (own, extra) = places.split_at(outputs);
        let states = carried
            .iter()
            .zip(extra)
            .map(|(&carried, &second)| State { carried, first: own[carried.output], second })
            .collect();
        States { states, zeros: extra.last().map_or(0, |(offset, _)| *offset) }
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
                Turn::Fresh => ((self.zeros, first.1), first),
                Turn::First => (*first, second),
                Turn::Second => (*second, first),
            };
            let location = |(offset, length)| DataLocation { pool_index: pool, offset, length };
            inputs[carried.input].location = location(from);
            outputs[carried.output].location = location(*to);
        }
    }

    /// Where the value of an output lies that is a state, when it is this one's turn next.
    pub(crate) fn offset(&self, output: usize, turn: Turn) -> Option<u32> {
        let state = self.states.iter().find(|state| state.carried.output == output)?;
        Some(if turn == Turn::Second { state.second.0 } else { state.first.0 })
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
