//! The layer of filters.

use super::*;
use crate::kernels::simd::Isa;
use crate::kernels::testing::Numbers;

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
    step(Isa::PORTABLE, &layer, &[2.0, 3.0], &mut state, &mut out);
    // 7 + 10 * 2, 8 + 100 * 3, and the bias.
    assert_eq!(out, [335.5]);
    assert_eq!(state, [2.0, 0.0, 3.0, 0.0]);
}

/// Every instruction set gives the same bits.
pub(crate) fn steps(isa: Isa) {
    for seed in 0..24usize {
        let numbers = &mut Numbers::new(seed as u64);
        let (units, rank, memory, inputs) = (
            1 + numbers.below(20),
            1 + numbers.below(3),
            1 + numbers.below(20),
            1 + numbers.below(40),
        );
        let filters = units * rank;
        let mut floats = |count| {
            let numbers = numbers.small_floats(count).into_iter();
            numbers.map(|x| x / 7.0).collect::<Vec<f32>>()
        };
        let [feature, time, bias, mut state] =
            [filters * inputs, filters * memory, units, filters * memory].map(&mut floats);
        let layer = Svdf {
            feature: &feature,
            time: &time,
            bias: (seed % 2 == 1).then_some(&bias),
            rank,
            memory,
            activation: if seed % 3 == 1 { Activation::Relu } else { Activation::None },
        };
        let mut want_state = state.clone();
        for _ in 0..3 {
            let x = floats(inputs);
            let (mut out, mut want) = (vec![f32::NAN; units], vec![f32::NAN; units]);
            step_plainly(&layer, &x, &mut want_state, &mut want);
            step(isa, &layer, &x, &mut state, &mut out);
            assert_eq!((&out, &state), (&want, &want_state), "seed {seed}");
        }
    }
}
