//! Weights in the order in which kernels read them that compute [`LANES`] units side by side.

use bytemuck::{Pod, Zeroable};

#[cfg(target_arch = "x86_64")]
mod avx512;
mod dispatch;
mod portable;
#[cfg(test)]
pub(super) mod tests;

use self::portable::{SQUARE_BYTES, Square, Word};
use crate::OpError;
use crate::budget::Budget;
use crate::kept::KeptValue;
use crate::kernels::simd::Isa;
use crate::pages::Parts;
use crate::stop::STEPS_PER_CHECK;
use crate::weight_room::Packed;

pub(crate) use self::dispatch::TURN;

/// Units of a panel: one register of sums.
pub(crate) const LANES: usize = 16;

/// Squares that are turned between two looks at whether they are still wanted: 1 KiB of each unit's row.
const SQUARES_AT_ONCE: usize = 16;

/// Weights `[units, depth]` in panels of [`LANES`] units: for each panel and each `STEP` positions
/// of the depth one block, with the weights of every unit there. Missing units and positions have
/// weights of 0.
#[derive(Clone)]
pub(crate) struct Panels<B, const STEP: usize> {
    units: usize,
    depth: usize,
    blocks: Blocks<B>,
}

/// Where the blocks of panels lie.
#[derive(Clone)]
enum Blocks<B> {
    Own(Packed<B>),
    /// In what an earlier preparation has kept, which is charged by itself.
    Kept(KeptValue),
}

impl<B: Pod> Blocks<B> {
    #[inline(always)]
    fn as_slice(&self) -> &[B] {
        match self {
            Blocks::Own(blocks) => blocks,
            // Of whole blocks, and aligned: `Panels::kept` has looked.
            Blocks::Kept(value) => bytemuck::cast_slice(value.bytes()),
        }
    }
}

impl<B, const STEP: usize> std::fmt::Debug for Panels<B, STEP> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} x {}", self.depth, self.units)
    }
}

impl<B: Pod, const STEP: usize> Panels<B, STEP> {
    /// Packs weights, of which there must be that many; `block` stores those of a block.
    ///
    /// # Errors
    /// What the budget says; [`OpError::Range`] when the system has no such memory.
    pub(crate) fn pack<T: Copy + Default>(
        weights: &[T],
        units: usize,
        depth: usize,
        budget: &Budget<'_>,
        block: impl Fn([[T; STEP]; LANES]) -> B,
    ) -> Result<Self, OpError> {
        let mut blocks = Self::zeroed(units, depth, budget)?;
        let mut parts = Parts::of(&mut blocks);
        let mut checkpoints = budget.stop().checkpoints();
        let weight = |unit: usize, position: usize| {
            let inside = unit < units && position < depth;
            if inside { weights[unit * depth + position] } else { T::default() }
        };
        for first in (0..units).step_by(LANES) {
            // Blocks that lie wholly within the weights are most of them, and need no look at each weight.
            let rows: [&[T]; LANES] = std::array::from_fn(|lane| {
                let rows = weights.get((first + lane) * depth..).unwrap_or_default();
                rows.get(..depth).unwrap_or_default()
            });
            let whole = if first + LANES <= units { depth / STEP } else { 0 };
            let (inside, end) = parts.next(depth.div_ceil(STEP)).split_at_mut(whole);
            for (number, packed) in inside.iter_mut().enumerate() {
                checkpoints.after(LANES * STEP)?;
                let at = number * STEP;
                // Loops rather than `map`, which is a call for each block where it is not inlined.
                let mut weights = [[T::default(); STEP]; LANES];
                for (weights, row) in weights.iter_mut().zip(&rows) {
                    weights.copy_from_slice(&row[at..at + STEP]);
                }
                *packed = block(weights);
            }
            for (position, packed) in (whole * STEP..depth).step_by(STEP).zip(end) {
                checkpoints.after(LANES * STEP)?;
                *packed = block(std::array::from_fn(|lane| {
                    std::array::from_fn(|step| weight(first + lane, position + step))
                }));
            }
        }
        Ok(Panels { units, depth, blocks: Blocks::Own(blocks) })
    }

    /// Packs weights that a block holds as they are, a word of each unit: floats, or quads of bytes. `row` gives
    /// the bytes of a unit's weights, unit by unit, each of which is XORed with `flip`.
    ///
    /// # Errors
    /// As [`Panels::pack`].
    pub(crate) fn pack_words<'w>(
        isa: Isa,
        mut row: impl FnMut(usize) -> &'w [u8],
        (units, depth): (usize, usize),
        flip: u8,
        budget: &Budget<'_>,
    ) -> Result<Self, OpError> {
        const { assert!(size_of::<B>() == SQUARE_BYTES, "a block has one word of each unit") };
        let mut blocks = Self::zeroed(units, depth, budget)?;
        let mut parts = Parts::of(&mut blocks);
        let mut checkpoints = budget.stop().checkpoints();
        let row_bytes = depth * size_of::<Word>() / STEP;
        // A missing unit has this in the place of each part of its row, and weights of 0 once it is flipped.
        let missing = [flip; SQUARES_AT_ONCE * SQUARE_BYTES];
        for first in (0..units).step_by(LANES) {
            let panel = parts.next(depth.div_ceil(STEP));
            let panel = bytemuck::cast_slice_mut::<B, [Word; LANES]>(panel);
            // The last word of a row may not be whole.
            let (squares, end) = panel.split_at_mut(row_bytes / SQUARE_BYTES * LANES);
            let squares = squares.as_chunks_mut().0;
            let mut rows: [Option<&[u8]>; LANES] = [None; LANES];
            for (unit, slot) in (first..units).zip(&mut rows) {
                *slot = Some(&row(unit)[..row_bytes]);
            }
            for (number, squares) in squares.chunks_mut(SQUARES_AT_ONCE).enumerate() {
                checkpoints.after(size_of_val(squares))?;
                let (at, len) = (number * missing.len(), squares.len() * SQUARE_BYTES);
                let parts = rows.map(|row| row.map_or(&missing[..len], |row| &row[at..][..len]));
                dispatch::turn(isa, &parts, flip, squares);
            }
            if !end.is_empty() {
                let at = squares.len() * SQUARE_BYTES;
                let mut ends = [[flip; SQUARE_BYTES]; LANES];
                for (end, row) in ends.iter_mut().zip(rows.iter().flatten()) {
                    end[..row_bytes - at].copy_from_slice(&row[at..]);
                }
                let mut square = [Square::zeroed()];
                dispatch::turn(isa, &ends.each_ref().map(|end| &end[..]), flip, &mut square);
                end.copy_from_slice(&square[0][..end.len()]);
            }
        }
        Ok(Panels { units, depth, blocks: Blocks::Own(blocks) })
    }

    /// Weights that were packed once: `block` makes each block from its bytes.
    ///
    /// # Errors
    /// As [`Panels::pack`]; [`OpError::Internal`] for another number of bytes.
    pub(crate) fn restored<const BYTES: usize>(
        packed: &[u8],
        units: usize,
        depth: usize,
        budget: &Budget<'_>,
        block: impl Fn(&[u8; BYTES]) -> B,
    ) -> Result<Self, OpError> {
        let mut blocks = Self::zeroed(units, depth, budget)?;
        let (packed, rest) = packed.as_chunks::<BYTES>();
        if packed.len() != blocks.len() || !rest.is_empty() {
            return Err(OpError::Internal { what: "size of packed weights" });
        }
        let mut checkpoints = budget.stop().checkpoints();
        let mut parts = Parts::of(&mut blocks);
        for part in packed.chunks(STEPS_PER_CHECK / BYTES) {
            checkpoints.after(part.len() * BYTES)?;
            for (packed, bytes) in parts.next(part.len()).iter_mut().zip(part) {
                *packed = block(bytes);
            }
        }
        Ok(Panels { units, depth, blocks: Blocks::Own(blocks) })
    }

    /// Weights whose blocks lie in what was kept, as [`Panels::bytes`] gave them: they stay there.
    ///
    /// # Errors
    /// [`OpError::Internal`] for another number of bytes.
    pub(crate) fn kept(packed: &KeptValue, units: usize, depth: usize) -> Result<Self, OpError> {
        let other = OpError::Internal { what: "size of packed weights" };
        let blocks = bytemuck::try_cast_slice::<_, B>(packed.bytes()).map_err(|_| other.clone())?;
        if Some(blocks.len()) != units.div_ceil(LANES).checked_mul(depth.div_ceil(STEP)) {
            return Err(other);
        }
        Ok(Panels { units, depth, blocks: Blocks::Kept(packed.clone()) })
    }

    /// All blocks as bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self.blocks())
    }

    /// As many blocks as there have to be, which are charged.
    fn zeroed(units: usize, depth: usize, budget: &Budget<'_>) -> Result<Packed<B>, OpError> {
        let too_large = OpError::Range { what: "size of packed weights" };
        let len = units.div_ceil(LANES).checked_mul(depth.div_ceil(STEP));
        budget.zeroed(len.ok_or(too_large.clone())?, too_large)
    }

    /// Number of units.
    #[inline(always)]
    pub(crate) fn units(&self) -> usize {
        self.units
    }

    /// Length of a row.
    #[inline(always)]
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Blocks of a panel.
    #[inline(always)]
    pub(crate) fn panel_len(&self) -> usize {
        self.depth.div_ceil(STEP)
    }

    /// All blocks, panel by panel, each in the order of the depth.
    #[inline(always)]
    pub(crate) fn blocks(&self) -> &[B] {
        self.blocks.as_slice()
    }

    /// The blocks of a panel in the order of the depth.
    #[inline(always)]
    pub(crate) fn panel(&self, panel: usize) -> &[B] {
        let len = self.panel_len();
        &self.blocks()[panel * len..(panel + 1) * len]
    }

    /// Bytes held, but for those that were kept.
    pub(crate) fn held_bytes(&self) -> usize {
        match &self.blocks {
            Blocks::Own(blocks) => size_of_val(blocks.as_slice()),
            Blocks::Kept(_) => 0,
        }
    }
}
