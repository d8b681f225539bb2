//! Buffers as arguments of executions.

use burst_hal::{Device, ErrorStatus, OutputSpec, RequestPool};

use super::subject::{
    BYTES, COUNT, Checked, DIMENSIONS, Prepared, buffer, bytes, expect_value, floats, memory,
    no_activation, pool, prepare, relu, request, role, room, sums, token, wanted,
};
use crate::functional::execution::Way;
use crate::functional::{Verdict, expect_failure, refused};

const NONE: ErrorStatus = ErrorStatus::None;
const INVALID: ErrorStatus = ErrorStatus::InvalidArgument;
const GENERAL: ErrorStatus = ErrorStatus::GeneralFailure;
const VALUE: [f32; COUNT] = [1.0, -2.0, 3.0, -4.0, 5.0, -6.0, 7.0, -8.0];
/// Its RELU.
const POSITIVE: [f32; COUNT] = [1.0, 0.0, 3.0, 0.0, 5.0, 0.0, 7.0, 0.0];

/// The ways in which a RELU of floats executes.
fn ways(model: &Prepared) -> Result<Vec<Way>, String> {
    Way::of(model, &request(&[memory(&VALUE)], &[room()]))
}

pub(super) fn invalid_token(device: &dyn Device) -> Checked {
    let model = floats(device)?;
    let _legal = buffer!(device, wanted(&[&model], &[role(0, 0)], &[role(0, 0)], &[]));
    for way in ways(&model)? {
        for stranger in [0, u32::MAX / 2, u32::MAX].map(RequestPool::Token) {
            let as_input = request(std::slice::from_ref(&stranger), &[room()]);
            way.expect("a stranger's token as input", INVALID, &model, &as_input)?;
            let as_output = request(&[memory(&VALUE)], &[stranger]);
            way.expect("a stranger's token as output", INVALID, &model, &as_output)?;
        }
    }
    Ok(Verdict::Passed)
}

pub(super) fn invalid_prepared_model(device: &dyn Device) -> Checked {
    let (model, other) = (floats(device)?, floats(device)?);
    let input = buffer!(device, wanted(&[&model], &[role(0, 0)], &[], &[]));
    let output = buffer!(device, wanted(&[&model], &[], &[role(0, 0)], &[]));
    input.copy_from(&pool(&VALUE), &[]).map_err(refused("a legal copy"))?;
    for way in ways(&model)? {
        let as_input = request(&[token(&input)], &[room()]);
        way.expect("of this model", NONE, &model, &as_input)?;
        way.expect("an input of another model", INVALID, &other, &as_input)?;
        let as_output = request(&[memory(&VALUE)], &[token(&output)]);
        way.expect("an output of another model", INVALID, &other, &as_output)?;
    }
    Ok(Verdict::Passed)
}

pub(super) fn invalid_io_index(device: &dyn Device) -> Checked {
    let model = prepare(device, &sums(&DIMENSIONS)?)?;
    let input = buffer!(device, wanted(&[&model], &[role(0, 0)], &[], &[]));
    let output = buffer!(device, wanted(&[&model], &[], &[role(0, 0)], &[]));
    input.copy_from(&pool(&VALUE), &[]).map_err(refused("a legal copy"))?;
    for way in ways(&floats(device)?)? {
        let second_input = [memory(&VALUE), token(&input), no_activation()];
        let as_input = request(&second_input, &[room(), room()]);
        way.expect("the second input", INVALID, &model, &as_input)?;
        let inputs = [memory(&VALUE), memory(&VALUE), no_activation()];
        let as_output = request(&inputs, &[room(), token(&output)]);
        way.expect("the second output", INVALID, &model, &as_output)?;
    }
    Ok(Verdict::Passed)
}

pub(super) fn invalid_io_type(device: &dyn Device) -> Checked {
    let model = floats(device)?;
    let input = buffer!(device, wanted(&[&model], &[role(0, 0)], &[], &[]));
    let output = buffer!(device, wanted(&[&model], &[], &[role(0, 0)], &[]));
    for buffer in [&input, &output] {
        buffer.copy_from(&pool(&VALUE), &[]).map_err(refused("a legal copy"))?;
    }
    for way in ways(&model)? {
        let as_output = request(&[memory(&VALUE)], &[token(&input)]);
        way.expect("an input's buffer as output", INVALID, &model, &as_output)?;
        let as_input = request(&[token(&output)], &[room()]);
        way.expect("an output's buffer as input", INVALID, &model, &as_input)?;
    }
    Ok(Verdict::Passed)
}

pub(super) fn same_request_multiple_roles(device: &dyn Device) -> Checked {
    let model = prepare(device, &sums(&DIMENSIONS)?)?;
    let all = [role(0, 0), role(0, 1)];
    let one = buffer!(device, wanted(&[&model], &all, &all, &[]));
    let other = buffer!(device, wanted(&[&model], &[], &all, &[]));
    for way in ways(&floats(device)?)? {
        one.copy_from(&pool(&VALUE), &[]).map_err(refused("a legal copy"))?;
        let twice = [token(&one), token(&one), no_activation()];
        let two_inputs = request(&twice, &[token(&other), room()]);
        way.expect("two inputs", NONE, &model, &two_inputs)?;
        expect_value("two inputs", &other, &VALUE.map(|value| value + value))?;
        let both = [token(&one), memory(&VALUE), no_activation()];
        let input_and_output = request(&both, &[token(&one), room()]);
        way.expect("an input and an output", INVALID, &model, &input_and_output)?;
        let inputs = [memory(&VALUE), memory(&VALUE), no_activation()];
        let two_outputs = request(&inputs, &[token(&other), token(&other)]);
        way.expect("two outputs", INVALID, &model, &two_outputs)?;
        // The same, where one pool is named twice.
        let mut one_pool = request(&both, &[room(), room()]);
        one_pool.outputs[0].location.pool_index = 0;
        way.expect("an input and an output in one pool", INVALID, &model, &one_pool)?;
        expect_value("refused requests leave it", &one, &VALUE)?;
    }
    Ok(Verdict::Passed)
}

pub(super) fn uninitialized_memory(device: &dyn Device) -> Checked {
    let model = floats(device)?;
    let value = buffer!(device, wanted(&[&model], &[role(0, 0)], &[role(0, 0)], &[]));
    let none = buffer!(device, wanted(&[&model], &[role(0, 0)], &[role(0, 0)], &[]));
    for way in ways(&model)? {
        let as_input = request(&[token(&none)], &[token(&value)]);
        way.expect("an input without a value", GENERAL, &model, &as_input)?;
        expect_failure("the output of that", GENERAL, value.copy_to(&bytes(BYTES)))?;
    }
    Ok(Verdict::Passed)
}

pub(super) fn invalid_dimensions(device: &dyn Device) -> Checked {
    let model = prepare(device, &relu(&OutputSpec::f32(&[0, 4]))?)?;
    let roles = [role(0, 0)];
    let input = buffer!(device, wanted(&[&model], &roles, &[], &DIMENSIONS));
    let output = buffer!(device, wanted(&[&model], &[], &roles, &DIMENSIONS));
    input.copy_from(&pool(&VALUE), &DIMENSIONS).map_err(refused("a legal copy"))?;
    // Not fenced: there the size of every output has to be known.
    for way in [Way::Synchronous, Way::Asynchronous] {
        for wrong in [&[3, 4][..], &[1, 4]] {
            let mut as_input = request(&[token(&input)], &[room()]);
            as_input.inputs[0].dimensions = wrong.into();
            way.expect("an input of another shape", INVALID, &model, &as_input)?;
            let mut as_output = request(&[memory(&VALUE)], &[token(&output)]);
            as_output.inputs[0].dimensions = DIMENSIONS.as_slice().into();
            as_output.outputs[0].dimensions = wrong.into();
            way.expect("an output of another shape", INVALID, &model, &as_output)?;
        }
        let mut larger = request(&[memory(&[1.0; 12])], &[token(&output)]);
        larger.inputs[0].dimensions = [3, 4].as_slice().into();
        way.expect("a result that does not fit", GENERAL, &model, &larger)?;
        let mut fits = request(&[token(&input)], &[token(&output)]);
        fits.inputs[0].dimensions = DIMENSIONS.as_slice().into();
        way.expect("a result that fits", NONE, &model, &fits)?;
        expect_value("a result that fits", &output, &POSITIVE)?;
    }
    Ok(Verdict::Passed)
}

pub(super) fn failure_leaves_no_value(device: &dyn Device) -> Checked {
    let model = prepare(device, &relu(&OutputSpec::f32(&[0, 4]))?)?;
    let output = buffer!(device, wanted(&[&model], &[], &[role(0, 0)], &DIMENSIONS));
    for way in [Way::Synchronous, Way::Asynchronous] {
        output.copy_from(&pool(&VALUE), &[]).map_err(refused("a legal copy"))?;
        let mut larger = request(&[memory(&[1.0; 12])], &[token(&output)]);
        larger.inputs[0].dimensions = [3, 4].as_slice().into();
        way.expect("a result that does not fit", GENERAL, &model, &larger)?;
        expect_failure("after it", GENERAL, output.copy_to(&bytes(BYTES)))?;
    }
    Ok(Verdict::Passed)
}

pub(super) fn from_model_to_model(device: &dyn Device) -> Checked {
    let (first, second) = (floats(device)?, prepare(device, &sums(&DIMENSIONS)?)?);
    let models = [&first, &second];
    let between =
        buffer!(device, wanted(&models, &[role(1, 0), role(1, 1)], &[role(0, 0)], &DIMENSIONS));
    let result = buffer!(device, wanted(&models, &[role(0, 0)], &[role(1, 0)], &[]));
    for way in ways(&first)? {
        result.copy_from(&pool(&VALUE), &[]).map_err(refused("a legal copy"))?;
        let mut want = POSITIVE;
        for _ in 0..3 {
            let forth = request(&[token(&result)], &[token(&between)]);
            way.expect("to the second model", NONE, &first, &forth)?;
            expect_value("between the models", &between, &want)?;
            let inputs = [token(&between), token(&between), no_activation()];
            let back = request(&inputs, &[token(&result), room()]);
            way.expect("and back", NONE, &second, &back)?;
            want = want.map(|value| value + value);
            expect_value("of the second model", &result, &want)?;
        }
    }
    Ok(Verdict::Passed)
}
