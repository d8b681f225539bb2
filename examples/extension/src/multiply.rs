//! MULTIPLY: each value times another, or all values times one.

use burst_driver::op::{
    Args, Budget, Inferred, Kernel, Plain, PrepareContext, Prepared, Run, Signature, Tiling,
};
use burst_driver::{OpError, SignatureError};
use burst_hal::Operand;

use crate::{COMPLEX_Q15, FRACTION_BITS, NAME, TENSOR_COMPLEX_Q15};

pub(crate) static BODY: Plain = Plain { infer, prepare: Some(prepare), execute };

pub(crate) fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
    let has = |operand: Option<&Operand>, number| {
        operand.is_some_and(|operand| signature.is_type(operand, NAME, number))
    };
    let (value, factor) = (signature.input(0), signature.input(1));
    let is_factor = has(factor, TENSOR_COMPLEX_Q15) || has(factor, COMPLEX_Q15);
    let counts = (signature.inputs().len(), signature.outputs().len());
    let types = has(value, TENSOR_COMPLEX_Q15) && has(signature.output(0), TENSOR_COMPLEX_Q15);
    if counts == (2, 1) && types && is_factor { Ok(()) } else { Err(signature.no_form()) }
}

fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
    let (dims, factor) = (args.dims(0)?, args.dims(1)?);
    if args.input(1)?.info.is_tensor() && factor != dims {
        return Err(OpError::shape("values against factors", dims, factor));
    }
    Ok(Inferred::one(dims))
}

/// A part of a value.
type Part = i16;

fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
    let factors = Factors::of(run.input(1)?.i16()?, &Budget::default())?;
    factors.run(run)
}

/// A factor that is a constant is taken apart once.
fn prepare(args: &Args<'_>, context: &PrepareContext<'_>) -> Result<Option<Prepared>, OpError> {
    let factors = Factors::of(args.tensor(1)?.i16()?, context.budget)?;
    Ok(Some(Prepared { kernel: Box::new(factors), packed_inputs: std::iter::once(1).collect() }))
}

/// Factors, as wide as their products are computed.
#[derive(Debug)]
struct Factors(Box<[[i64; 2]]>);

impl Factors {
    /// Memory that a plan keeps is charged before it is there.
    fn of(parts: &[Part], budget: &Budget<'_>) -> Result<Self, OpError> {
        budget.charge(parts.len() * size_of::<i64>())?;
        let wide = |pair: &[Part; 2]| pair.map(i64::from);
        Ok(Factors(parts.as_chunks().0.iter().map(wide).collect()))
    }
}

impl Kernel for Factors {
    fn run(&self, run: &mut Run<'_, '_>) -> Result<(), OpError> {
        let values = run.input(0)?.i16()?.as_chunks::<2>().0;
        let (output, mut runner) = run.output_and_runner()?;
        // A row is one value; threads share them, and all of them look at cancel and deadline.
        let tiling = Tiling { row_len: 2, ..Tiling::values(2 * size_of_val(values)) };
        runner.tiles(&tiling, output.i16_mut()?, |first, tile, _| {
            let products = tile.as_chunks_mut::<2>().0.iter_mut().zip(&values[first..]);
            for (index, (product, value)) in (first..).zip(products) {
                let factor = if self.0.len() == 1 { self.0[0] } else { self.0[index] };
                *product = multiply(*value, factor);
            }
            Ok(())
        })
    }

    fn held_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    fn name(&self) -> &'static str {
        "complex/multiply"
    }
}

fn multiply(value: [Part; 2], [c, d]: [i64; 2]) -> [Part; 2] {
    let [a, b] = value.map(i64::from);
    [rounded(a * c - b * d), rounded(a * d + b * c)]
}

/// A product of two parts as a part: to nearest, halves upwards, clamped.
fn rounded(product: i64) -> Part {
    let half = 1 << (FRACTION_BITS - 1);
    let part = (product + half) >> FRACTION_BITS;
    Part::try_from(part.clamp(Part::MIN.into(), Part::MAX.into())).unwrap_or_default()
}
