//! Whether a device's answer can be believed, and what it says.

use burst_hal::validate::combine_dimensions;
use burst_hal::{Dimensions, OutputShape, ResultCode};

use super::value::Value;
use crate::compiled::Port;
use crate::prepared::Ended;

/// What an answer says.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// It went well; what is known of the outputs now.
    Done(Vec<Dimensions>),
    /// An output has too little room.
    Insufficient(Vec<OutputShape>),
    /// It failed, or contradicts itself.
    Failed(ResultCode),
}

/// Judges an answer by what was known of the outputs before: it may only add to that.
pub(super) fn judge(ended: &Ended, ports: &[Port], outputs: &[Value]) -> Verdict {
    let shapes = &ended.shapes;
    match ended.code {
        ResultCode::NoError if shapes.is_empty() => {
            Verdict::Done(outputs.iter().map(Value::dimensions).collect())
        }
        ResultCode::NoError | ResultCode::OutputInsufficientSize => {
            let shaped: Option<Vec<OutputShape>> = (ports.iter().zip(outputs).zip(shapes))
                .map(|((port, output), shape)| believed(port, output, shape))
                .collect();
            let Some(shaped) = shaped else { return Verdict::Failed(ResultCode::OpFailed) };
            match ended.code {
                ResultCode::NoError => {
                    Verdict::Done(shaped.into_iter().map(|shape| shape.dimensions).collect())
                }
                _ => Verdict::Insufficient(shaped),
            }
        }
        code => Verdict::Failed(code),
    }
}

/// The shape of one output together with what was known; `None` where it cannot be.
fn believed(port: &Port, output: &Value, shape: &OutputShape) -> Option<OutputShape> {
    let dimensions = match output {
        Value::Omitted => return Some(OutputShape { is_sufficient: true, ..shape.clone() }),
        _ => combine_dimensions(&output.dimensions(), &shape.dimensions).ok()?,
    };
    let is_sufficient = shape.is_sufficient;
    let fits = match (output, port.bytes(&dimensions)) {
        (Value::Bytes(bytes), Some(needed)) => needed <= u64::from(bytes.length),
        // A device's own buffer, or a size that nobody knows: only the device can say.
        _ => is_sufficient,
    };
    (fits == is_sufficient).then_some(OutputShape { dimensions, is_sufficient })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use burst_hal::{HeapMemory, Operand, OperandLifeTime, OperandType};

    use super::super::value::Bytes;
    use super::*;

    #[test]
    fn an_answer_may_add_to_what_is_known_and_never_contradict_it() {
        let mut operand = Operand::new(OperandType::TensorFloat32, OperandLifeTime::SubgraphOutput);
        operand.dimensions = [2, 0].into_iter().collect();
        let port = Port::new(0, &operand, Some(4));
        let output = |length: u32, dimensions: &[u32]| {
            Value::Bytes(Bytes {
                pool: Arc::new(HeapMemory::new(vec![0; 64])),
                offset: 0,
                length,
                dimensions: dimensions.into(),
            })
        };
        let shape = |dimensions: &[u32], is_sufficient| OutputShape {
            dimensions: dimensions.into(),
            is_sufficient,
        };
        let (none, little) = (ResultCode::NoError, ResultCode::OutputInsufficientSize);
        let lie = || Verdict::Failed(ResultCode::OpFailed);
        let done = |dimensions: &[u32]| Verdict::Done(vec![dimensions.into()]);
        for (what, code, shapes, room, known, want) in [
            ("nothing said", none, vec![], 24, &[2, 3][..], done(&[2, 3])),
            ("a size more", none, vec![shape(&[2, 3], true)], 24, &[2, 0], done(&[2, 3])),
            ("another size", none, vec![shape(&[3, 3], true)], 64, &[2, 0], lie()),
            ("another rank", none, vec![shape(&[2, 3, 1], true)], 64, &[2, 0], lie()),
            ("more than there is room", none, vec![shape(&[2, 9], true)], 24, &[2, 0], lie()),
            (
                "too little room",
                little,
                vec![shape(&[2, 3], false)],
                8,
                &[2, 0],
                Verdict::Insufficient(vec![shape(&[2, 3], false)]),
            ),
            ("room enough", little, vec![shape(&[2, 3], false)], 24, &[2, 0], lie()),
            (
                "a failure",
                ResultCode::DeadObject,
                vec![],
                24,
                &[2, 3],
                Verdict::Failed(ResultCode::DeadObject),
            ),
        ] {
            let ended = Ended { shapes, ..Ended::of(code) };
            let found = judge(&ended, std::slice::from_ref(&port), &[output(room, known)]);
            assert_eq!(found, want, "{what}");
        }
    }
}
