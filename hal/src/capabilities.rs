//! What a device says about its speed, its extensions and its cache files.
//!
//! Source: `types.hal` of NNAPI 1.0 to 1.3, `Capabilities`, `PerformanceInfo`, `Extension`.

use crate::OperandType;

/// Speed and energy relative to the reference CPU: smaller is better, always above zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PerformanceInfo {
    /// Time of an execution.
    pub exec_time: f32,
    /// Energy of an execution.
    pub power_usage: f32,
}

impl PerformanceInfo {
    /// What stands for "not supported": the largest float.
    pub const UNSUPPORTED: PerformanceInfo =
        PerformanceInfo { exec_time: f32::MAX, power_usage: f32::MAX };
}

/// How well a device does, by operand type.
#[derive(Debug, Clone, PartialEq)]
pub struct Capabilities {
    /// Scalars, where float32 may be computed as float16.
    pub relaxed_float32_to_float16_scalar: PerformanceInfo,
    /// Tensors, where float32 may be computed as float16.
    pub relaxed_float32_to_float16_tensor: PerformanceInfo,
    /// By operand type: ascending, each at most once, no extension types, no SUBGRAPH.
    pub operand_performance: Vec<(OperandType, PerformanceInfo)>,
    /// IF.
    pub if_performance: PerformanceInfo,
    /// WHILE.
    pub while_performance: PerformanceInfo,
}

/// An operand type that an extension brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionOperandType {
    /// Its number within the extension.
    pub ty: u16,
    /// Whether it is a tensor.
    pub is_tensor: bool,
    /// Bytes of the scalar, or of one element.
    pub byte_size: u32,
}

/// A set of vendor operand and operation types with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    /// Name in reverse domain form.
    pub name: String,
    /// The operand types it brings.
    pub operand_types: Vec<ExtensionOperandType>,
}

/// How many files a compilation is cached in; both 0 where a device does not cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheFiles {
    /// Files whose tampering could do harm; at most 32.
    pub model: u32,
    /// Files whose tampering can at worst give wrong results; at most 32.
    pub data: u32,
}
