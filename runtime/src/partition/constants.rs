//! The constants of a part of a model: only those that it uses, and without a copy where they lie together.

use std::ops::Range;

use burst_hal::{
    DataLocation, MemoryError, Model, Operand, OperandLifeTime, OperandValues, Pool, Subgraph,
};

/// Constants keep their distance from a multiple of this, so that what was aligned stays so.
const ALIGNMENT: usize = 64;

/// The bytes of a constant operand of a model.
///
/// # Errors
/// [`MemoryError::OutOfRange`] for an operand that is none of this model's constants; what its pool says.
pub fn constant_bytes(model: &Model, operand: &Operand) -> Result<Vec<u8>, MemoryError> {
    let DataLocation { pool_index, offset, length } = operand.location;
    let outside =
        |size: u64| MemoryError::OutOfRange { offset: offset.into(), len: length.into(), size };
    match operand.lifetime {
        OperandLifeTime::ConstantCopy => {
            let values = &*model.operand_values;
            let bytes = values.get(range(operand.location)).ok_or(outside(values.len() as u64))?;
            Ok(bytes.to_vec())
        }
        OperandLifeTime::ConstantReference => {
            let pool = model.pools.get(pool_index as usize).ok_or(outside(0))?;
            let end = u64::from(offset) + u64::from(length);
            if end > pool.len() {
                return Err(outside(pool.len()));
            }
            let mut bytes = vec![0; length as usize];
            pool.read(offset.into(), &mut bytes)?;
            Ok(bytes)
        }
        _ => Err(outside(0)),
    }
}

/// The constants and pools that these graphs, taken from `model`, use. Their operands are changed to say
/// where the constants lie now.
pub(super) fn carry(model: &Model, graphs: &mut [Subgraph]) -> (OperandValues, Vec<Pool>) {
    (carry_values(model, graphs), carry_pools(model, graphs))
}

fn operands(
    graphs: &mut [Subgraph],
    lifetime: OperandLifeTime,
) -> impl Iterator<Item = &mut Operand> {
    let all = graphs.iter_mut().flat_map(|graph| &mut graph.operands);
    all.filter(move |operand| operand.lifetime == lifetime)
}

fn carry_pools(model: &Model, graphs: &mut [Subgraph]) -> Vec<Pool> {
    let lifetime = OperandLifeTime::ConstantReference;
    let mut used: Vec<u32> =
        operands(graphs, lifetime).map(|operand| operand.location.pool_index).collect();
    used.sort_unstable();
    used.dedup();
    for operand in operands(graphs, lifetime) {
        let pool = &mut operand.location.pool_index;
        *pool = used.binary_search(pool).map_or(u32::MAX, narrow);
    }
    used.iter().filter_map(|pool| model.pools.get(*pool as usize)).map(Pool::clone).collect()
}

fn carry_values(model: &Model, graphs: &mut [Subgraph]) -> OperandValues {
    let lifetime = OperandLifeTime::ConstantCopy;
    let used = operands(graphs, lifetime).map(|operand| range(operand.location)).collect();
    let (new_values, moved) = Moved::of(&model.operand_values, used);
    for operand in operands(graphs, lifetime) {
        operand.location.offset = narrow(moved.new_start(operand.location.offset as usize));
    }
    new_values
}

/// Where ranges of the old values begin in the new ones.
struct Moved {
    /// Old start, old end, new start; ascending, apart from each other.
    ranges: Vec<(usize, usize, usize)>,
}

impl Moved {
    /// New values that have these ranges of the old ones: a window on the old ones, where that shows
    /// little else, or copies.
    fn of(values: &OperandValues, used: Vec<Range<usize>>) -> (OperandValues, Self) {
        let merged = merge(used);
        let (Some(first), Some(last)) = (merged.first(), merged.last()) else {
            return (OperandValues::default(), Moved { ranges: Vec::new() });
        };
        let window = first.start / ALIGNMENT * ALIGNMENT..last.end;
        let wanted: usize = merged.iter().map(ExactSizeIterator::len).sum();
        if wanted >= window.len() / 2 {
            let start = |range: &Range<usize>| (range.start, range.end, range.start - window.start);
            let ranges = merged.iter().map(start).collect();
            let view = Window { values: values.clone(), range: window };
            return (OperandValues::new(view), Moved { ranges });
        }
        let mut copy = Vec::with_capacity(wanted + merged.len() * ALIGNMENT);
        let mut ranges = Vec::with_capacity(merged.len());
        for range in merged {
            let at = copy.len().next_multiple_of(ALIGNMENT) + range.start % ALIGNMENT;
            copy.resize(at, 0);
            copy.extend_from_slice(values.get(range.clone()).unwrap_or_default());
            ranges.push((range.start, range.end, at));
        }
        (OperandValues::new(copy), Moved { ranges })
    }

    fn new_start(&self, old: usize) -> usize {
        let after = self.ranges.partition_point(|(start, ..)| *start <= old);
        let found = after.checked_sub(1).and_then(|index| self.ranges.get(index));
        match found {
            Some((start, end, new)) if old <= *end => new + (old - start),
            // An operand without bytes lies anywhere.
            _ => 0,
        }
    }
}

/// Ranges in order, those that touch made one, those without bytes left out.
fn merge(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// A part of values that others have, too.
struct Window {
    values: OperandValues,
    range: Range<usize>,
}

impl AsRef<[u8]> for Window {
    fn as_ref(&self) -> &[u8] {
        self.values.get(self.range.clone()).unwrap_or_default()
    }
}

fn range(location: DataLocation) -> Range<usize> {
    let start = location.offset as usize;
    start..start.saturating_add(location.length as usize)
}

/// Offsets in a legal model fit 32 bits, and new ones are not larger.
fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}
