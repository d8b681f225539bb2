//! Weights in the order in which kernels read them that compute [`LANES`] units side by side.

/// Units of a panel: one register of sums.
pub(crate) const LANES: usize = 16;

/// Weights `[units, depth]` in panels of [`LANES`] units: for each panel and each `STEP` positions
/// of the depth one block, with the weights of every unit there. Missing units and positions have
/// weights of 0.
#[derive(Clone)]
pub(crate) struct Panels<B, const STEP: usize> {
    units: usize,
    depth: usize,
    blocks: Vec<B>,
}

impl<B, const STEP: usize> std::fmt::Debug for Panels<B, STEP> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} x {}", self.depth, self.units)
    }
}

impl<B, const STEP: usize> Panels<B, STEP> {
    /// Packs weights, of which there must be that many; `block` stores those of a block.
    pub(crate) fn pack<T: Copy + Default>(
        weights: &[T],
        units: usize,
        depth: usize,
        block: impl Fn([[T; STEP]; LANES]) -> B,
    ) -> Self {
        let weight = |unit: usize, position: usize| {
            let inside = unit < units && position < depth;
            if inside { weights[unit * depth + position] } else { T::default() }
        };
        let mut blocks = Vec::with_capacity(units.div_ceil(LANES) * depth.div_ceil(STEP));
        for first in (0..units).step_by(LANES) {
            for position in (0..depth).step_by(STEP) {
                blocks.push(block(std::array::from_fn(|lane| {
                    std::array::from_fn(|step| weight(first + lane, position + step))
                })));
            }
        }
        Panels { units, depth, blocks }
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
        &self.blocks
    }

    /// The blocks of a panel in the order of the depth.
    #[inline(always)]
    pub(crate) fn panel(&self, panel: usize) -> &[B] {
        let len = self.panel_len();
        &self.blocks[panel * len..(panel + 1) * len]
    }

    /// Bytes held.
    pub(crate) fn held_bytes(&self) -> usize {
        size_of_val(self.blocks.as_slice())
    }
}
