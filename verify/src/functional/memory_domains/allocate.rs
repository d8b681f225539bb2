//! What a buffer may be asked for.

use std::sync::Arc;

use burst_hal::validate::RequestRules;
use burst_hal::{
    BufferRequest, BufferRole, Device, ErrorStatus, ExecutionOptions, ExecutionResult, OperandType,
    OutputSpec, PreparedModel, Request,
};

use super::subject::{
    Checked, DIMENSIONS, Prepared, allocate, buffer, floats, prepare, relu, role, sums, wanted,
};
use crate::functional::{Verdict, expect_failure};

/// A buffer that must be refused, in a device that makes legal ones.
fn expect_refused(device: &dyn Device, what: &str, request: &BufferRequest) -> Result<(), String> {
    expect_failure(what, ErrorStatus::InvalidArgument, allocate(device, request))
}

/// A device that makes no buffers at all refuses whatever it likes.
fn each(device: &dyn Device, cases: &[(&str, BufferRequest)]) -> Checked {
    let model = floats(device)?;
    let _legal = buffer!(device, wanted(&[&model], &[role(0, 0)], &[role(0, 0)], &[]));
    for (what, request) in cases {
        expect_refused(device, what, request)?;
    }
    Ok(Verdict::Passed)
}

pub(super) fn empty_role(device: &dyn Device) -> Checked {
    let model = floats(device)?;
    let none = wanted(&[], &[], &[], &DIMENSIONS);
    each(device, &[("no role", wanted(&[&model], &[], &[], &[])), ("nothing but a shape", none)])
}

/// A model that no device has prepared.
struct Stranger(RequestRules);

impl PreparedModel for Stranger {
    fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
        ExecutionResult::of(ErrorStatus::GeneralFailure)
    }

    fn request_rules(&self) -> Option<&RequestRules> {
        Some(&self.0)
    }
}

pub(super) fn invalid_prepared_model(device: &dyn Device) -> Checked {
    let model = floats(device)?;
    let rules = RequestRules::new(&relu(&OutputSpec::f32(&DIMENSIONS))?);
    let stranger: Prepared = Arc::new(Stranger(rules.map_err(|error| error.to_string())?));
    let roles = [role(0, 0)];
    each(
        device,
        &[
            ("a stranger's model", wanted(&[&stranger], &roles, &[], &[])),
            ("one among others", wanted(&[&model, &stranger], &roles, &[role(1, 0)], &[])),
        ],
    )
}

pub(super) fn invalid_model_index(device: &dyn Device) -> Checked {
    let model = floats(device)?;
    each(
        device,
        &[
            ("of an input", wanted(&[&model], &[role(1, 0)], &[], &[])),
            ("of an output", wanted(&[&model], &[], &[role(1, 0)], &[])),
            ("far away", wanted(&[&model], &[role(u32::MAX, 0)], &[], &[])),
            ("without models", wanted(&[], &[role(0, 0)], &[], &[])),
        ],
    )
}

pub(super) fn invalid_io_index(device: &dyn Device) -> Checked {
    let model = floats(device)?;
    each(
        device,
        &[
            ("of an input", wanted(&[&model], &[role(0, 1)], &[], &[])),
            ("of an output", wanted(&[&model], &[], &[role(0, 1)], &[])),
            ("far away", wanted(&[&model], &[], &[role(0, u32::MAX)], &[])),
        ],
    )
}

pub(super) fn invalid_frequency(device: &dyn Device) -> Checked {
    let model = floats(device)?;
    let mut cases = Vec::new();
    for frequency in [0.0, -0.5, 1.1, 10.0, f32::NAN, f32::INFINITY] {
        let role = [BufferRole { frequency, ..role(0, 0) }];
        cases.push(("of an input", wanted(&[&model], &role, &[], &[])));
        cases.push(("of an output", wanted(&[&model], &[], &role, &[])));
    }
    each(device, &cases)
}

pub(super) fn same_role_specified_twice(device: &dyn Device) -> Checked {
    let model = floats(device)?;
    let twice = [role(0, 0); 2];
    let of_both = [role(0, 0), role(1, 0)];
    each(
        device,
        &[
            ("an input", wanted(&[&model], &twice, &[], &[])),
            ("an output", wanted(&[&model], &[], &twice, &[])),
            (
                "an input of a model that is there twice",
                wanted(&[&model, &model], &of_both, &[], &[]),
            ),
            ("an output of such a one", wanted(&[&model, &model], &[], &of_both, &[])),
        ],
    )
}

/// Two models whose values differ in meaning: in no pair of their roles is there a common buffer.
fn conflict(device: &dyn Device, one: &OutputSpec, other: &OutputSpec) -> Checked {
    let (one, other) = (prepare(device, &relu(one)?)?, prepare(device, &relu(other)?)?);
    let models = [&one, &other];
    let both = [role(0, 0), role(1, 0)];
    let (first, second) = ([role(0, 0)], [role(1, 0)]);
    each(
        device,
        &[
            ("two inputs", wanted(&models, &both, &[], &[])),
            ("two outputs", wanted(&models, &[], &both, &[])),
            ("an input and an output", wanted(&models, &first, &second, &[])),
        ],
    )
}

fn quantized(scale: f32, zero_point: i32) -> OutputSpec {
    OutputSpec::new(OperandType::TensorQuant8Asymm, &DIMENSIONS).quantized(scale, zero_point)
}

pub(super) fn conflict_operand_type(device: &dyn Device) -> Checked {
    conflict(device, &OutputSpec::f32(&DIMENSIONS), &quantized(0.5, 0))
}

pub(super) fn conflict_scale(device: &dyn Device) -> Checked {
    conflict(device, &quantized(0.5, 0), &quantized(0.25, 0))
}

pub(super) fn conflict_zero_point(device: &dyn Device) -> Checked {
    conflict(device, &quantized(0.5, 0), &quantized(0.5, 10))
}

pub(super) fn conflict_rank_between_roles(device: &dyn Device) -> Checked {
    conflict(device, &OutputSpec::f32(&DIMENSIONS), &OutputSpec::f32(&[2, 4, 1]))
}

pub(super) fn conflict_dimensions_between_roles(device: &dyn Device) -> Checked {
    conflict(device, &OutputSpec::f32(&DIMENSIONS), &OutputSpec::f32(&[2, 8]))
}

/// A shape that is asked for and contradicts the role.
fn conflict_with_asked(device: &dyn Device, asked: &[u32]) -> Checked {
    let model = floats(device)?;
    each(
        device,
        &[
            ("an input", wanted(&[&model], &[role(0, 0)], &[], asked)),
            ("an output", wanted(&[&model], &[], &[role(0, 0)], asked)),
        ],
    )
}

pub(super) fn conflict_rank_between_role_and_desc(device: &dyn Device) -> Checked {
    conflict_with_asked(device, &[2, 4, 1])
}

pub(super) fn conflict_dimensions_between_role_and_desc(device: &dyn Device) -> Checked {
    conflict_with_asked(device, &[2, 5])
}

pub(super) fn conflict_rank_with_scalar_role(device: &dyn Device) -> Checked {
    let model = prepare(device, &sums(&DIMENSIONS)?)?;
    let scalar = [role(0, 2)];
    let _legal = buffer!(device, wanted(&[&model], &scalar, &[], &[]));
    each(device, &[("a scalar with a shape", wanted(&[&model], &scalar, &[], &[1]))])
}
