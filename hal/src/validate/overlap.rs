//! Whether an output of a request lies in bytes that another output or an input has, too. Inputs may share
//! bytes with each other.
//!
//! Of a whole pool a value takes what its dimensions need, and at least a byte where they are not known yet.
//! Two pools of a request that are the same object are one memory. Nobody looks further: two descriptors may
//! name the same bytes all the same. Nor are outputs compared with constants of the model.
//!
//! Source: the description of `Request` in NNAPI's canonical types. Buffers that a driver manages have rules of their
//! own, which its tracker of them knows.

use std::sync::Arc;

use super::error::{Direction, ValidationError};
use super::saturate;
use crate::{Memory, Request, RequestArgument, RequestPool};

/// Pairs that are compared one by one. It is quick where there are few, and needs no memory; those of more
/// arguments are sorted.
const MAX_PAIRS: usize = 1 << 10;

/// How many bytes from the beginning of a whole pool a value there is sure to take.
type Taken<'a> = &'a dyn Fn(Direction, usize, &RequestArgument) -> u64;

/// Refuses outputs that share bytes with another argument.
pub(super) fn check(taken: Taken<'_>, request: &Request) -> Result<(), ValidationError> {
    let Request { inputs, outputs, .. } = request;
    let pairs = outputs.len().saturating_mul(inputs.len().saturating_add(outputs.len()));
    match pairs <= MAX_PAIRS {
        true => compare_pairs(taken, request),
        false => sweep(taken, request),
    }
}

/// Bytes of a memory, at least one.
#[derive(Clone, Copy)]
struct Region {
    /// Address of the memory's object.
    memory: usize,
    begin: u64,
    end: u64,
}

impl Region {
    /// What an argument takes that was found to lie in its pool; `None` where that is nothing, or a buffer of
    /// the driver.
    fn of(
        taken: Taken<'_>,
        request: &Request,
        (direction, position): (Direction, usize),
    ) -> Option<Self> {
        let list = match direction {
            Direction::Input => &request.inputs,
            Direction::Output => &request.outputs,
        };
        let argument = list.get(position)?;
        let location = argument.location;
        let index = usize::try_from(location.pool_index).ok()?;
        let Some(RequestPool::Memory(pool)) = request.pools.get(index) else { return None };
        let (begin, length) = match location.is_whole_pool() {
            true => (0, taken(direction, position, argument).min(pool.len())),
            false => (u64::from(location.offset), u64::from(location.length)),
        };
        let memory = std::ptr::from_ref::<dyn Memory>(Arc::as_ref(pool)).addr();
        let region = Region { memory, begin, end: begin.saturating_add(length) };
        (!argument.has_no_value && length > 0).then_some(region)
    }

    fn meets(self, other: Self) -> bool {
        self.memory == other.memory && self.begin < other.end && other.begin < self.end
    }
}

fn compare_pairs(taken: Taken<'_>, request: &Request) -> Result<(), ValidationError> {
    for output in 0..request.outputs.len() {
        let Some(region) = Region::of(taken, request, (Direction::Output, output)) else {
            continue;
        };
        for (direction, count) in
            [(Direction::Output, output), (Direction::Input, request.inputs.len())]
        {
            let meets = |position: &usize| {
                let other = Region::of(taken, request, (direction, *position));
                other.is_some_and(|other| region.meets(other))
            };
            if let Some(other) = (0..count).find(meets) {
                return Err(overlap(output, direction, other));
            }
        }
    }
    Ok(())
}

/// A region, and the position of its argument.
type Placed = (Region, usize);

/// The same for many arguments: in the order in which they begin, each can only meet the one before it that
/// ends last.
fn sweep(taken: Taken<'_>, request: &Request) -> Result<(), ValidationError> {
    let counts =
        [(Direction::Input, request.inputs.len()), (Direction::Output, request.outputs.len())];
    let mut regions: Vec<(Region, Direction, usize)> = Vec::new();
    for (direction, count) in counts {
        regions.extend((0..count).filter_map(|position| {
            Some((Region::of(taken, request, (direction, position))?, direction, position))
        }));
    }
    regions.sort_unstable_by_key(|(region, _, _)| (region.memory, region.begin));
    // The input and the output so far that end last.
    let (mut input, mut output): (Option<Placed>, Option<Placed>) = (None, None);
    let later = |one: Option<Placed>, other: Placed| match one {
        Some(one) if one.0.memory == other.0.memory && one.0.end >= other.0.end => one,
        _ => other,
    };
    for (region, direction, position) in regions {
        let meets = |last: Option<Placed>| {
            last.filter(|(last, _)| last.meets(region)).map(|(_, position)| position)
        };
        match direction {
            Direction::Input => {
                if let Some(written) = meets(output) {
                    return Err(overlap(written, Direction::Input, position));
                }
                input = Some(later(input, (region, position)));
            }
            Direction::Output => {
                if let Some(other) = meets(output) {
                    let (one, other) = (position.max(other), position.min(other));
                    return Err(overlap(one, Direction::Output, other));
                }
                if let Some(read) = meets(input) {
                    return Err(overlap(position, Direction::Input, read));
                }
                output = Some(later(output, (region, position)));
            }
        }
    }
    Ok(())
}

fn overlap(output: usize, direction: Direction, position: usize) -> ValidationError {
    ValidationError::Overlap { output: saturate(output), direction, position: saturate(position) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DataLocation, HeapMemory, Pool};

    /// Pool, offset, length.
    type Place = (u32, u32, u32);

    fn argument((pool_index, offset, length): Place) -> RequestArgument {
        let location = DataLocation { pool_index, offset, length };
        RequestArgument { location, ..RequestArgument::default() }
    }

    /// Inputs take 40 bytes, and of outputs nobody knows.
    fn taken(direction: Direction, _: usize, _: &RequestArgument) -> u64 {
        match direction {
            Direction::Input => 40,
            Direction::Output => 1,
        }
    }

    /// What both ways say of arguments in a memory of 1,000 bytes that is pool 0 and pool 1, in another one
    /// and in a buffer.
    fn said(inputs: &[Place], outputs: &[Place]) -> Result<(), ValidationError> {
        let memory: Pool = Arc::new(HeapMemory::new(vec![0; 1000]));
        let other: Pool = Arc::new(HeapMemory::new(vec![0; 1000]));
        let request = Request {
            inputs: inputs.iter().copied().map(argument).collect(),
            outputs: outputs.iter().copied().map(argument).collect(),
            pools: vec![
                RequestPool::Memory(Arc::clone(&memory)),
                RequestPool::Memory(memory),
                RequestPool::Memory(other),
                RequestPool::Token(1),
            ],
        };
        let (pairs, sweep) = (compare_pairs(&taken, &request), sweep(&taken, &request));
        assert_eq!(pairs.is_ok(), sweep.is_ok(), "{pairs:?} {sweep:?}");
        assert_eq!(check(&taken, &request).is_ok(), pairs.is_ok());
        pairs
    }

    #[test]
    fn an_output_shares_no_byte_with_another_argument() {
        for (other, meets) in [
            ((0, 20, 50), true),
            ((1, 69, 1), true),
            ((0, 10, 11), true),
            ((0, 30, 5), true),
            ((0, 70, 10), false),
            ((0, 10, 10), false),
            ((0, 30, 0), false), // nothing
            ((2, 20, 50), false),
            ((3, 0, 0), false),
        ] {
            let (first, none) = ((0, 20, 50), Ok(()));
            let with = |output, direction| {
                Err(ValidationError::Overlap { output, direction, position: 0 })
            };
            let want = if meets { with(0, Direction::Input) } else { none };
            assert_eq!(said(&[other], &[first]), want, "input {other:?}");
            let want = if meets { with(1, Direction::Output) } else { none };
            assert_eq!(said(&[], &[first, other]), want, "output {other:?}");
        }
        assert_eq!(said(&[(0, 0, 10), (0, 5, 10)], &[(0, 20, 10)]), Ok(()), "inputs may");
    }

    #[test]
    fn of_a_whole_pool_counts_what_the_value_takes() {
        assert!(said(&[(0, 0, 0)], &[(0, 39, 10)]).is_err(), "40 bytes of the input");
        assert_eq!(said(&[(0, 0, 0)], &[(0, 40, 10)]), Ok(()));
        assert!(said(&[], &[(0, 0, 0), (0, 0, 0)]).is_err(), "neither of them has no bytes");
        assert!(said(&[(0, 0, 0)], &[(0, 0, 0)]).is_err());
        assert_eq!(said(&[], &[(0, 0, 0), (0, 1, 10)]), Ok(()), "nobody knows yet");
    }

    #[test]
    fn what_is_left_out_lies_nowhere() {
        let memory = RequestPool::Memory(Arc::new(HeapMemory::new(vec![0; 8])));
        let omitted = RequestArgument { has_no_value: true, ..RequestArgument::default() };
        let request = Request {
            inputs: vec![omitted.clone()],
            outputs: vec![argument((0, 0, 8)), omitted],
            pools: vec![memory],
        };
        assert_eq!(check(&taken, &request), Ok(()));
    }

    #[test]
    fn many_arguments_are_told_the_same_as_few() {
        // Side by side, in an order of their own; then one grows into its neighbour.
        let place = |index: u32| (index % 2, index * 7 % 100 * 10, 10);
        let inputs: Vec<_> = (0..50).map(place).collect();
        let mut outputs: Vec<_> = (50..100).map(place).collect();
        assert!(inputs.len() * outputs.len() > MAX_PAIRS);
        assert_eq!(said(&inputs, &outputs), Ok(()));
        for index in 0..outputs.len() {
            let before = outputs[index];
            if before.1 + 11 <= 1000 {
                outputs[index].2 = 11;
                assert!(said(&inputs, &outputs).is_err(), "{index}");
            }
            outputs[index] = before;
        }
    }
}
