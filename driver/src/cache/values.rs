//! Where constants lie in a file: the ranges of a model's memories that are still read, each once, however
//! many operands name them.

use std::collections::BTreeMap;
use std::ops::Range;

use burst_hal::{DataLocation, Model, Operand, OperandLifeTime};

use super::seal::ALIGNMENT;

/// A memory of a model: the values that travel with it, or one of its pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    Values,
    Pool(u32),
}

/// A range of a memory, and where it lies among the values of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) source: Source,
    pub(super) range: Range<u64>,
    pub(super) at: u64,
}

/// The constants of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Values {
    pieces: Vec<Piece>,
    /// By memory and first byte, the index of the piece.
    by_start: BTreeMap<(Source, u64), usize>,
    bytes: u64,
}

impl Source {
    /// Where an operand's constant lies; `None` for one that is no constant.
    pub(super) fn of(operand: &Operand) -> Option<Source> {
        match operand.lifetime {
            OperandLifeTime::ConstantCopy => Some(Source::Values),
            OperandLifeTime::ConstantReference => Some(Source::Pool(operand.location.pool_index)),
            _ => None,
        }
    }

    /// Copies bytes out of it.
    pub(super) fn read(
        self,
        model: &Model,
        offset: u64,
        out: &mut [u8],
    ) -> Result<(), burst_hal::MemoryError> {
        let (len, size) = (out.len() as u64, model.operand_values.len() as u64);
        let outside = burst_hal::MemoryError::OutOfRange { offset, len, size };
        match self {
            Source::Values => {
                let start = usize::try_from(offset).map_err(|_| outside)?;
                let end = start.checked_add(out.len()).ok_or(outside)?;
                let bytes = model.operand_values.get(start..end).ok_or(outside)?;
                out.copy_from_slice(bytes);
                Ok(())
            }
            Source::Pool(pool) => model.pools.get(pool as usize).ok_or(outside)?.read(offset, out),
        }
    }
}

impl Values {
    /// Places for all that these constants name. Each begins at the same distance from a multiple of the
    /// alignment as before.
    pub(super) fn of<'m>(constants: impl Iterator<Item = &'m Operand>) -> Self {
        let mut named: Vec<(Source, Range<u64>)> = constants
            .filter_map(|operand| {
                let DataLocation { offset, length, .. } = operand.location;
                let start = u64::from(offset);
                Some((Source::of(operand)?, start..start + u64::from(length)))
            })
            .filter(|(_, range)| !range.is_empty())
            .collect();
        named.sort_by_key(|(source, range)| (*source, range.start));
        let mut values = Values::default();
        for (source, range) in named {
            match values.pieces.last_mut() {
                Some(last) if last.source == source && range.start <= last.range.end => {
                    last.range.end = last.range.end.max(range.end);
                }
                _ => values.pieces.push(Piece { source, range, at: 0 }),
            }
        }
        for (index, piece) in values.pieces.iter_mut().enumerate() {
            let aligned = values.bytes.next_multiple_of(ALIGNMENT);
            piece.at = aligned + piece.range.start % ALIGNMENT;
            values.bytes = piece.at + (piece.range.end - piece.range.start);
            values.by_start.insert((piece.source, piece.range.start), index);
        }
        values
    }

    /// Bytes of all of them, with the room between.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// In the order in which they lie.
    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Where a constant lies in the file; `None` for what is no constant, or not among them.
    pub(super) fn place(&self, operand: &Operand) -> Option<u64> {
        let source = Source::of(operand)?;
        let start = u64::from(operand.location.offset);
        if operand.location.length == 0 {
            return Some(0);
        }
        let (_, index) = self.by_start.range(..=(source, start)).next_back()?;
        let piece = self.pieces.get(*index).filter(|piece| piece.source == source)?;
        let end = start + u64::from(operand.location.length);
        (end <= piece.range.end).then(|| piece.at + (start - piece.range.start))
    }
}

#[cfg(test)]
mod tests {
    use burst_hal::OperandType;

    use super::*;

    fn constant(pool: Option<u32>, offset: u32, length: u32) -> Operand {
        let lifetime = match pool {
            None => OperandLifeTime::ConstantCopy,
            Some(_) => OperandLifeTime::ConstantReference,
        };
        let location = DataLocation { pool_index: pool.unwrap_or(0), offset, length };
        Operand { location, ..Operand::new(OperandType::TensorQuant8Asymm, lifetime) }
    }

    #[test]
    fn bytes_that_several_constants_name_lie_in_the_file_once() {
        let constants = [
            constant(None, 100, 50),
            constant(None, 120, 10),
            constant(Some(1), 100, 8),
            constant(None, 140, 20),
            constant(None, 0, 0),
            constant(Some(0), 64, 1),
        ];
        let values = Values::of(constants.iter());
        let pieces: Vec<_> =
            values.pieces().iter().map(|p| (p.source, p.range.clone(), p.at)).collect();
        let expected = [
            (Source::Values, 100..160, 36),
            (Source::Pool(0), 64..65, 128),
            (Source::Pool(1), 100..108, 192 + 36),
        ];
        assert_eq!(pieces, expected);
        assert_eq!(values.bytes(), 236);
        let places: Vec<_> = constants.iter().map(|one| values.place(one)).collect();
        assert_eq!(places, [36, 56, 228, 76, 0, 128].map(Some));
        assert_eq!(values.place(&constant(None, 150, 20)), None, "not all of it is there");
        assert_eq!(values.place(&constant(None, 90, 2)), None);
        let input = Operand::new(OperandType::Int32, OperandLifeTime::SubgraphInput);
        assert_eq!(values.place(&input), None);
    }
}
