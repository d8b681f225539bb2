//! Recurrent layers on `f32`: what every cell is made of, and the plain cell.

use crate::kernels::simd::portable_kernel;

portable_kernel! {
    /// `rnn/step`: see [`Rnn::step`].
    STEP = "rnn/step",
    operations: [BidirectionalSequenceRnn, Rnn, UnidirectionalSequenceRnn],
    types: [TensorFloat32, TensorFloat16],
}

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

/// The sum of products, in several partial sums so that the compiler can use vectors.
#[must_use]
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 16;
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let tail: f32 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
    let mut sums = [0f32; LANES];
    for (a, b) in a.zip(b) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f32>() + tail
}

/// Adds the product of a matrix of `out.len()` rows with the vector `x` to `out`.
pub(crate) fn add_product(matrix: &[f32], x: &[f32], out: &mut [f32]) {
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

impl Rnn<'_> {
    /// Replaces the hidden state of one sequence by the next; `work` has the same size.
    pub(crate) fn step(
        &self,
        x: &[f32],
        aux: Option<&[f32]>,
        hidden: &mut [f32],
        work: &mut [f32],
    ) {
        work.copy_from_slice(self.bias);
        add_product(self.weights, x, work);
        if let (Some(weights), Some(aux)) = (self.aux_weights, aux) {
            add_product(weights, aux, work);
        }
        add_product(self.recurrent, hidden, work);
        self.activation.apply(work);
        hidden.copy_from_slice(work);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_short_products_agree_with_the_sum_of_squares() {
        for len in [0u16, 1, 15, 16, 17, 40] {
            let ramp: Vec<f32> = (0..len).map(f32::from).collect();
            let n = f32::from(len);
            let squares = if len == 0 { 0.0 } else { (n - 1.0) * n * (2.0 * n - 1.0) / 6.0 };
            assert_eq!(dot(&ramp, &ramp), squares, "{len}");
        }
    }

    #[test]
    fn activations() {
        for (code, want) in [
            (0, Some([-1.0, 0.0, 8.0])),
            (1, Some([0.0, 0.0, 8.0])),
            (2, None),
            (3, Some([0.0, 0.0, 6.0])),
            (4, Some([(-1f32).tanh(), 0.0, 8f32.tanh()])),
            (5, None),
            (6, Some([1.0 / (1.0 + 1f32.exp()), 0.5, 1.0 / (1.0 + (-8f32).exp())])),
        ] {
            let got = Activation::from_code(code).map(|activation| {
                let mut values = [-1.0, 0.0, 8.0];
                activation.apply(&mut values);
                values
            });
            assert_eq!(got, want, "{code}");
        }
    }

    #[test]
    fn one_step_of_two_units() {
        let cell = Rnn {
            weights: &[1.0, 2.0, 3.0, 4.0],
            aux_weights: Some(&[10.0, -10.0]),
            recurrent: &[0.0, 1.0, 1.0, 0.0],
            bias: &[0.5, -0.5],
            activation: Activation::Relu,
        };
        let mut hidden = [100.0, 200.0];
        let mut work = [0.0; 2];
        cell.step(&[1.0, -1.0], Some(&[20.0]), &mut hidden, &mut work);
        // 1 - 2 + 200 + 200 + 0.5, and 3 - 4 - 200 + 100 - 0.5 which is below 0.
        assert_eq!(hidden, [399.5, 0.0]);
    }
}
