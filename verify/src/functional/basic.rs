//! Facts about a device: the basic tests of each version of the HAL.

use burst_hal::{
    CACHE_FILES_MAX, Capabilities, Device, DeviceStatus, ErrorStatus, Model, Operand,
    OperandLifeTime, OperandType, Operation, OperationType, PerformanceInfo, PrepareOptions,
};

use super::{Check, Checked, Verdict, expect_failure, refused};

pub(super) const CHECKS: &[Check] = &[
    Check { name: "Basic/CreateDevice", run: create_device },
    Check { name: "Basic/StatusTest", run: status },
    Check { name: "Basic/GetCapabilitiesTest", run: capabilities },
    Check { name: "Basic/CycleTest", run: cycle },
    Check { name: "Basic/GetVersionStringTest", run: version_string },
    Check { name: "Basic/GetTypeTest", run: device_type },
    Check { name: "Basic/GetSupportedExtensionsTest", run: supported_extensions },
    Check { name: "Basic/GetNumberOfCacheFilesNeeded", run: cache_files_needed },
];

fn create_device(device: &dyn Device) -> Checked {
    if device.name().is_empty() {
        return Err("a device without a name".to_owned());
    }
    Ok(Verdict::Passed)
}

fn status(device: &dyn Device) -> Checked {
    match device.status() {
        DeviceStatus::Available => Ok(Verdict::Passed),
        other => Err(format!("{other:?}")),
    }
}

fn capabilities(device: &dyn Device) -> Checked {
    let all = device.capabilities().map_err(refused("capabilities"))?;
    let Capabilities { operand_performance, if_performance, while_performance, .. } = &all;
    let codes: Vec<i32> = operand_performance.iter().map(|(ty, _)| ty.code()).collect();
    if !codes.is_sorted_by(|one, next| one < next) {
        return Err(format!("not ascending, or one twice: {codes:?}"));
    }
    if codes.contains(&OperandType::Subgraph.code()) {
        return Err("SUBGRAPH has a performance".to_owned());
    }
    let relaxed = [all.relaxed_float32_to_float16_scalar, all.relaxed_float32_to_float16_tensor];
    let of_operands = operand_performance.iter().map(|(_, info)| *info);
    let infos = of_operands.chain(relaxed).chain([*if_performance, *while_performance]);
    for PerformanceInfo { exec_time, power_usage } in infos {
        // What is no number is not above 0, either.
        if !(exec_time > 0.0 && power_usage > 0.0) {
            return Err(format!("{exec_time} and {power_usage} are not both above 0"));
        }
    }
    match device.capabilities().map_err(refused("capabilities"))? == all {
        true => Ok(Verdict::Passed),
        false => Err("another answer the second time".to_owned()),
    }
}

/// Three sums whose data flow is a circle: each reads what the one before it writes, the first what the
/// last one does. Each by itself is legal.
fn circle() -> Model {
    let tensor = |lifetime| {
        let mut operand = Operand::new(OperandType::TensorFloat32, lifetime);
        operand.dimensions = [1].as_slice().into();
        operand
    };
    let mut model = Model::default();
    let main = &mut model.main;
    main.operands = vec![
        tensor(OperandLifeTime::SubgraphInput),
        tensor(OperandLifeTime::TemporaryVariable),
        tensor(OperandLifeTime::TemporaryVariable),
        tensor(OperandLifeTime::TemporaryVariable),
        tensor(OperandLifeTime::SubgraphOutput),
        Operand::new(OperandType::Int32, OperandLifeTime::SubgraphInput),
    ];
    let sum = |inputs: [u32; 2], output| Operation {
        ty: OperationType::Add,
        inputs: vec![inputs[0], inputs[1], 5],
        outputs: vec![output],
    };
    // 1 = 0 + 3, 2 = 1 + 0, 3 = 2 + 0; and what comes out.
    main.operations = vec![sum([0, 3], 1), sum([1, 0], 2), sum([2, 0], 3), sum([3, 0], 4)];
    (main.input_indexes, main.output_indexes) = (vec![0, 5], vec![4]);
    let consumers = main.count_consumers();
    for (operand, count) in main.operands.iter_mut().zip(consumers) {
        operand.number_of_consumers = count;
    }
    model
}

fn cycle(device: &dyn Device) -> Checked {
    let (model, invalid) = (circle(), ErrorStatus::InvalidArgument);
    expect_failure("supported_operations", invalid, device.supported_operations(&model))?;
    let prepared = device.prepare_model(&model, &PrepareOptions::default());
    expect_failure("prepare_model", invalid, prepared)?;
    Ok(Verdict::Passed)
}

fn version_string(device: &dyn Device) -> Checked {
    let version = device.version_string();
    if version.is_empty() || device.version_string() != version {
        return Err(format!("the version {version:?}"));
    }
    Ok(Verdict::Passed)
}

fn device_type(device: &dyn Device) -> Checked {
    // Every value of the type is one that a device may have: UNKNOWN cannot be said.
    let ty = device.device_type();
    match ty.code() >= 1 && device.device_type() == ty {
        true => Ok(Verdict::Passed),
        false => Err(format!("the type {ty:?}")),
    }
}

fn supported_extensions(device: &dyn Device) -> Checked {
    for extension in device.supported_extensions() {
        let name = &extension.name;
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '.';
        if name.is_empty() || !name.chars().all(legal) || !name.contains('.') {
            return Err(format!("an extension of the name {name:?}"));
        }
    }
    Ok(Verdict::Passed)
}

fn cache_files_needed(device: &dyn Device) -> Checked {
    let files = device.cache_files_needed();
    if files.model > CACHE_FILES_MAX || files.data > CACHE_FILES_MAX {
        return Err(format!("{files:?} are more than {CACHE_FILES_MAX} of a kind"));
    }
    match device.cache_files_needed() == files {
        true => Ok(Verdict::Passed),
        false => Err("another answer the second time".to_owned()),
    }
}
