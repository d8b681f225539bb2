//! A layer of rank-1 filters over a short memory of its past, on `f32` (singular value
//! decomposition filters).

use crate::kernels::rnn::{Activation, dot};

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod dispatch;
#[cfg(test)]
pub(super) mod tests;

pub(crate) use dispatch::{STEP, step};

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

/// One step of one sequence: `state` (`[filters, memory]`) goes on by one step, `out` is the
/// output.
///
/// The last slot is only ever written and read within a step: it comes back as 0.
#[inline(always)]
fn step_plainly(layer: &Svdf<'_>, x: &[f32], state: &mut [f32], out: &mut [f32]) {
    step_with(layer, x, state, out, dot);
}

/// As [`step_plainly`], with this function for sums of products.
#[inline(always)]
fn step_with(
    layer: &Svdf<'_>,
    x: &[f32],
    state: &mut [f32],
    out: &mut [f32],
    dot: impl Fn(&[f32], &[f32]) -> f32,
) {
    match layer.bias {
        Some(bias) => out.copy_from_slice(bias),
        None => out.fill(0.0),
    }
    let (memory, rank) = (layer.memory, layer.rank);
    for filter in 0..state.len() / memory {
        let feature = &layer.feature[filter * x.len()..][..x.len()];
        state[(filter + 1) * memory - 1] = dot(feature, x);
    }
    for (unit, out) in out.iter_mut().enumerate() {
        for filter in unit * rank..(unit + 1) * rank {
            let slots = filter * memory..(filter + 1) * memory;
            *out += dot(&state[slots.clone()], &layer.time[slots]);
        }
    }
    // All filters forget their oldest in one go. What moves over from the next filter is the slot that becomes 0.
    state.copy_within(1.., 0);
    for newest in state.iter_mut().skip(memory - 1).step_by(memory) {
        *newest = 0.0;
    }
    layer.activation.apply(out);
}
