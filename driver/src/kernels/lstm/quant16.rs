//! A quantized LSTM cell with 16-bit state: 8-bit weights and outputs, all gates in 16-bit fixed
//! point.
//!
//! Inputs and outputs stand for -1 to 1 (`(q - 128) / 128`), gates are Q3, the cell is Q4. The
//! answers are defined by this arithmetic, bit for bit.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "values are clamped to their type before they are narrowed"
)]

use super::fixed_point::{
    GATE_INTEGER_BITS, high_mul, logistic, saturate, shift_left, shift_right, tanh,
};
use crate::kernels::quant::Multiplier;

/// Stored value of real 0 in inputs and outputs.
const ZERO_POINT: i32 = 128;
/// Integer bits of the cell.
pub(crate) const CELL_INTEGER_BITS: u32 = 4;

/// The weights of one gate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gate<'a> {
    /// `[units, inputs]`.
    pub(crate) input: &'a [u8],
    /// `[units, units]`.
    pub(crate) recurrent: &'a [u8],
    /// `[units]`.
    pub(crate) bias: &'a [i32],
}

/// A layer of such cells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lstm16<'a> {
    /// How much of the candidate is added to the cell.
    pub(crate) input_gate: Gate<'a>,
    /// How much of the cell is kept.
    pub(crate) forget_gate: Gate<'a>,
    /// The candidate: what may be added to the cell.
    pub(crate) cell_gate: Gate<'a>,
    /// How much of the activated cell is the hidden value.
    pub(crate) output_gate: Gate<'a>,
    /// Stored value of real 0 in all weights.
    pub(crate) weights_zero_point: i32,
    /// From sums to Q3.
    pub(crate) multiplier: Multiplier,
}

impl Lstm16<'_> {
    /// Takes one sequence a step further: from an input, the last output and cell to the next.
    pub(crate) fn step(
        &self,
        x: &[u8],
        previous: &[u8],
        cell: &[i16],
        next: &mut [i16],
        out: &mut [u8],
    ) {
        for (unit, ((next, out), cell)) in next.iter_mut().zip(out).zip(cell).enumerate() {
            let sum = |gate: &Gate<'_>| self.sum(gate, unit, x, previous);
            let from_candidate = high_mul(
                logistic(sum(&self.input_gate)),
                tanh(sum(&self.cell_gate), GATE_INTEGER_BITS),
            );
            let from_cell = high_mul(logistic(sum(&self.forget_gate)), *cell);
            *next = shift_right(from_candidate, 4).saturating_add(from_cell);
            let gate_like = shift_left(*next, CELL_INTEGER_BITS - GATE_INTEGER_BITS);
            let hidden =
                high_mul(logistic(sum(&self.output_gate)), tanh(gate_like, GATE_INTEGER_BITS));
            let stored = i32::from(shift_right(hidden, 8)).clamp(-128, 127) + ZERO_POINT;
            *out = stored as u8;
        }
    }

    /// What a gate of one unit is computed from, as Q3.
    ///
    /// The reference lays recurrent weights and input weights side by side, and inputs and previous
    /// outputs, in this order: each in its own. So recurrent weights meet inputs first. Models are
    /// trained and tested against that, and it is kept.
    fn sum(&self, gate: &Gate<'_>, unit: usize, x: &[u8], previous: &[u8]) -> i16 {
        let recurrent = row(gate.recurrent, unit, previous.len());
        let weights = recurrent.iter().chain(row(gate.input, unit, x.len()));
        let bias = gate.bias.get(unit).copied().unwrap_or(0);
        let sum = weights.zip(x.iter().chain(previous)).fold(bias, |sum, (weight, value)| {
            let product =
                (i32::from(*value) - ZERO_POINT) * (i32::from(*weight) - self.weights_zero_point);
            sum.wrapping_add(product)
        });
        saturate(self.multiplier.apply(sum))
    }
}

/// One row of a matrix.
fn row(matrix: &[u8], index: usize, columns: usize) -> &[u8] {
    matrix.get(index * columns..(index + 1) * columns).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One unit that sees nothing but its biases: a multiplier of 1 makes them Q3.
    fn step(input: i32, forget: i32, cell_gate: i32, output: i32, cell: i16) -> (i16, u8) {
        let biases = [[input], [forget], [cell_gate], [output]];
        let gate = |bias| Gate { input: &[100], recurrent: &[100], bias };
        let [input, forget, cell_gate, output] = &biases;
        let lstm = Lstm16 {
            input_gate: gate(input),
            forget_gate: gate(forget),
            cell_gate: gate(cell_gate),
            output_gate: gate(output),
            weights_zero_point: 100,
            multiplier: Multiplier { multiplier: 1 << 30, shift: 1 },
        };
        let (mut next, mut out) = ([0], [0]);
        lstm.step(&[255], &[255], &[cell], &mut next, &mut out);
        (next[0], out[0])
    }

    #[test]
    fn half_open_gates_halve() {
        // The cell is kept by half: 1000 -> 500. Of tanh(500 / 2048) = 0.2394 half is the output:
        // 0.1197 * 128 = 15.3.
        assert_eq!(step(0, 0, 0, 0, 1000), (500, 128 + 15));
        assert_eq!(step(0, 0, 0, 0, -1000), (-500, 128 - 15));
    }

    #[test]
    fn open_gates_take_in_and_the_cell_saturates() {
        // Sums of 8 open a gate to 0.99966; tanh(8) is 1: one is added, 2047 steps.
        let (cell, _) = step(40_000, 0, 40_000, 0, 0);
        assert!((2046..=2048).contains(&cell), "{cell}");
        let (cell, out) = step(40_000, 40_000, 40_000, 40_000, i16::MAX);
        assert_eq!((cell, out), (i16::MAX, 255));
    }

    #[test]
    fn products_are_taken_off_their_zero_points() {
        let gate = |input, recurrent| Gate { input, recurrent, bias: &[0] };
        let still = gate(&[9, 9], &[9]);
        let lstm = Lstm16 {
            input_gate: still,
            forget_gate: gate(&[10, 11], &[6]),
            cell_gate: still,
            output_gate: still,
            weights_zero_point: 9,
            multiplier: Multiplier { multiplier: 1 << 30, shift: 1 },
        };
        // Weights -3 (recurrent), 1, 2; values 10, -5, 1 (previous output).
        assert_eq!(lstm.sum(&lstm.forget_gate, 0, &[138, 123], &[129]), -33);
    }
}
