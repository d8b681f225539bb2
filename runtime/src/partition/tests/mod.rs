//! Who is chosen, how graphs are cut, what steps consist of; and what holds for any model and any devices.

#![allow(clippy::unwrap_used, reason = "a test panics")]

mod checking;
mod choosing;
mod control;
mod cutting;
mod executing;
mod properties;
mod soundness;

use burst_hal::{Capabilities, Model, OperandType, PerformanceInfo};

use super::{Offer, PartitionOptions, SupportedBy};

/// Figures of a device that takes this much time and energy for tensors of floats, as much for graphs.
fn figures(exec_time: f32, power_usage: f32) -> Capabilities {
    let info = PerformanceInfo { exec_time, power_usage };
    Capabilities {
        relaxed_float32_to_float16_scalar: info,
        relaxed_float32_to_float16_tensor: info,
        operand_performance: vec![
            (OperandType::TensorFloat32, info),
            (OperandType::TensorInt32, info),
            (OperandType::TensorBool8, info),
        ],
        if_performance: info,
        while_performance: info,
    }
}

/// Everything, in every graph.
fn everything(model: &Model) -> SupportedBy {
    SupportedBy::ask(model, |graph| vec![true; graph.main.operations.len()])
}

/// These operations of the main graph.
fn these(main: &[bool]) -> SupportedBy {
    SupportedBy { main: main.to_vec(), referenced: Vec::new() }
}

fn offer<'a>(name: &'a str, capabilities: &'a Capabilities, supported: SupportedBy) -> Offer<'a> {
    Offer { name, capabilities, supported, is_reference: name == "reference" }
}

fn default() -> PartitionOptions {
    PartitionOptions::default()
}
