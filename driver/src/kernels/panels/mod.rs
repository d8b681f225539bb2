//! Weights in the order in which kernels read them that compute [`LANES`] units side by side.

use std::marker::PhantomData;

use burst_shm::PageRoom;
use bytemuck::Pod;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod dispatch;
mod growing;
mod portable;
#[cfg(test)]
pub(super) mod tests;

use self::growing::Growing;
use self::portable::{SQUARE_BYTES, SQUARE_PAIRS, Word};
use crate::OpError;
use crate::aligned::Line;
use crate::budget::Budget;
use crate::kept::KeptValue;
use crate::kernels::simd::{Isa, Lines};
use crate::stop::STEPS_PER_CHECK;
use crate::weight_room::Packed;

pub(crate) use self::dispatch::{TURN, TURN_PAIRS};

/// Units of a panel: one register of sums.
pub(crate) const LANES: usize = 16;

/// Bytes of each unit's row that are turned between two looks at whether they are still wanted.
const BYTES_AT_ONCE: usize = 1 << 10;

const TOO_LARGE: OpError = OpError::Range { what: "size of packed weights" };

/// Weights `[units, depth]` in panels of [`LANES`] units: for each panel and each `STEP` positions
/// of the depth one block, with the weights of every unit there. Missing units and positions have
/// weights of 0.
#[derive(Clone)]
pub(crate) struct Panels<B, const STEP: usize> {
    units: usize,
    depth: usize,
    blocks: Blocks,
    block: PhantomData<B>,
}

/// What a block has of a row.
#[derive(Clone, Copy)]
struct Part {
    bytes: usize,
    /// What stands for a byte of a row that is not there.
    missing: u8,
}

/// Where the blocks of panels lie.
#[derive(Clone)]
enum Blocks {
    /// A line each.
    Own(Packed<Line>),
    /// In what an earlier preparation has kept, which is charged by itself.
    Kept(KeptValue),
}

impl<B, const STEP: usize> std::fmt::Debug for Panels<B, STEP> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} x {}", self.depth, self.units)
    }
}

impl<B: Pod, const STEP: usize> Panels<B, STEP> {
    /// Packs weights that a block holds as they are, a word of each unit: floats, or quads of bytes. `row` gives
    /// the bytes of a unit's weights, unit by unit, each of which is XORed with `flip`.
    ///
    /// # Errors
    /// What the budget says; [`OpError::Range`] when the system has no such memory.
    pub(crate) fn pack_words<'w>(
        isa: Isa,
        mut row: impl FnMut(usize) -> &'w [u8],
        (units, depth): (usize, usize),
        flip: u8,
        budget: &Budget<'_>,
    ) -> Result<Self, OpError> {
        let part = Part { bytes: size_of::<Word>(), missing: flip };
        Self::turned(&mut row, (units, depth), part, budget, |rows, lines| {
            dispatch::turn(isa, rows, flip, lines);
        })
    }

    /// Packs weights of 8 bits that a block holds widened, a pair of each unit: signed once each byte is XORed with
    /// `flip`, less `zero`. `row` gives the bytes of a unit's weights, unit by unit.
    ///
    /// # Errors
    /// As [`Panels::pack_words`].
    pub(crate) fn pack_pairs<'w>(
        isa: Isa,
        mut row: impl FnMut(usize) -> &'w [u8],
        (units, depth): (usize, usize),
        (flip, zero): (u8, i8),
        budget: &Budget<'_>,
    ) -> Result<Self, OpError> {
        let part = Part { bytes: 2, missing: flip };
        Self::turned(&mut row, (units, depth), part, budget, |rows, lines| {
            dispatch::turn_pairs(isa, rows, flip, zero, lines);
        })
    }

    /// Packs rows; `turn` appends blocks of the part of 16 rows that belongs to whole squares.
    fn turned<'w>(
        row: &mut dyn FnMut(usize) -> &'w [u8],
        (units, depth): (usize, usize),
        part: Part,
        budget: &Budget<'_>,
        turn: impl Fn(&[&[u8]; LANES], &mut Lines),
    ) -> Result<Self, OpError> {
        let mut growing = Growing::new(Self::list(units, depth, budget)?);
        let mut checkpoints = budget.stop().checkpoints();
        let row_bytes = depth * part.bytes / STEP;
        let whole = row_bytes / SQUARE_BYTES * SQUARE_BYTES;
        // A missing unit has this in the place of each part of its row, and weights of 0 once it is flipped.
        let missing = [part.missing; BYTES_AT_ONCE];
        for first in (0..units).step_by(LANES) {
            let mut rows: [Option<&[u8]>; LANES] = [None; LANES];
            for (unit, slot) in (first..units).zip(&mut rows) {
                *slot = Some(&row(unit)[..row_bytes]);
            }
            for at in (0..whole).step_by(BYTES_AT_ONCE) {
                let len = (whole - at).min(BYTES_AT_ONCE);
                let parts = rows.map(|row| row.map_or(&missing[..len], |row| &row[at..][..len]));
                let blocks = len / part.bytes;
                checkpoints.after(blocks * size_of::<Line>())?;
                turn(&parts, growing.ahead(blocks));
            }
            // The last word or pair of a row may not be whole.
            if whole < row_bytes {
                let mut ends = [[part.missing; SQUARE_BYTES]; LANES];
                for (end, row) in ends.iter_mut().zip(rows.iter().flatten()) {
                    end[..row_bytes - whole].copy_from_slice(&row[whole..]);
                }
                let square = PageRoom::default().list(SQUARE_PAIRS).map_err(|_| TOO_LARGE)?;
                let mut square = Lines::of(square, false);
                turn(&ends.each_ref().map(|end| &end[..]), &mut square);
                let blocks = (row_bytes - whole).div_ceil(part.bytes);
                growing.ahead(blocks).append_each(square.into_list().into_iter().take(blocks));
            }
        }
        Ok(Self::of(units, depth, Blocks::Own(growing.into_list())))
    }

    /// Weights that were packed once: `block` makes each block from its bytes.
    ///
    /// # Errors
    /// As [`Panels::pack_words`]; [`OpError::Internal`] for another number of bytes.
    pub(crate) fn restored<const BYTES: usize>(
        packed: &[u8],
        units: usize,
        depth: usize,
        budget: &Budget<'_>,
        block: impl Fn(&[u8; BYTES]) -> B,
    ) -> Result<Self, OpError> {
        let mut growing = Growing::new(Self::list(units, depth, budget)?);
        let (packed, rest) = packed.as_chunks::<BYTES>();
        if packed.len() != Self::count(units, depth)? || !rest.is_empty() {
            return Err(OpError::Internal { what: "size of packed weights" });
        }
        let mut checkpoints = budget.stop().checkpoints();
        for part in packed.chunks(STEPS_PER_CHECK / BYTES) {
            checkpoints.after(part.len() * BYTES)?;
            let lines = part.iter().map(|bytes| bytemuck::cast::<B, Line>(block(bytes)));
            growing.ahead(part.len()).append_each(lines);
        }
        Ok(Self::of(units, depth, Blocks::Own(growing.into_list())))
    }

    /// Weights whose blocks lie in what was kept, as [`Panels::bytes`] gave them: they stay there.
    ///
    /// # Errors
    /// [`OpError::Internal`] for another number of bytes.
    pub(crate) fn kept(packed: &KeptValue, units: usize, depth: usize) -> Result<Self, OpError> {
        let other = OpError::Internal { what: "size of packed weights" };
        let blocks = bytemuck::try_cast_slice::<_, B>(packed.bytes()).map_err(|_| other.clone())?;
        if blocks.len() != Self::count(units, depth)? {
            return Err(other);
        }
        Ok(Self::of(units, depth, Blocks::Kept(packed.clone())))
    }

    /// All blocks as bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self.blocks())
    }

    fn of(units: usize, depth: usize, blocks: Blocks) -> Self {
        Panels { units, depth, blocks, block: PhantomData }
    }

    /// A list for as many blocks as there have to be, which are charged.
    fn list(units: usize, depth: usize, budget: &Budget<'_>) -> Result<Packed<Line>, OpError> {
        const { assert!(size_of::<B>() == size_of::<Line>() && align_of::<B>() <= align_of::<Line>()) };
        budget.list(Self::count(units, depth)?, TOO_LARGE)
    }

    fn count(units: usize, depth: usize) -> Result<usize, OpError> {
        units.div_ceil(LANES).checked_mul(depth.div_ceil(STEP)).ok_or(TOO_LARGE)
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
        match &self.blocks {
            Blocks::Own(lines) => bytemuck::cast_slice(lines),
            // Of whole blocks, and aligned: `Panels::kept` has looked.
            Blocks::Kept(value) => bytemuck::cast_slice(value.bytes()),
        }
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
