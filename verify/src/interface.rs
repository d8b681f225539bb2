//! What can be said through the interface that leads to a device.

use burst_hal::{ErrorStatus, Failure, Model, Operand, OperandLifeTime, Operation, Subgraph};

use crate::outcome::LeftOut;

/// The interface that leads to a device. It says which cases of the suites there can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Interface {
    /// The contract of the HAL: all of them.
    #[default]
    Hal,
    /// NNAPI's C functions with one named device: all but models that no sequence of calls describes.
    NamedDevice,
    /// NNAPI's C functions with no device named: neither deadlines nor times either.
    AnyDevice,
}

impl Interface {
    /// Whether there are deadlines, and times that are measured.
    pub(crate) fn has_deadlines(self) -> bool {
        self != Interface::AnyDevice
    }

    /// Whether it is enough of a test that has to fail that any step of it fails.
    pub(crate) fn may_fail_anywhere(self) -> bool {
        self != Interface::Hal
    }

    /// The rule by which a legal model may be refused although each of its operations is supported.
    pub(crate) fn may_refuse(self, model: &Model, failure: &Failure) -> Option<LeftOut> {
        let is_open = |operand: &Operand| {
            let is_between = operand.lifetime == OperandLifeTime::TemporaryVariable;
            let sizes = &operand.dimensions;
            is_between && operand.ty.is_tensor() && (sizes.is_empty() || sizes.contains(&0))
        };
        let mut graphs = std::iter::once(&model.main).chain(&model.referenced);
        let has_open = self == Interface::AnyDevice
            && failure.status == ErrorStatus::GeneralFailure
            && graphs.any(|graph| graph.operands.iter().any(is_open));
        has_open.then_some(LeftOut::OpenSizeBetweenDevices)
    }

    /// The status of an execution behind a fence that has failed already.
    pub(crate) fn status_of_failed_fence(self) -> ErrorStatus {
        match self {
            Interface::Hal => ErrorStatus::InvalidArgument,
            // An event that has failed, whatever it is of: OP_FAILED.
            Interface::NamedDevice | Interface::AnyDevice => ErrorStatus::GeneralFailure,
        }
    }

    /// The rule by which what is wrong with a broken model cannot be said; `None` where it can.
    pub(crate) fn cannot_say(self, legal: &Model, broken: &Model) -> Option<LeftOut> {
        match self {
            Interface::Hal => None,
            Interface::NamedDevice | Interface::AnyDevice => unsaid(&legal.main, &broken.main),
        }
    }
}

/// The rule by which the calls for a broken graph are those for the legal one; `None` where they differ.
fn unsaid(legal: &Subgraph, broken: &Subgraph) -> Option<LeftOut> {
    let (meant, said) = (as_called(legal), as_called(broken));
    if meant != said {
        return None;
    }
    let lifetimes = |graph: &Subgraph| -> Vec<OperandLifeTime> {
        graph.operands.iter().map(|operand| operand.lifetime).collect()
    };
    Some(if legal.operations != broken.operations {
        LeftOut::OrderIsSorted
    } else if lifetimes(legal) != lifetimes(broken) {
        LeftOut::LifetimesFollowLists
    } else {
        LeftOut::ReadersAreCounted
    })
}

/// A graph as calls describe it: nobody says how often an operand is read, or where a value comes from that
/// is no constant; operations come in any order.
fn as_called(graph: &Subgraph) -> Subgraph {
    let mut called = graph.clone();
    for (index, operand) in (0..).zip(&mut called.operands) {
        operand.number_of_consumers = 0;
        operand.lifetime = match operand.lifetime {
            OperandLifeTime::TemporaryVariable
            | OperandLifeTime::SubgraphInput
            | OperandLifeTime::SubgraphOutput => {
                if graph.input_indexes.contains(&index) {
                    OperandLifeTime::SubgraphInput
                } else if graph.output_indexes.contains(&index) {
                    OperandLifeTime::SubgraphOutput
                } else {
                    OperandLifeTime::TemporaryVariable
                }
            }
            constant => constant,
        };
    }
    // Each operation writes operands of its own, so this order is one.
    called.operations.sort_by(|a, b| key(a).cmp(&key(b)));
    called
}

fn key(operation: &Operation) -> (&[u32], &[u32], i32) {
    (&operation.outputs, &operation.inputs, operation.ty.code())
}

#[cfg(test)]
mod tests {
    use burst_hal::{ModelBuilder, OperationType, OutputSpec};

    use super::*;

    /// RELU, then TANH.
    fn chain() -> Model {
        let mut builder = ModelBuilder::new();
        let x = builder.input_of(OutputSpec::f32(&[2]));
        let y = builder.result_of(OperationType::Relu, &[x], OutputSpec::f32(&[2]));
        let z = builder.result_of(OperationType::Tanh, &[y], OutputSpec::f32(&[2]));
        builder.output(z);
        builder.build().unwrap()
    }

    #[test]
    fn what_no_call_says_is_left_out_by_the_rule_that_it_breaks() {
        type Change = fn(&mut Subgraph);
        let legal = chain();
        let changes: [(Change, Option<LeftOut>); 7] = [
            (|main| main.operands[1].number_of_consumers = 2, Some(LeftOut::ReadersAreCounted)),
            (|main| main.operations.swap(0, 1), Some(LeftOut::OrderIsSorted)),
            (
                |main| main.operands[1].lifetime = OperandLifeTime::SubgraphOutput,
                Some(LeftOut::LifetimesFollowLists),
            ),
            (|main| main.operands[1].lifetime = OperandLifeTime::ConstantCopy, None),
            (|main| main.operands[1].zero_point = 1, None),
            (|main| main.input_indexes.clear(), None),
            (|main| drop(main.operations.pop()), None),
        ];
        for (number, (change, rule)) in changes.into_iter().enumerate() {
            let mut broken = legal.clone();
            change(&mut broken.main);
            assert_eq!(Interface::NamedDevice.cannot_say(&legal, &broken), rule, "change {number}");
            assert_eq!(Interface::Hal.cannot_say(&legal, &broken), None, "change {number}");
        }
    }
}
