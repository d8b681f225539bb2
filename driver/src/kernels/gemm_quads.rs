//! Products of unsigned bytes with signed ones for the instruction that multiplies four pairs and
//! adds them up (VNNI), each sum brought to its stored value before it leaves the registers.

/// Output channels of a panel: one register of sums.
pub(crate) const LANES: usize = 16;

/// Four weights of each of 16 channels.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Quad(pub(crate) [[i8; 4]; LANES]);

/// Weights in panels of [`LANES`] output channels: for each four positions of the depth the four
/// weights of each channel. Missing channels and positions are 0.
#[derive(Clone)]
pub struct QuadMatrix {
    units: usize,
    depth: usize,
    quads: Vec<Quad>,
}

impl std::fmt::Debug for QuadMatrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "QuadMatrix({} x {})", self.depth, self.units)
    }
}

impl QuadMatrix {
    /// Packs weights `[units, depth]`; there must be that many, and neither may be 0.
    #[must_use]
    pub fn new(weights: &[i8], units: usize, depth: usize) -> Self {
        let weight = |unit: usize, position: usize| {
            let inside = unit < units && position < depth;
            if inside { weights[unit * depth + position] } else { 0 }
        };
        let mut quads = Vec::with_capacity(units.div_ceil(LANES) * depth.div_ceil(4));
        for first in (0..units).step_by(LANES) {
            for position in (0..depth).step_by(4) {
                quads.push(Quad(std::array::from_fn(|lane| {
                    std::array::from_fn(|step| weight(first + lane, position + step))
                })));
            }
        }
        QuadMatrix { units, depth, quads }
    }

    /// Number of output channels.
    #[must_use]
    pub fn units(&self) -> usize {
        self.units
    }

    /// Length of a row of activations.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The weights of `count` output channels from `first` on, which must be a multiple of
    /// [`LANES`].
    pub(crate) fn channels(&self, first: usize, count: usize) -> QuadPanels<'_> {
        assert!(first.is_multiple_of(LANES), "channels of whole panels");
        let len = self.depth.div_ceil(4);
        let panels = first / LANES * len..(first + count).div_ceil(LANES) * len;
        QuadPanels { units: count, depth: self.depth, quads: &self.quads[panels] }
    }

    /// Bytes held.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        size_of_val(self.quads.as_slice())
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
