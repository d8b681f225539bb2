//! Gates with packed weights against the cell as it is defined; cells on integers with every instruction set.

use super::float::{Gate, Lstm, Projection, State};
use super::quant8::{self, LayerNorm, Lstm8, Step};
use super::*;
use crate::budget::Budget;
use crate::kernels::quant::Multiplier;
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
        let packed = PackedLstm::new(isa, &lstm, &Budget::default()).unwrap();
        let (mut output, mut cell) = (weights(numbers, outputs), weights(numbers, units));
        let (mut want_output, mut want_cell) = (output.clone(), cell.clone());
        for step in 0..4 {
            let x = weights(numbers, inputs);
            let state = State { output: &mut want_output, cell: &mut want_cell };
            lstm.step(&x, None, state, &mut vec![f32::NAN; Lstm::work(units)]);
            let mut sums = vec![f32::NAN; packed.sums()];
            packed.take_inputs(isa, &x, None, &mut sums, packed.sums()).unwrap();
            packed.step(isa, step, &mut sums, &mut output, &mut cell).unwrap();
        }
        let pairs = output.iter().chain(&cell).zip(want_output.iter().chain(&want_cell));
        for (got, want) in pairs {
            assert!((got - want).abs() < 1e-4, "seed {seed}: {got}, {want}");
        }
    }
}

/// From which end a step takes the weights is a matter of caches alone.
#[test]
fn steps_from_the_end_give_the_same_bits() {
    let numbers = &mut Numbers::new(7);
    let (inputs, units) = (3, 75); // sums of more than two parts, the last of which is no whole panel
    let [input, recurrent, bias] =
        [units * inputs, units * units, units].map(|count| weights(numbers, count));
    let gate = Gate {
        input: &input,
        aux: None,
        recurrent: &recurrent,
        peephole: None,
        layer_norm: None,
        bias: &bias,
    };
    let lstm = Lstm {
        input_gate: Some(gate),
        forget_gate: gate,
        cell_gate: gate,
        output_gate: gate,
        projection: None,
        activation: Activation::Tanh,
        cell_clip: 0.0,
        projection_clip: 0.0,
    };
    for isa in Isa::each_here() {
        let packed = PackedLstm::new(isa, &lstm, &Budget::default()).unwrap();
        let (x, output, cell) =
            (weights(numbers, inputs), weights(numbers, units), weights(numbers, units));
        let stepped = |step| {
            let (mut output, mut cell) = (output.clone(), cell.clone());
            let mut sums = vec![f32::NAN; packed.sums()];
            packed.take_inputs(isa, &x, None, &mut sums, packed.sums()).unwrap();
            packed.step(isa, step, &mut sums, &mut output, &mut cell).unwrap();
            [output, cell].map(|values| values.into_iter().map(f32::to_bits).collect::<Vec<_>>())
        };
        assert_eq!(stepped(0), stepped(1), "{isa:?}");
    }
}

/// Every instruction set gives the same bits.
pub(crate) fn quant8(isa: Isa) {
    for seed in 0..24u32 {
        let numbers = &mut Numbers::new(seed.into());
        let (units, inputs) = (1 + numbers.below(40), 1 + numbers.below(40));
        let has_projection = seed % 2 == 1;
        let outputs = if has_projection { 1 + numbers.below(20) } else { units };
        let mut bytes =
            |count| -> Vec<i8> { numbers.bytes(count).into_iter().map(u8::cast_signed).collect() };
        let gates = [(); 4].map(|()| [units * inputs, units * outputs].map(&mut bytes));
        let (x, previous) = (bytes(inputs), bytes(outputs));
        let projection = bytes(outputs * units);
        let short = |count: usize| -> Vec<i16> {
            (0..count)
                .scan(0i16, |at, _| Some(std::mem::replace(at, at.wrapping_add(2311))))
                .collect()
        };
        let (peephole, cell) = (short(units), short(units));
        let (norm, bias) = (short(units), vec![77_777; units]);
        let scale = |shift| Multiplier { multiplier: 1_500_000_000, shift };
        let [input_gate, forget_gate, cell_gate, output_gate] =
            gates.each_ref().map(|[input, recurrent]| quant8::Gate {
                input,
                input_scale: scale(-4),
                recurrent,
                recurrent_scale: scale(-3),
                peephole: (seed % 3 == 1).then_some((peephole.as_slice(), scale(-17))),
                layer_norm: (seed % 4 > 1).then_some(LayerNorm {
                    weights: &norm,
                    bias: &bias,
                    scale: scale(-12),
                }),
            });
        let lstm = Lstm8 {
            input_gate: (seed % 5 != 1).then_some(input_gate),
            forget_gate,
            cell_gate: quant8::Gate { peephole: None, ..cell_gate },
            output_gate,
            projection: has_projection.then_some(quant8::Projection {
                weights: &projection,
                bias: None,
                scale: scale(-9),
                clip: if seed % 7 == 3 { 90 } else { 0 },
            }),
            input_zero_point: -3,
            output_zero_point: 5,
            cell_integer_bits: seed % 7,
            cell_clip: if seed % 7 == 4 { 20_000 } else { 0 },
            hidden_scale: scale(-22),
            hidden_zero_point: -1,
        };
        let step = Step { x: &x, previous: &previous, cell: &cell };
        let answers = [Isa::PORTABLE, isa].map(|isa| {
            let (mut next, mut out) = (vec![0; units], vec![0; outputs]);
            let mut work = vec![i32::MIN; Lstm8::work(units)];
            quant8_step(isa, &lstm, step, &mut next, &mut out, &mut work);
            (next, out)
        });
        assert_eq!(answers[0], answers[1], "seed {seed}");
        assert!(answers[0].0.iter().any(|x| *x != 0), "seed {seed}: a cell of nothing");
    }
}
