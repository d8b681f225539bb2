//! Recurrent layers on `f32`: what every cell is made of, and the plain cell.

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;
mod dispatch;
#[cfg(test)]
pub(super) mod tests;

pub(crate) use dispatch::{STEP, step};

/// What a recurrent layer applies to its sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activation {
    /// Nothing.
    None,
    /// `max(0, x)`.
    Relu,
    /// `x` held in 0 to 6.
    Relu6,
    /// The hyperbolic tangent.
    Tanh,
    /// `1 / (1 + e^-x)`.
    Sigmoid,
}

impl Activation {
    /// The activation with this code. Recurrent operations have codes of their own: those of fused
    /// activations without RELU1, and two more.
    #[must_use]
    pub(crate) fn from_code(code: i32) -> Option<Self> {
        Some(match code {
            0 => Activation::None,
            1 => Activation::Relu,
            3 => Activation::Relu6,
            4 => Activation::Tanh,
            6 => Activation::Sigmoid,
            _ => return None,
        })
    }

    /// Applies it to every value.
    pub(crate) fn apply(self, values: &mut [f32]) {
        match self {
            Activation::None => {}
            Activation::Relu => map(values, |x| if x < 0.0 { 0.0 } else { x }),
            // Unlike `min` and `max`, `clamp` keeps a NaN.
            Activation::Relu6 => map(values, |x| x.clamp(0.0, 6.0)),
            Activation::Tanh => map(values, f32::tanh),
            Activation::Sigmoid => map(values, |x| 1.0 / (1.0 + (-x).exp())),
        }
    }
}

fn map(values: &mut [f32], function: impl Fn(f32) -> f32) {
    for value in values {
        *value = function(*value);
    }
}

/// Sums that are made side by side.
const LANES: usize = 16;

/// The sum of products, in [`LANES`] partial sums (position `i` belongs to sum `i % LANES`) which are added up half
/// onto half: so vectors can be used for all of it, and whatever instructions there are give the same bits.
#[inline(always)]
#[must_use]
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0f32; LANES];
    for (a, b) in a.chunks(LANES).zip(b.chunks(LANES)) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            sums[lane] += sums[lane + half];
        }
        half /= 2;
    }
    sums[0]
}

/// Adds the product of a matrix of `out.len()` rows with the vector `x` to `out`.
#[inline(always)]
pub(crate) fn add_product(matrix: &[f32], x: &[f32], out: &mut [f32]) {
    add_product_with(matrix, x, out, dot);
}

/// The same, with this function for sums of products.
#[inline(always)]
fn add_product_with(
    matrix: &[f32],
    x: &[f32],
    out: &mut [f32],
    dot: impl Fn(&[f32], &[f32]) -> f32,
) {
    for (out, row) in out.iter_mut().zip(matrix.chunks_exact(x.len().max(1))) {
        *out += dot(row, x);
    }
}

/// A plain cell: `act(weights * x + aux_weights * aux + recurrent * hidden + bias)`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rnn<'a> {
    /// `[units, inputs]`.
    pub(crate) weights: &'a [f32],
    /// `[units, auxiliary inputs]`.
    pub(crate) aux_weights: Option<&'a [f32]>,
    /// `[units, units]`.
    pub(crate) recurrent: &'a [f32],
    /// `[units]`.
    pub(crate) bias: &'a [f32],
    /// What the sums go through.
    pub(crate) activation: Activation,
}

/// Replaces the hidden state of one sequence by the next; `work` has the same size.
#[inline(always)]
fn step_plainly(
    cell: &Rnn<'_>,
    x: &[f32],
    aux: Option<&[f32]>,
    hidden: &mut [f32],
    work: &mut [f32],
) {
    step_with(cell, (x, aux), hidden, work, dot);
}

/// As [`step_plainly`], with this function for sums of products.
#[inline(always)]
fn step_with(
    cell: &Rnn<'_>,
    (x, aux): (&[f32], Option<&[f32]>),
    hidden: &mut [f32],
    work: &mut [f32],
    dot: impl Fn(&[f32], &[f32]) -> f32 + Copy,
) {
    work.copy_from_slice(cell.bias);
    add_product_with(cell.weights, x, work, dot);
    if let (Some(weights), Some(aux)) = (cell.aux_weights, aux) {
        add_product_with(weights, aux, work, dot);
    }
    add_product_with(cell.recurrent, hidden, work, dot);
    cell.activation.apply(work);
    hidden.copy_from_slice(work);
}
