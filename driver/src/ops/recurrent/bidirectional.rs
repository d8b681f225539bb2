//! What the bidirectional operations share: auxiliary inputs, and the list of outputs.

use burst_hal::Dimensions;
use smallvec::SmallVec;

use crate::OpError;
use crate::ops::recurrent::operands::{Known, Shapes};
use crate::ops::recurrent::sequence::Direction;

/// What an auxiliary input is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Linking {
    /// There is none.
    None,
    /// Both directions add it to their sums, by weights of its own.
    Cross,
    /// The backward direction reads it in place of the input.
    Parallel,
}

impl Linking {
    /// The linking that follows from what is there. `weights` says whether the auxiliary weights
    /// are; `None`: not known before the model runs.
    pub(super) fn of(
        shapes: &(impl Shapes + ?Sized),
        aux: usize,
        weights: Option<bool>,
    ) -> Result<Option<Self>, OpError> {
        Ok(Some(match (shapes.optional(aux), weights) {
            (Known::Omitted, Some(true)) => return Err(OpError::Omitted { index: aux }),
            (Known::Omitted, _) => Linking::None,
            (Known::Given(_), Some(true)) => Linking::Cross,
            (Known::Given(_), Some(false)) => Linking::Parallel,
            (Known::Unknown, _) | (Known::Given(_), None) => return Ok(None),
        }))
    }

    /// What one direction reads, and adds by auxiliary weights.
    pub(super) fn sources<'a>(
        self,
        direction: Direction,
        input: &'a [f32],
        aux: Option<&'a [f32]>,
    ) -> (&'a [f32], Option<&'a [f32]>) {
        match (self, direction) {
            (Linking::Cross, _) => (input, aux),
            (Linking::Parallel, Direction::Backward) => (aux.unwrap_or(input), None),
            _ => (input, None),
        }
    }
}

/// The shapes of the outputs: of both directions, in one or two tensors, then of the states where
/// the model has outputs for them.
pub(super) fn output_shapes(
    [outer, inner]: [u32; 2],
    [forward, backward]: [u32; 2],
    merged: bool,
    states: &[[u32; 2]],
    outputs: usize,
) -> Result<SmallVec<[Dimensions; 2]>, OpError> {
    let mut shapes: SmallVec<[Dimensions; 2]> = SmallVec::new();
    if merged {
        let both = forward
            .checked_add(backward)
            .ok_or(OpError::Range { what: "size of a merged output" })?;
        shapes.push([outer, inner, both].as_slice().into());
    } else {
        shapes.push([outer, inner, forward].as_slice().into());
        shapes.push([outer, inner, backward].as_slice().into());
    }
    if outputs != shapes.len() {
        shapes.extend(states.iter().map(|state| Dimensions::from_slice(state)));
    }
    if outputs != shapes.len() {
        return Err(OpError::Arity { want: shapes.len(), got: outputs });
    }
    Ok(shapes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_follow_one_or_two_outputs() {
        let states = [[3, 4], [3, 5]];
        let shapes = |merged, outputs| {
            output_shapes([2, 3], [4, 5], merged, &states, outputs)
                .map(|shapes| shapes.iter().map(|shape| shape.to_vec()).collect::<Vec<_>>())
        };
        assert_eq!(shapes(true, 1).unwrap(), [vec![2, 3, 9]]);
        assert_eq!(shapes(false, 2).unwrap(), [vec![2, 3, 4], vec![2, 3, 5]]);
        assert_eq!(shapes(true, 3).unwrap(), [vec![2, 3, 9], vec![3, 4], vec![3, 5]]);
        assert_eq!(shapes(false, 4).unwrap().len(), 4);
        assert!(shapes(true, 2).is_err() && shapes(false, 1).is_err() && shapes(false, 3).is_err());
        assert!(output_shapes([1, 1], [u32::MAX, 1], true, &[], 1).is_err());
    }
}
