//! Two values of one type and shape, element by element.

use burst_hal::OperandType;

use super::accuracy::{Criterion, is_float};
use crate::judge::elements;

/// What was compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compared {
    /// Elements, those that were skipped included.
    pub elements: u64,
    /// Elements that say nothing: one of the two overflowed and the other nearly did.
    pub skipped: u64,
}

/// How a value may differ from the judge's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowed {
    pub(super) ty: OperandType,
    pub(super) criterion: Criterion,
    /// From here on a float of the result's precision is as good as infinite.
    pub(super) huge: f64,
}

impl Allowed {
    pub(super) fn new(ty: OperandType, criterion: Criterion, half: bool) -> Self {
        let largest = if half { 65_504.0 } else { f64::from(f32::MAX) };
        Allowed { ty, criterion, huge: 0.99 * largest }
    }
}

/// Compares the bytes of a value with the judge's. Those of types without tolerances have to be the same.
///
/// # Errors
/// The first element that is wrong, or means that are, in words.
pub(super) fn compare(allowed: Allowed, got: &[u8], want: &[u8]) -> Result<Compared, String> {
    if got == want {
        let elements = elements(allowed.ty, want).len() as u64;
        return Ok(Compared { elements, skipped: 0 });
    }
    let (got, want) = (elements(allowed.ty, got), elements(allowed.ty, want));
    if got.len() != want.len() {
        return Err(format!("{} elements, the judge has {}", got.len(), want.len()));
    }
    if !is_float(allowed.ty) {
        let at = got.iter().zip(&want).position(|(got, want)| got != want).unwrap_or(0);
        let (got, want) = (got.get(at).copied(), want.get(at).copied());
        return Err(format!("element {at} is {got:?}, the judge has {want:?}"));
    }
    floats(allowed, &got, &want)
}

fn floats(allowed: Allowed, got: &[f64], want: &[f64]) -> Result<Compared, String> {
    let Allowed { criterion, huge, .. } = allowed;
    let (mut skipped, mut counted) = (0_u64, 0_u64);
    let (mut sum, mut squares) = (0.0, 0.0);
    for (at, (got, want)) in got.iter().zip(want).enumerate() {
        let wrong = || format!("element {at} is {got:e}, the judge has {want:e}");
        if got.is_nan() || want.is_nan() {
            if got.is_nan() != want.is_nan() {
                return Err(wrong());
            }
            continue;
        }
        if got.is_infinite() || want.is_infinite() {
            let is_near = got.signum() == want.signum() && got.abs().min(want.abs()) > huge;
            if got != want && !is_near {
                return Err(wrong());
            }
            skipped += u64::from(got != want);
            continue;
        }
        let difference = got - want;
        let bound = criterion.absolute + criterion.relative * want.abs();
        if difference.abs() > bound {
            return Err(format!("{}, and may differ by {bound:e}", wrong()));
        }
        let scaled = difference / want.abs().max(1.0);
        counted += 1;
        sum += scaled;
        squares += scaled * scaled;
    }
    if counted >= Criterion::MANY {
        #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^53 elements")]
        let count = counted as f64;
        let (bias, mse) = ((sum / count).abs(), squares / count);
        if bias > criterion.bias || mse > criterion.mse {
            let Criterion { bias: most, mse: most_squared, .. } = criterion;
            return Err(format!(
                "the mean difference is {bias:e} (at most {most:e}), its square's {mse:e} (at most \
                 {most_squared:e})"
            ));
        }
    }
    Ok(Compared { elements: got.len() as u64, skipped })
}

#[cfg(test)]
mod tests {
    use burst_hal::OperationType as Op;

    use super::super::accuracy::Accuracy;
    use super::*;

    fn bytes(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_ne_bytes()).collect()
    }

    fn judged(op: Op, got: &[f32], want: &[f32]) -> Result<Compared, String> {
        let criterion = Accuracy::of(op).floats(false);
        let allowed = Allowed::new(OperandType::TensorFloat32, criterion, false);
        compare(allowed, &bytes(got), &bytes(want))
    }

    #[test]
    fn an_element_may_differ_as_far_as_its_operation_allows() {
        judged(Op::Conv2d, &[1.03], &[1.0]).unwrap();
        assert!(judged(Op::Conv2d, &[1.05], &[1.0]).is_err());
        assert!(judged(Op::Softmax, &[1.03], &[1.0]).is_err());
        judged(Op::Add, &[1.000_001], &[1.0]).unwrap();
        assert!(judged(Op::Reshape, &[1.000_01], &[1.0]).is_err());
    }

    #[test]
    fn many_small_differences_of_one_sign_are_a_bias() {
        let want = [1.0_f32; 12];
        judged(Op::Conv2d, &[1.000_3; 12], &want).unwrap();
        let what = judged(Op::Conv2d, &[1.002; 12], &want).unwrap_err();
        assert!(what.contains("mean"), "{what}");
        judged(Op::Conv2d, &[1.002; 9], &want[..9]).unwrap();
    }

    #[test]
    fn infinity_and_nan_stand_at_the_same_places() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        judged(Op::Exp, &[inf, nan, -inf], &[inf, -nan, -inf]).unwrap();
        for (got, want) in [(inf, -inf), (inf, 1.0), (1.0, inf), (nan, inf), (nan, 0.0), (0.0, nan)]
        {
            assert!(judged(Op::Exp, &[got], &[want]).is_err(), "{got} for {want}");
        }
        let compared = judged(Op::Exp, &[inf, 1.0], &[f32::MAX, 1.0]).unwrap();
        assert_eq!(compared, Compared { elements: 2, skipped: 1 });
    }

    #[test]
    fn bits_count_where_there_is_no_tolerance() {
        let criterion = Accuracy::LargeGraph.floats(true);
        let allowed = Allowed::new(OperandType::TensorQuant8Asymm, criterion, false);
        compare(allowed, &[3, 4], &[3, 4]).unwrap();
        let what = compare(allowed, &[3, 5], &[3, 4]).unwrap_err();
        assert!(what.starts_with("element 1"), "{what}");
    }
}
