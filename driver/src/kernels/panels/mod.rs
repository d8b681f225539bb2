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
use crate::pages::Pages;
use crate::stop::STEPS_PER_CHECK;

pub(crate) use self::dispatch::TURN;

/// Units of a panel: one register of sums.
pub(crate) const LANES: usize = 16;

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
    Own(Vec<B>),
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
        let (mut blocks, _) = Self::room(units, depth, budget)?;
        let mut checkpoints = budget.stop().checkpoints();
        let mut pages = Pages::default();
        let weight = |unit: usize, position: usize| {
            let inside = unit < units && position < depth;
            if inside { weights[unit * depth + position] } else { T::default() }
        };
        for first in (0..units).step_by(LANES) {
            pages.ahead_of(&mut blocks, depth.div_ceil(STEP));
            // Blocks that lie wholly within the weights are most of them, and need no look at each weight.
            let rows: [&[T]; LANES] = std::array::from_fn(|lane| {
                let rows = weights.get((first + lane) * depth..).unwrap_or_default();
                rows.get(..depth).unwrap_or_default()
            });
            let whole = if first + LANES <= units { depth / STEP } else { 0 };
            for number in 0..whole {
                checkpoints.after(LANES * STEP)?;
                let at = number * STEP;
                // Loops rather than `map`, which is a call for each block where it is not inlined.
                let mut weights = [[T::default(); STEP]; LANES];
                for (weights, row) in weights.iter_mut().zip(&rows) {
                    weights.copy_from_slice(&row[at..at + STEP]);
                }
                blocks.push(block(weights));
            }
            for position in (whole * STEP..depth).step_by(STEP) {
                checkpoints.after(LANES * STEP)?;
                blocks.push(block(std::array::from_fn(|lane| {
                    std::array::from_fn(|step| weight(first + lane, position + step))
                })));
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
        let (mut blocks, _) = Self::room(units, depth, budget)?;
        let mut checkpoints = budget.stop().checkpoints();
        let mut pages = Pages::default();
        let row_bytes = depth * size_of::<Word>() / STEP;
        // A missing unit has this in the place of each part of its row, and weights of 0 once it is flipped.
        let missing = [flip; SQUARE_BYTES];
        for first in (0..units).step_by(LANES) {
            pages.ahead_of(&mut blocks, depth.div_ceil(STEP));
            let present = (units - first).min(LANES);
            let mut rows: [&[u8]; LANES] = [&[]; LANES];
            for (lane, slot) in rows.iter_mut().take(present).enumerate() {
                *slot = &row(first + lane)[..row_bytes];
            }
            for at in (0..row_bytes).step_by(SQUARE_BYTES) {
                checkpoints.after(SQUARE_BYTES * LANES)?;
                let len = (row_bytes - at).min(SQUARE_BYTES);
                let mut square = Square::zeroed();
                if len == SQUARE_BYTES {
                    let parts = rows
                        .map(|row| row.get(at..).and_then(<[u8]>::first_chunk).unwrap_or(&missing));
                    dispatch::turn(isa, &parts, flip, &mut square);
                } else {
                    let mut ends = [missing; LANES];
                    for (end, row) in ends.iter_mut().zip(&rows[..present]) {
                        end[..len].copy_from_slice(&row[at..]);
                    }
                    dispatch::turn(isa, &ends.each_ref(), flip, &mut square);
                }
                let words = len.div_ceil(size_of::<Word>());
                blocks.extend_from_slice(&bytemuck::cast_slice(&square.0)[..words]);
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
        let (mut blocks, len) = Self::room(units, depth, budget)?;
        let (packed, rest) = packed.as_chunks::<BYTES>();
        if packed.len() != len || !rest.is_empty() {
            return Err(OpError::Internal { what: "size of packed weights" });
        }
        let mut checkpoints = budget.stop().checkpoints();
        let mut pages = Pages::default();
        for part in packed.chunks(STEPS_PER_CHECK / BYTES) {
            checkpoints.after(part.len() * BYTES)?;
            pages.ahead_of(&mut blocks, part.len());
            blocks.extend(part.iter().map(&block));
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

    /// Room for all blocks, which is charged, and how many there are.
    fn room(units: usize, depth: usize, budget: &Budget<'_>) -> Result<(Vec<B>, usize), OpError> {
        let too_large = OpError::Range { what: "size of packed weights" };
        let len = units.div_ceil(LANES).checked_mul(depth.div_ceil(STEP));
        let len = len.filter(|len| len.checked_mul(size_of::<B>()).is_some());
        let len = len.ok_or(too_large.clone())?;
        budget.charge(len * size_of::<B>())?;
        let mut blocks = Vec::new();
        blocks.try_reserve_exact(len).map_err(|_| too_large)?;
        Ok((blocks, len))
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
