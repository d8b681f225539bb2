//! Layers with packed weights against the reference, on shapes, options and values that look random.

use burst_hal::OperandType::{TensorFloat16, TensorFloat32};

use crate::kernels::Isa;
use crate::op::OpDef;
use crate::ops::recurrent::{bidirectional_sequence_lstm, lstm, unidirectional_sequence_lstm};
use crate::ops::testing::{Tensor, run, run_fast_on};

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    fn below(&mut self, below: u32) -> u32 {
        u32::try_from(self.next() % u64::from(below)).unwrap()
    }

    fn flag(&mut self) -> bool {
        self.next().is_multiple_of(2)
    }
}

/// The sizes and options of a layer.
struct Options {
    numbers: Numbers,
    half: bool,
    coupled: bool,
    peephole: bool,
    layer_norm: bool,
    projection: bool,
    aux: bool,
    units: u32,
    outputs: u32,
    /// Weights are below this.
    reach: f32,
}

impl Options {
    fn new(seed: u64) -> Self {
        let mut numbers = Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let units = 1 + numbers.below(40);
        let projection = numbers.flag();
        Options {
            half: numbers.below(4) == 0,
            coupled: numbers.below(3) == 0,
            peephole: numbers.flag(),
            layer_norm: numbers.below(3) == 0,
            outputs: if projection { 1 + numbers.below(20) } else { units },
            projection,
            aux: false,
            units,
            reach: 0.5,
            numbers,
        }
    }

    fn tensor(&mut self, dims: &[u32]) -> Tensor {
        let count = dims.iter().product();
        let values: Vec<f32> = (0..count)
            .map(|_| {
                let step = u16::try_from(self.numbers.below(2001)).unwrap();
                self.reach * (f32::from(step) / 1000.0 - 1.0)
            })
            .collect();
        if self.half { Tensor::f16(dims, &values) } else { Tensor::f32(dims, &values) }
    }

    fn maybe(&mut self, given: bool, dims: &[u32]) -> Tensor {
        let ty = if self.half { TensorFloat16 } else { TensorFloat32 };
        if given { self.tensor(dims) } else { Tensor::omitted(ty) }
    }

    /// Weights, biases and projection: 17 operands.
    fn weights(&mut self, inputs: u32) -> Vec<Tensor> {
        let (units, outputs) = (self.units, self.outputs);
        let own = !self.coupled;
        let mut list = Vec::new();
        for depth in [inputs, outputs] {
            list.push(self.maybe(own, &[units, depth]));
            list.extend((0..3).map(|_| self.tensor(&[units, depth])));
        }
        list.push(self.maybe(own && self.peephole, &[units]));
        list.extend((0..2).map(|_| self.maybe(self.peephole, &[units])));
        list.push(self.maybe(own, &[units]));
        list.extend((0..3).map(|_| self.tensor(&[units])));
        list.push(self.maybe(self.projection, &[outputs, units]));
        let has_bias = self.projection && self.numbers.flag();
        list.push(self.maybe(has_bias, &[outputs]));
        list
    }

    fn states(&mut self, batches: u32) -> [Tensor; 2] {
        [self.tensor(&[batches, self.outputs]), self.tensor(&[batches, self.units])]
    }

    /// Four vectors, or matrices, of which the first is the input gate's.
    fn four(&mut self, given: bool, dims: &[u32]) -> Vec<Tensor> {
        (0..4).map(|gate| self.maybe(given && !(gate == 0 && self.coupled), dims)).collect()
    }

    /// Activation and clips.
    fn tuning(&mut self) -> Vec<Tensor> {
        let activation = [0, 1, 3, 4, 6][self.numbers.below(5) as usize];
        let mut list = vec![Tensor::scalar_i32(activation)];
        for clip in [0.4, 0.3] {
            let clip = if self.numbers.flag() { clip } else { 0.0 };
            let half = self.half;
            list.push(if half { Tensor::scalar_f16(clip) } else { Tensor::scalar_f32(clip) });
        }
        list
    }
}

/// Every output but the first `skipped` must be nearly that of the reference.
fn compare(def: &OpDef, inputs: &[Tensor], outputs: usize, skipped: usize, what: &str) {
    let ty = inputs[0].info.ty;
    let outputs = vec![Tensor::output(ty); outputs];
    let want = run(def, inputs, &outputs).unwrap();
    for isa in Isa::each_here() {
        let got = run_fast_on(isa, def, inputs, &outputs).unwrap().expect("constant weights");
        for (got, want) in got.iter().zip(&want).skip(skipped) {
            assert_eq!(got.dims, want.dims, "{what}");
            let values = |tensor: &Tensor| match ty {
                TensorFloat16 => tensor.halves(),
                _ => tensor.values::<f32>(),
            };
            // Halves of numbers below 1 are 2^-11 apart.
            let tolerance = if ty == TensorFloat16 { 1e-3 } else { 2e-5 };
            for (got, want) in values(got).into_iter().zip(values(want)) {
                let near = tolerance * want.abs().max(1.0);
                assert!((got - want).abs() <= near, "{got} for {want}, {what}");
            }
        }
    }
}

fn sequence(
    mut options: Options,
    [outer, inner, inputs]: [u32; 3],
    time_major: bool,
) -> Vec<Tensor> {
    let batches = if time_major { inner } else { outer };
    let mut list = vec![options.tensor(&[outer, inner, inputs])];
    list.extend(options.weights(inputs));
    list.extend(options.states(batches));
    list.extend(options.tuning());
    list.push(Tensor::scalar_bool(time_major));
    let (given, units) = (options.layer_norm, options.units);
    list.extend(options.four(given, &[units]));
    list
}

#[test]
fn sequences_equal_the_reference() {
    for seed in 0..120 {
        let mut options = Options::new(seed);
        let dims = [8, 5, 30].map(|below| 1 + options.numbers.below(below));
        let list = sequence(options, dims, seed % 2 == 0);
        compare(&unidirectional_sequence_lstm::DEF, &list, 3, 0, &format!("seed {seed}"));
        compare(&unidirectional_sequence_lstm::DEF, &list, 1, 0, &format!("seed {seed}"));
    }
}

#[test]
fn sums_of_long_sequences_are_computed_in_parts() {
    for time_major in [false, true] {
        let mut options = Options::new(1);
        (options.half, options.units, options.reach) = (false, 130, 0.1);
        (options.projection, options.outputs) = (false, 130);
        let dims = if time_major { [80, 2, 9] } else { [2, 80, 9] };
        let list = sequence(options, dims, time_major);
        compare(&unidirectional_sequence_lstm::DEF, &list, 3, 0, "a long sequence");
    }
}

#[test]
fn single_steps_equal_the_reference() {
    for seed in 0..60 {
        let mut options = Options::new(seed);
        let (batches, inputs) = (1 + options.numbers.below(9), 1 + options.numbers.below(30));
        let mut list = vec![options.tensor(&[batches, inputs])];
        list.extend(options.weights(inputs));
        list.extend(options.states(batches));
        list.extend(options.tuning());
        let (given, units) = (options.layer_norm, options.units);
        list.extend(options.four(given, &[units]));
        compare(&lstm::DEF, &list, 4, 1, &format!("seed {seed}"));
        if !given {
            compare(&lstm::DEF, &list[..23], 4, 1, &format!("seed {seed}, short form"));
        }
    }
}

#[test]
fn both_directions_equal_the_reference() {
    for seed in 0..60 {
        let mut options = Options::new(seed);
        let [outer, inner, inputs] = [6, 4, 20].map(|below| 1 + options.numbers.below(below));
        let (merged, time_major) = (options.numbers.flag(), options.numbers.flag());
        let batches = if time_major { inner } else { outer };
        let has_aux = options.numbers.flag();
        options.aux = has_aux && options.numbers.flag();
        let mut list = vec![options.tensor(&[outer, inner, inputs])];
        list.extend(options.weights(inputs));
        list.extend(options.weights(inputs));
        list.extend(options.states(batches));
        list.extend(options.states(batches));
        list.push(options.maybe(has_aux, &[outer, inner, inputs]));
        let (aux, norm, units) = (options.aux, options.layer_norm, options.units);
        list.extend(options.four(aux, &[units, inputs]));
        list.extend(options.four(aux, &[units, inputs]));
        list.extend(options.tuning());
        list.extend([Tensor::scalar_bool(merged), Tensor::scalar_bool(time_major)]);
        list.extend(options.four(norm, &[units]));
        list.extend(options.four(norm, &[units]));
        let outputs = if merged { 5 } else { 6 };
        let def = &bidirectional_sequence_lstm::DEF;
        compare(def, &list, outputs, 0, &format!("seed {seed}"));
        compare(def, &list, outputs - 4, 0, &format!("seed {seed}"));
    }
}

#[test]
fn states_of_another_shape_are_refused() {
    let list = sequence(Options::new(3), [2, 3, 4], true);
    let def = &unidirectional_sequence_lstm::DEF;
    let outputs = [Tensor::output(list[0].info.ty)];
    assert!(run_fast_on(Isa::detect(), def, &list, &outputs).is_ok());
    for index in [18, 19] {
        let mut wrong = list.clone();
        wrong[index] = Tensor::f32(&[1, 1], &[0.0]);
        assert!(run_fast_on(Isa::detect(), def, &wrong, &outputs).is_err());
    }
}
