//! A quantized LSTM cell with all options: 8-bit weights and outputs, 16-bit gates and cell.
//!
//! Gates are computed from Q3 numbers of 16 bits; the cell has a power of two as scale. The answers
//! are defined by this arithmetic, bit for bit.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "values are clamped to their type before they are narrowed; counts are small"
)]

use super::fixed_point::{GATE_INTEGER_BITS, logistic_all, saturate, tanh_all, whole_lanes};
use crate::kernels::norm::inverse_sqrt;
use crate::kernels::quant::{Multiplier, rounding_divide_by_power_of_two};

/// The weights of one gate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gate<'a> {
    /// `[units, inputs]`.
    pub(crate) input: &'a [i8],
    /// From products of the input to the gate's own scale.
    pub(crate) input_scale: Multiplier,
    /// `[units, outputs]`.
    pub(crate) recurrent: &'a [i8],
    /// From products of the last output to the gate's own scale.
    pub(crate) recurrent_scale: Multiplier,
    /// `[units]`, for the cell's own value, and from their products to the gate's own scale.
    pub(crate) peephole: Option<(&'a [i16], Multiplier)>,
    /// Without it the gate's own scale should be that of Q3, and there is no bias.
    pub(crate) layer_norm: Option<LayerNorm<'a>>,
}

/// What makes Q3 of a gate's sums.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LayerNorm<'a> {
    /// `[units]`.
    pub(crate) weights: &'a [i16],
    /// `[units]`.
    pub(crate) bias: &'a [i32],
    /// The real value of one step of the weights.
    pub(crate) scale: Multiplier,
}

/// The weights that turn units into outputs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Projection<'a> {
    /// `[outputs, units]`.
    pub(crate) weights: &'a [i8],
    /// `[outputs]`.
    pub(crate) bias: Option<&'a [i32]>,
    /// From products to the output's scale.
    pub(crate) scale: Multiplier,
    /// Bound of a stored output's magnitude; 0 for none.
    pub(crate) clip: i32,
}

/// A layer of such cells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lstm8<'a> {
    /// How much of the candidate is added to the cell; `None`: 1 less the forget gate ("coupled").
    pub(crate) input_gate: Option<Gate<'a>>,
    /// How much of the cell is kept.
    pub(crate) forget_gate: Gate<'a>,
    /// The candidate: what may be added to the cell.
    pub(crate) cell_gate: Gate<'a>,
    /// How much of the activated cell is the hidden value.
    pub(crate) output_gate: Gate<'a>,
    /// Outputs from units; `None`: the units are the outputs.
    pub(crate) projection: Option<Projection<'a>>,
    /// Stored value of real 0 in inputs.
    pub(crate) input_zero_point: i32,
    /// Stored value of real 0 in outputs.
    pub(crate) output_zero_point: i32,
    /// Integer bits of the cell: 0 to 6.
    pub(crate) cell_integer_bits: u32,
    /// Bound of the stored cell's magnitude; 0 for none.
    pub(crate) cell_clip: i32,
    /// From Q0 times Q0 to what a projection reads.
    pub(crate) hidden_scale: Multiplier,
    /// Taken off what a projection reads; it adds it again.
    pub(crate) hidden_zero_point: i32,
}

/// What one step reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step<'a> {
    /// `[inputs]`.
    pub(crate) x: &'a [i8],
    /// `[outputs]`.
    pub(crate) previous: &'a [i8],
    /// `[units]`.
    pub(crate) cell: &'a [i16],
}

/// Arrays of one number per unit that a step works in: one for each gate, one for what is added to it.
const ARRAYS: usize = 5;

impl Lstm8<'_> {
    /// Integers of working memory that a step of this many units takes.
    #[must_use]
    pub(crate) fn work(units: usize) -> usize {
        ARRAYS * whole_lanes(units)
    }

    /// What a gate is computed from, as Q3. `part` is working memory.
    #[inline(always)]
    fn sums(
        &self,
        gate: &Gate<'_>,
        step: Step<'_>,
        cell: &[i16],
        out: &mut [i32],
        part: &mut [i32],
    ) {
        let units = cell.len();
        multiply(gate.input, step.x, self.input_zero_point, &mut out[..units]);
        multiply(gate.recurrent, step.previous, self.output_zero_point, &mut part[..units]);
        // With what lies behind the units, which nobody reads: whole vectors cost no more.
        for (out, part) in out.iter_mut().zip(&*part) {
            let sum = clamp16(gate.input_scale.apply(*out));
            *out = clamp16(sum.saturating_add(gate.recurrent_scale.apply(*part)));
        }
        if let Some((weights, scale)) = gate.peephole {
            for ((out, weight), cell) in out.iter_mut().zip(weights).zip(cell) {
                let product = scale.apply(i32::from(*weight) * i32::from(*cell));
                *out = clamp16(out.saturating_add(product));
            }
        }
        if let Some(norm) = &gate.layer_norm {
            norm.apply(&mut out[..units]);
        }
    }

    #[inline(always)]
    fn next_cell(
        &self,
        cell: &[i16],
        forget_gate: &[i32],
        input_gate: &[i32],
        candidate: &[i32],
        next: &mut [i16],
    ) {
        let fraction_bits = 15 - self.cell_integer_bits as i32;
        let inputs =
            input_gate.iter().zip(candidate).map(|(input_gate, candidate)| input_gate * candidate);
        for (((next, cell), forget_gate), product) in
            next.iter_mut().zip(cell).zip(forget_gate).zip(inputs)
        {
            let old = rounding_divide_by_power_of_two(forget_gate * i32::from(*cell), 15);
            let new = rounding_divide_by_power_of_two(product, 30 - fraction_bits);
            let mut sum = clamp16(old + new);
            if self.cell_clip > 0 {
                sum = sum.clamp(-self.cell_clip, self.cell_clip);
            }
            *next = saturate(sum);
        }
    }

    #[inline(always)]
    fn project(&self, hidden: &[i32], out: &mut [i8]) {
        let Some(projection) = &self.projection else {
            for (out, hidden) in out.iter_mut().zip(hidden) {
                *out = *hidden as i8;
            }
            return;
        };
        let rows = projection.weights.chunks_exact(hidden.len());
        for (index, (out, row)) in out.iter_mut().zip(rows).enumerate() {
            let bias = projection.bias.and_then(|bias| bias.get(index)).copied().unwrap_or(0);
            let sum = row.iter().zip(hidden).fold(bias, |sum, (weight, hidden)| {
                sum.wrapping_add(i32::from(*weight) * (hidden + self.hidden_zero_point))
            });
            let scaled = projection.scale.apply(sum).saturating_add(self.output_zero_point);
            let mut stored = scaled.clamp(-128, 127);
            if projection.clip > 0 {
                stored = stored.clamp(-projection.clip, projection.clip);
            }
            *out = stored as i8;
        }
    }
}

impl LayerNorm<'_> {
    /// Shifts and scales sums to a mean of 0 and a variance of 1 (with ten more bits), weighs them,
    /// adds the bias, and makes Q3 of them.
    fn apply(&self, sums: &mut [i32]) {
        const MORE_BITS: u32 = 10;
        const ONE: i64 = 1 << MORE_BITS;
        let count = sums.len() as i64;
        let sum: i64 = sums.iter().copied().map(i64::from).sum();
        let squares: i64 = sums.iter().map(|x| i64::from(*x) * i64::from(*x)).sum();
        let mean = sum * ONE / count;
        // Exact only for a number of units that is a power of two, as in the reference.
        let variance = (squares * (ONE * ONE / count) - mean * mean) / (ONE * ONE);
        let inverse = inverse_sqrt(clamp32(variance.max(1)));
        let to_q3 = Multiplier { shift: self.scale.shift + 12, ..self.scale };
        for ((value, weight), bias) in sums.iter_mut().zip(self.weights).zip(self.bias) {
            let shifted = clamp32(ONE * i64::from(*value) - mean);
            let normal = i64::from(inverse.apply(shifted));
            let weighed = normal * i64::from(*weight) + i64::from(*bias);
            let half = if weighed > 0 { ONE / 2 } else { -ONE / 2 };
            *value = clamp16(to_q3.apply(clamp32((weighed + half) / ONE)));
        }
    }
}

/// Takes one sequence a step further.
#[inline(always)]
pub(crate) fn step(
    lstm: &Lstm8<'_>,
    step: Step<'_>,
    next: &mut [i16],
    out: &mut [i8],
    work: &mut [i32],
) {
    let units = next.len();
    let lanes = whole_lanes(units);
    let (input_gate, work) = work.split_at_mut(lanes);
    let (forget_gate, work) = work.split_at_mut(lanes);
    let (candidate, work) = work.split_at_mut(lanes);
    let (output_gate, work) = work.split_at_mut(lanes);
    let part = &mut work[..lanes];

    lstm.sums(&lstm.forget_gate, step, step.cell, forget_gate, part);
    logistic_all(forget_gate);
    match &lstm.input_gate {
        Some(gate) => {
            lstm.sums(gate, step, step.cell, input_gate, part);
            logistic_all(input_gate);
        }
        None => {
            for (input_gate, forget_gate) in input_gate.iter_mut().zip(&*forget_gate) {
                *input_gate = i32::from(i16::MAX) - forget_gate;
            }
        }
    }
    lstm.sums(&lstm.cell_gate, step, step.cell, candidate, part);
    tanh_all(candidate, GATE_INTEGER_BITS);
    lstm.next_cell(step.cell, forget_gate, input_gate, candidate, next);

    lstm.sums(&lstm.output_gate, step, next, output_gate, part);
    logistic_all(output_gate);
    for (part, cell) in part.iter_mut().zip(&*next) {
        *part = i32::from(*cell);
    }
    tanh_all(part, lstm.cell_integer_bits);
    let hidden = output_gate;
    for (hidden, cell) in hidden.iter_mut().zip(&*part) {
        let scaled = lstm.hidden_scale.apply(*hidden * *cell);
        *hidden = scaled.saturating_sub(lstm.hidden_zero_point).clamp(-128, 127);
    }
    lstm.project(&hidden[..units], out);
}

/// The product of a matrix of `out.len()` rows with values less their zero point.
#[inline(always)]
fn multiply(matrix: &[i8], values: &[i8], zero_point: i32, out: &mut [i32]) {
    for (out, row) in out.iter_mut().zip(matrix.chunks_exact(values.len())) {
        *out = products(row, values, zero_point);
    }
}

/// Products that are added up side by side: of long rows, and of what is left of them.
const LONG: usize = 16;
const SHORT: usize = 4;

/// The sum of products of weights with values less their zero point.
#[inline(always)]
fn products(weights: &[i8], values: &[i8], zero_point: i32) -> i32 {
    let (long, weights) = weights.as_chunks::<LONG>();
    let (long_values, values) = values.as_chunks::<LONG>();
    let (short, weights) = weights.as_chunks::<SHORT>();
    let (short_values, values) = values.as_chunks::<SHORT>();
    let sum = side_by_side(long, long_values, zero_point);
    let sum = sum.wrapping_add(side_by_side(short, short_values, zero_point));
    sum.wrapping_add(side_by_side(weights.as_chunks::<1>().0, values.as_chunks().0, zero_point))
}

/// As [`products`], in `N` sums.
#[inline(always)]
fn side_by_side<const N: usize>(weights: &[[i8; N]], values: &[[i8; N]], zero_point: i32) -> i32 {
    let mut sums = [0i32; N];
    for (weights, values) in weights.iter().zip(values) {
        for ((sum, weight), value) in sums.iter_mut().zip(weights).zip(values) {
            *sum = sum.wrapping_add(i32::from(*weight) * (i32::from(*value) - zero_point));
        }
    }
    let mut all = 0i32;
    for sum in sums {
        all = all.wrapping_add(sum);
    }
    all
}

#[inline(always)]
fn clamp16(x: i32) -> i32 {
    saturate(x).into()
}

fn clamp32(x: i64) -> i32 {
    x.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Multiplier = Multiplier { multiplier: 1 << 30, shift: 1 };

    /// A gate of one unit and one input; both weights are given.
    fn gate<'a>(input: &'a [i8], recurrent: &'a [i8]) -> Gate<'a> {
        Gate {
            input,
            input_scale: ONE,
            recurrent,
            recurrent_scale: ONE,
            peephole: None,
            layer_norm: None,
        }
    }

    /// A cell in Q3 whose gates are half open.
    fn cell() -> Lstm8<'static> {
        Lstm8 {
            input_gate: Some(gate(&[0], &[0])),
            forget_gate: gate(&[0], &[0]),
            cell_gate: gate(&[0], &[0]),
            output_gate: gate(&[0], &[0]),
            projection: None,
            input_zero_point: 0,
            output_zero_point: 0,
            cell_integer_bits: 3,
            cell_clip: 0,
            // Q0 times Q0 is 30 fraction bits; 7 of them are left.
            hidden_scale: Multiplier { multiplier: 1 << 30, shift: -22 },
            hidden_zero_point: 0,
        }
    }

    fn step(lstm: &Lstm8<'_>, x: i8, previous: i8, cell: i16) -> (i16, i8) {
        let (mut next, mut out) = ([0], [0]);
        let step = Step { x: &[x], previous: &[previous], cell: &[cell] };
        let mut work = vec![0x5555; Lstm8::work(1)];
        super::step(lstm, step, &mut next, &mut out, &mut work);
        (next[0], out[0])
    }

    #[test]
    fn half_open_gates_halve() {
        // 4096 is real 1, kept by half; half of tanh(0.5) = 0.4621 is the output: 29.6 of 128.
        assert_eq!(step(&cell(), 1, 1, 4096), (2048, 30));
        assert_eq!(step(&cell(), 1, 1, -4096), (-2048, -30));
    }

    #[test]
    fn sums_are_products_of_what_is_above_the_zero_points() {
        let lstm = Lstm8 { input_zero_point: -3, output_zero_point: 10, ..cell() };
        let gate = gate(&[7], &[-5]);
        let step = Step { x: &[4], previous: &[12], cell: &[0] };
        let (mut out, mut part) = ([0], [0]);
        lstm.sums(&gate, step, step.cell, &mut out, &mut part);
        assert_eq!(out, [7 * 7 - 5 * 2]);
        let peephole = Some((&[100i16][..], ONE));
        lstm.sums(&Gate { peephole, ..gate }, step, &[3], &mut out, &mut part);
        assert_eq!(out, [39 + 300]);
        let far = Multiplier { multiplier: 1 << 30, shift: 16 };
        lstm.sums(&Gate { input_scale: far, ..gate }, step, &[3], &mut out, &mut part);
        assert_eq!(out, [32_767 - 10], "each part is held in 16 bits");
    }

    #[test]
    fn coupled_gates_add_as_much_as_they_forget() {
        // 20 * 1000 shuts or opens the forget gate; tanh of the same sum is the candidate.
        let shift = Multiplier { multiplier: 1 << 30, shift: 11 };
        let forget_gate = Gate { input_scale: shift, ..gate(&[-20], &[0]) };
        let cell_gate = Gate { input_scale: shift, ..gate(&[20], &[0]) };
        let lstm = Lstm8 { input_gate: None, forget_gate, cell_gate, ..cell() };
        let (next, _) = step(&lstm, 1, 0, 4096);
        // Sums of 5: tanh(5) = 0.9999 less 1 - sigmoid(5), plus a little of the old cell.
        let sigmoid = 1.0 / (1.0 + (-5f64).exp());
        let want = (sigmoid * 5f64.tanh() + (1.0 - sigmoid)) * 4096.0;
        assert!((f64::from(next) - want).abs() < 4.0, "{next}, {want}");
    }

    #[test]
    fn clips_bound_the_stored_cell() {
        let lstm = Lstm8 { cell_clip: 100, ..cell() };
        assert_eq!(step(&lstm, 0, 0, 4096).0, 100);
        assert_eq!(step(&lstm, 0, 0, -4096).0, -100);
    }

    #[test]
    fn a_projection_adds_what_was_taken_off() {
        let projection = Projection { weights: &[2], bias: Some(&[5]), scale: ONE, clip: 0 };
        let lstm = Lstm8 {
            projection: Some(projection),
            hidden_zero_point: 10,
            output_zero_point: -7,
            ..cell()
        };
        // 30 is stored as 20, and read as 30: 2 * 30 + 5 - 7.
        assert_eq!(step(&lstm, 0, 0, 4096), (2048, 58));
        let projection = Projection { clip: 50, ..projection };
        let lstm = Lstm8 { projection: Some(projection), ..lstm };
        assert_eq!(step(&lstm, 0, 0, 4096).1, 50);
        let lstm = Lstm8 { projection: None, ..lstm };
        assert_eq!(step(&lstm, 0, 0, 4096).1, 20);
    }

    #[test]
    fn normalised_sums_are_weighed_in_q3() {
        // Weights of one half by a scale of 2^-14, and a bias of 1 (2^14 times 1024).
        let norm = LayerNorm {
            weights: &[1 << 13, 1 << 13],
            bias: &[0, 1 << 24],
            scale: Multiplier { multiplier: 1 << 30, shift: -13 },
        };
        let mut sums = [300, 500];
        norm.apply(&mut sums);
        // -1 and 1 by a half, in Q3: -2048, and 2048 + 4096.
        assert_eq!(sums, [-2048, 6144]);
        let mut same = [7, 7];
        norm.apply(&mut same);
        assert_eq!(same, [0, 4096]);
    }
}
