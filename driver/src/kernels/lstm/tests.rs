//! Gates with packed weights against the cell as it is defined.

use super::float::{Gate, Lstm, Projection, State};
use super::*;
use crate::budget::Budget;
use crate::kernels::rnn::Activation;
use crate::kernels::simd::Isa;
use crate::kernels::testing::Numbers;

/// Numbers in -0.6 to 0.6.
fn weights(numbers: &mut Numbers, count: usize) -> Vec<f32> {
    numbers.small_floats(count).into_iter().map(|x| x / 10.0).collect()
}

pub(crate) fn gates(isa: Isa) {
    for seed in 0..24 {
        let numbers = &mut Numbers::new(seed);
        let (coupled, peephole, norm, projected) =
            (seed % 2 == 1, seed % 3 == 1, seed % 4 > 1, seed % 5 == 1);
        let (units, inputs) = (1 + numbers.below(40), 1 + numbers.below(9));
        let outputs = if projected { 1 + numbers.below(20) } else { units };
        let mut vectors = [(); 4].map(|()| {
            [units * inputs, units * outputs, units, units, units].map(|n| weights(numbers, n))
        });
        // Weights of normalised sums are about 1.
        vectors.iter_mut().flat_map(|gate| &mut gate[3]).for_each(|weight| *weight += 1.0);
        let [input_gate, forget_gate, cell_gate, output_gate] =
            vectors.each_ref().map(|[input, recurrent, peep, layer_norm, bias]| Gate {
                input,
                aux: None,
                recurrent,
                peephole: peephole.then_some(peep.as_slice()),
                layer_norm: norm.then_some(layer_norm.as_slice()),
                bias,
            });
        let (projection, bias) = (weights(numbers, outputs * units), weights(numbers, outputs));
        let lstm = Lstm {
            input_gate: (!coupled).then_some(input_gate),
            forget_gate,
            cell_gate: Gate { peephole: None, ..cell_gate },
            output_gate,
            projection: projected.then_some(Projection { weights: &projection, bias: Some(&bias) }),
            activation: if seed % 6 == 5 { Activation::Sigmoid } else { Activation::Tanh },
            cell_clip: if seed % 7 == 3 { 0.3 } else { 0.0 },
            projection_clip: if seed % 7 == 4 { 0.2 } else { 0.0 },
        };
        let packed = PackedLstm::new(&lstm, &Budget::default()).unwrap();
        let (mut output, mut cell) = (weights(numbers, outputs), weights(numbers, units));
        let (mut want_output, mut want_cell) = (output.clone(), cell.clone());
        for _ in 0..4 {
            let x = weights(numbers, inputs);
            let state = State { output: &mut want_output, cell: &mut want_cell };
            lstm.step(&x, None, state, &mut vec![f32::NAN; Lstm::work(units)]);
            let mut sums = vec![f32::NAN; packed.sums()];
            packed.take_inputs(isa, &x, None, &mut sums, packed.sums()).unwrap();
            packed.step(isa, &mut sums, &mut output, &mut cell).unwrap();
        }
        let pairs = output.iter().chain(&cell).zip(want_output.iter().chain(&want_cell));
        for (got, want) in pairs {
            assert!((got - want).abs() < 1e-4, "seed {seed}: {got}, {want}");
        }
    }
}
