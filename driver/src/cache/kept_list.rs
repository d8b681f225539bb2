//! The list of a data file: of which operations its values are.
//!
//! ```text
//! list      count u32, each: graph u32 | operation u32 | what u8: 0 results, 1 packed constants, 2 ranges of a graph
//!                            | count u32, each a value
//! value     dimensions: count u32, each u32 | offset u64 | bytes u64
//! ```
//! Offsets count from the first value on.

use std::sync::Arc;

use burst_hal::Dimensions;
use burst_hal::validate::{MAX_OPERATION_OPERANDS, MAX_OPERATIONS, MAX_RANK, MAX_SUBGRAPHS};

use super::bytes::{Malformed, Reader, put_u32, put_u32s};
use super::seal::ALIGNMENT;
use crate::aligned::AlignedBytes;
use crate::kept::{KeptPart, KeptValue, Place, What};

/// Where each value lies, in the order of the list, and where the last one ends.
pub(super) fn lay_out(kept: &[KeptPart]) -> (Vec<u64>, u64) {
    let mut end = 0_u64;
    let places = values(kept).map(|value| {
        let at = end.next_multiple_of(ALIGNMENT);
        end = at + value.bytes().len() as u64;
        at
    });
    (places.collect(), end)
}

/// All values, in the order of the list.
pub(super) fn values(kept: &[KeptPart]) -> impl Iterator<Item = &KeptValue> {
    kept.iter().flat_map(|part| &part.values)
}

/// Writes the list.
pub(super) fn encode(kept: &[KeptPart], places: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut places = places.iter();
    put_u32(&mut out, u32::try_from(kept.len()).unwrap_or(u32::MAX));
    for part in kept {
        put_u32(&mut out, part.place.graph);
        put_u32(&mut out, part.place.operation);
        out.push(match part.what {
            What::Results => 0,
            What::Packed => 1,
            What::Ranges => 2,
        });
        put_u32(&mut out, u32::try_from(part.values.len()).unwrap_or(u32::MAX));
        for (value, at) in part.values.iter().zip(&mut places) {
            put_u32s(&mut out, &value.dims);
            out.extend(at.to_le_bytes());
            out.extend((value.bytes().len() as u64).to_le_bytes());
        }
    }
    out
}

/// Reads the list of `file`, whose values begin at `values_at`.
///
/// # Errors
/// What is wrong with it.
pub(super) fn decode(
    list: &[u8],
    file: &Arc<AlignedBytes>,
    values_at: usize,
) -> Result<Vec<KeptPart>, Malformed> {
    let mut reader = Reader::new(list);
    let kept = reader.list(MAX_OPERATIONS + MAX_SUBGRAPHS + 1, 13, |reader| {
        let place = Place { graph: reader.u32()?, operation: reader.u32()? };
        let what = match reader.u8()? {
            0 => What::Results,
            1 => What::Packed,
            2 => What::Ranges,
            _ => return Err("something is kept of an unknown kind"),
        };
        let values = reader.list(MAX_OPERATION_OPERANDS, 20, |reader| {
            let dims = Dimensions::from_vec(reader.indexes(MAX_RANK, usize::MAX)?);
            let (at, bytes) = (reader.u64()?, reader.u64()?);
            let number = |number: u64| usize::try_from(number).ok();
            let start = number(at).and_then(|at| at.checked_add(values_at));
            let range = start
                .zip(number(bytes))
                .and_then(|(start, bytes)| Some(start..start.checked_add(bytes)?));
            range
                .and_then(|range| KeptValue::part(dims, file, range))
                .ok_or("a value lies outside of the file")
        })?;
        Ok(KeptPart { place, what, values, unread: Vec::new() })
    })?;
    reader.end()?;
    Ok(kept)
}
