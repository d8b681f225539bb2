//! A layer of rank-1 filters over a short memory of its past, on `f32` (singular value
//! decomposition filters).

use crate::kernels::rnn::{Activation, dot};
use crate::kernels::simd::portable_kernel;

portable_kernel! {
    /// `svdf/step`: see [`Svdf::step`].
    STEP = "svdf/step",
    operations: [Svdf],
    types: [TensorFloat32, TensorFloat16],
}

/// The weights of such a layer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Svdf<'a> {
    /// What each filter takes of an input: `[filters, inputs]`.
    pub(crate) feature: &'a [f32],
    /// What each filter takes of its memory: `[filters, memory]`.
    pub(crate) time: &'a [f32],
    /// `[filters / rank]`.
    pub(crate) bias: Option<&'a [f32]>,
    /// Filters summed up in one unit.
    pub(crate) rank: usize,
    /// Slots of each filter's memory, the newest last.
    pub(crate) memory: usize,
    /// What the sums go through.
    pub(crate) activation: Activation,
}

impl Svdf<'_> {
    /// One step of one sequence: `state` (`[filters, memory]`) goes on by one step, `out` is the
    /// output.
    ///
    /// The last slot is only ever written and read within a step: it comes back as 0.
    pub(crate) fn step(&self, x: &[f32], state: &mut [f32], out: &mut [f32]) {
        match self.bias {
            Some(bias) => out.copy_from_slice(bias),
            None => out.fill(0.0),
        }
        let filters = state
            .chunks_exact_mut(self.memory)
            .zip(self.feature.chunks_exact(x.len()))
            .zip(self.time.chunks_exact(self.memory));
        for (filter, ((memory, feature), time)) in filters.enumerate() {
            if let Some(newest) = memory.last_mut() {
                *newest = dot(feature, x);
            }
            out[filter / self.rank] += dot(memory, time);
            memory.rotate_left(1);
            if let Some(newest) = memory.last_mut() {
                *newest = 0.0;
            }
        }
        self.activation.apply(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_remember_and_forget() {
        let layer = Svdf {
            feature: &[1.0, 0.0, 0.0, 1.0],
            time: &[1.0, 10.0, 1.0, 100.0],
            bias: Some(&[0.5]),
            rank: 2,
            memory: 2,
            activation: Activation::None,
        };
        // The last slots hold what must not be read.
        let mut state = [7.0, 99.0, 8.0, 99.0];
        let mut out = [0.0];
        layer.step(&[2.0, 3.0], &mut state, &mut out);
        // 7 + 10 * 2, 8 + 100 * 3, and the bias.
        assert_eq!(out, [335.5]);
        assert_eq!(state, [2.0, 0.0, 3.0, 0.0]);
    }
}
