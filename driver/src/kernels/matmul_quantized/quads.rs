//! Products of unsigned bytes with signed ones for instructions that multiply four pairs and
//! add them up (VNNI, Arm's DotProd) or eight (I8MM), each sum brought to its stored value before it leaves the registers.

use bytemuck::{Pod, Zeroable};

use crate::OpError;
use crate::budget::Budget;
use crate::kept::KeptValue;
pub(crate) use crate::kernels::panels::LANES;
use crate::kernels::panels::Panels;
use crate::kernels::simd::Isa;

/// Positions of the depth that one multiplication takes: pieces of rows have to be of as many, but for the
/// end of a row that is one piece.
pub(crate) const QUAD: usize = 4;

/// Four weights of each of 16 channels: a register of AVX-512, two of AVX-VNNI.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Quad(pub(crate) [[i8; 4]; LANES]);

/// Weights in panels of [`LANES`] output channels: for each four positions of the depth the four
/// weights of each channel. Missing channels and positions are 0.
#[derive(Debug, Clone)]
pub(crate) struct QuadMatrix(Panels<Quad, 4>);

impl QuadMatrix {
    /// Packs `units` rows of `depth` weights, of which `row` gives each once, in their order, each byte XORed with
    /// `flip`; neither may be 0.
    ///
    /// # Errors
    /// What the budget says.
    pub(crate) fn new<'w>(
        isa: Isa,
        row: impl FnMut(usize) -> &'w [u8],
        flip: u8,
        sizes: (usize, usize),
        budget: &Budget<'_>,
    ) -> Result<Self, OpError> {
        Ok(QuadMatrix(Panels::pack_words(isa, row, sizes, flip, budget)?))
    }

    /// Weights in the same order, as bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// Weights that [`QuadMatrix::bytes`] gave once, which stay where they are kept.
    ///
    /// # Errors
    /// As [`Panels::kept`].
    pub(super) fn kept(packed: &KeptValue, units: usize, depth: usize) -> Result<Self, OpError> {
        Ok(QuadMatrix(Panels::kept(packed, units, depth)?))
    }

    /// Number of output channels.
    #[must_use]
    pub(crate) fn units(&self) -> usize {
        self.0.units()
    }

    /// Length of a row of activations.
    #[must_use]
    pub(crate) fn depth(&self) -> usize {
        self.0.depth()
    }

    /// The weights of `count` output channels from `first` on, which must be a multiple of
    /// [`LANES`].
    pub(crate) fn channels(&self, first: usize, count: usize) -> QuadPanels<'_> {
        assert!(first.is_multiple_of(LANES), "channels of whole panels");
        let len = self.0.panel_len();
        let panels = first / LANES * len..(first + count).div_ceil(LANES) * len;
        QuadPanels { units: count, depth: self.depth(), quads: &self.0.blocks()[panels] }
    }

    /// Bytes held.
    #[must_use]
    pub(crate) fn held_bytes(&self) -> usize {
        self.0.held_bytes()
    }
}

/// Some panels of a [`QuadMatrix`], or all.
#[derive(Clone, Copy)]
pub(crate) struct QuadPanels<'a> {
    units: usize,
    depth: usize,
    quads: &'a [Quad],
}

impl<'a> QuadPanels<'a> {
    /// Number of output channels.
    pub(crate) fn units(&self) -> usize {
        self.units
    }

    /// Length of a row of activations.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// The quads of a panel in the order of the depth.
    pub(crate) fn panel(&self, panel: usize) -> &'a [Quad] {
        let len = self.depth.div_ceil(4);
        &self.quads[panel * len..(panel + 1) * len]
    }
}
