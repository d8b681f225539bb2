//! Models: built call by call, finished once.

use std::ffi::c_int;

use burst_hal::validate::{MAX_EXTENSION_NAME_BYTES, MAX_OPERANDS, MAX_OPERATION_OPERANDS};

use super::abi::{OperandType, SymmPerChannelQuantParams};
use super::arguments::{Bool, Bytes, In, Out, Text};
use super::devices::{Device, listed};
use super::guard::{call, quietly};
use super::handles::Handle;
use crate::{Memory, Model, Result};

/// Scales of one operand: as many as a filter has channels, far above any real one. What the operand's
/// dimension says is checked against the count, but only after they were read.
const MAX_SCALES: usize = 1 << 20;

pub(super) extern "C" fn create(model: Out<Handle<Model>>) -> c_int {
    call(|| {
        let place = model.required("model")?;
        place.set(Handle::NULL);
        place.set(Handle::new(Model::new())?);
        Ok(())
    })
}

pub(super) extern "C" fn free(model: Handle<Model>) {
    quietly(|| drop(model.free()));
}

pub(super) extern "C" fn finish(model: Handle<Model>) -> c_int {
    call(|| model.get()?.finish())
}

pub(super) extern "C" fn add_operand(model: Handle<Model>, ty: In<OperandType>) -> c_int {
    call(|| {
        let ty = ty.required("type")?;
        let model = model.get()?;
        model.add_operand(&ty.read("type")?.desc()?)?;
        Ok(())
    })
}

pub(super) extern "C" fn set_operand_value(
    model: Handle<Model>,
    index: i32,
    value: Bytes,
    length: usize,
) -> c_int {
    call(|| {
        let model = model.get()?;
        value.lend(length, "value", |value| model.set_operand_value(index, value))
    })
}

pub(super) extern "C" fn set_operand_symm_per_channel_quant_params(
    model: Handle<Model>,
    index: i32,
    params: In<SymmPerChannelQuantParams>,
) -> c_int {
    call(|| {
        let params = params.required("parameters")?;
        let model = model.get()?;
        let SymmPerChannelQuantParams { channel_dim, scale_count, scales } =
            params.read("parameters")?;
        let scales = scales.read_many(scale_count, MAX_SCALES, "scales")?;
        model.set_symm_per_channel_quant_params(index, channel_dim, &scales)
    })
}

pub(super) extern "C" fn set_operand_value_from_memory(
    model: Handle<Model>,
    index: i32,
    memory: Handle<Memory>,
    offset: usize,
    length: usize,
) -> c_int {
    call(|| {
        let memory = memory.get()?;
        model.get()?.set_operand_value_from_memory(index, &memory, offset, length)
    })
}

pub(super) extern "C" fn set_operand_value_from_model(
    model: Handle<Model>,
    index: i32,
    value: Handle<Model>,
) -> c_int {
    call(|| {
        let value = value.get()?;
        model.get()?.set_operand_value_from_model(index, &value)
    })
}

pub(super) extern "C" fn add_operation(
    model: Handle<Model>,
    ty: i32,
    input_count: u32,
    inputs: In<u32>,
    output_count: u32,
    outputs: In<u32>,
) -> c_int {
    call(|| {
        let (inputs, outputs) = (inputs.required("inputs")?, outputs.required("outputs")?);
        let model = model.get()?;
        let inputs = inputs.read_many(input_count, MAX_OPERATION_OPERANDS, "inputs")?;
        let outputs = outputs.read_many(output_count, MAX_OPERATION_OPERANDS, "outputs")?;
        model.add_operation(ty, &inputs, &outputs)
    })
}

pub(super) extern "C" fn identify_inputs_and_outputs(
    model: Handle<Model>,
    input_count: u32,
    inputs: In<u32>,
    output_count: u32,
    outputs: In<u32>,
) -> c_int {
    call(|| {
        let (inputs, outputs) = (inputs.required("inputs")?, outputs.required("outputs")?);
        let model = model.get()?;
        let inputs = inputs.read_many(input_count, MAX_OPERANDS, "inputs")?;
        let outputs = outputs.read_many(output_count, MAX_OPERANDS, "outputs")?;
        model.identify_inputs_and_outputs(&inputs, &outputs)
    })
}

pub(super) extern "C" fn relax_computation_float32_to_float16(
    model: Handle<Model>,
    allow: Bool,
) -> c_int {
    call(|| model.get()?.relax_computation_float32_to_float16(allow.get()))
}

pub(super) extern "C" fn get_supported_operations_for_devices(
    model: Handle<Model>,
    devices: In<Handle<Device>>,
    device_count: u32,
    supported: Out<Bool>,
) -> c_int {
    call(|| {
        let devices = devices.required("devices")?;
        let place = supported.required("answer")?;
        let model = model.get()?;
        let answers = model.supported_operations(&listed(devices, device_count)?)?;
        place.set_many(answers.into_iter().map(Bool::from));
        Ok(())
    })
}

pub(super) extern "C" fn get_extension_operand_type(
    model: Handle<Model>,
    extension: Text,
    code: u16,
    ty: Out<i32>,
) -> c_int {
    extension_code(model, &extension, ty, |model, extension| {
        model.extension_operand_type(extension, code)
    })
}

pub(super) extern "C" fn get_extension_operation_type(
    model: Handle<Model>,
    extension: Text,
    code: u16,
    ty: Out<i32>,
) -> c_int {
    extension_code(model, &extension, ty, |model, extension| {
        model.extension_operation_type(extension, code)
    })
}

fn extension_code(
    model: Handle<Model>,
    extension: &Text,
    ty: Out<i32>,
    look_up: impl FnOnce(&Model, &str) -> Result<i32>,
) -> c_int {
    call(|| {
        let place = ty.required("type")?;
        let extension = extension.string(MAX_EXTENSION_NAME_BYTES, "extension name")?;
        place.set(look_up(&*model.get()?, &extension)?);
        Ok(())
    })
}

pub(super) extern "C" fn set_operand_extension_data(
    model: Handle<Model>,
    index: i32,
    data: Bytes,
    length: usize,
) -> c_int {
    call(|| {
        let model = model.get()?;
        data.lend(length, "data", |data| model.set_operand_extension_data(index, data))
    })
}
