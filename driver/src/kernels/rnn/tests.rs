//! The plain cell, and what it is made of.

use super::*;
use crate::kernels::simd::Isa;
use crate::kernels::testing::Numbers;

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
    step(Isa::PORTABLE, &cell, &[1.0, -1.0], Some(&[20.0]), &mut hidden, &mut work);
    // 1 - 2 + 200 + 200 + 0.5, and 3 - 4 - 200 + 100 - 0.5 which is below 0.
    assert_eq!(hidden, [399.5, 0.0]);
}

/// Every instruction set gives the same bits.
pub(crate) fn steps(isa: Isa) {
    for seed in 0..24usize {
        let numbers = &mut Numbers::new(seed as u64);
        let (units, inputs, aux_inputs) =
            (1 + numbers.below(40), 1 + numbers.below(40), 1 + numbers.below(9));
        let mut floats = |count| {
            let numbers = numbers.small_floats(count).into_iter();
            numbers.map(|x| x / 7.0).collect::<Vec<f32>>()
        };
        let [weights, aux_weights, recurrent, bias, x, aux] =
            [units * inputs, units * aux_inputs, units * units, units, inputs, aux_inputs]
                .map(&mut floats);
        let has_aux = seed % 2 == 1;
        let cell = Rnn {
            weights: &weights,
            aux_weights: has_aux.then_some(&aux_weights),
            recurrent: &recurrent,
            bias: &bias,
            activation: [Activation::Tanh, Activation::Relu6, Activation::None][seed % 3],
        };
        let aux = has_aux.then_some(aux.as_slice());
        let (mut hidden, mut work) = (floats(units), vec![f32::NAN; units]);
        let mut want = hidden.clone();
        step_plainly(&cell, &x, aux, &mut want, &mut work);
        step(isa, &cell, &x, aux, &mut hidden, &mut work);
        assert_eq!(hidden, want, "seed {seed}");
    }
}
