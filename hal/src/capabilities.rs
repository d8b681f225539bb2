//! What a device says about its speed, its extensions and its cache files.
//!
//! Source: `types.hal` of NNAPI 1.0 to 1.3, `Capabilities`, `Extension`.

use crate::performance::{self, NoPlaceInTable};
use crate::{OperandType, PerformanceInfo};

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

/// Of a device that says nothing of its speed.
impl Default for Capabilities {
    fn default() -> Self {
        Capabilities {
            relaxed_float32_to_float16_scalar: PerformanceInfo::UNSUPPORTED,
            relaxed_float32_to_float16_tensor: PerformanceInfo::UNSUPPORTED,
            operand_performance: Vec::new(),
            if_performance: PerformanceInfo::UNSUPPORTED,
            while_performance: PerformanceInfo::UNSUPPORTED,
        }
    }
}

impl Capabilities {
    /// How well the device does with operands of this type; [`PerformanceInfo::UNSUPPORTED`]
    /// where the list lacks it.
    #[must_use]
    pub fn performance_of(&self, ty: OperandType) -> PerformanceInfo {
        performance::lookup(&self.operand_performance, ty)
    }

    /// Says how well the device does with operands of this type; [`crate::performance`] has an example.
    ///
    /// # Errors
    /// A type that no table has figures for.
    pub fn set_performance(
        &mut self,
        ty: OperandType,
        info: PerformanceInfo,
    ) -> Result<(), NoPlaceInTable> {
        performance::update(&mut self.operand_performance, ty, info)
    }
}

/// What a device of HAL 1.0 says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CapabilitiesV1_0 {
    /// 32-bit floats.
    pub float32: PerformanceInfo,
    /// 8-bit quantized values.
    pub quantized8: PerformanceInfo,
}

/// What a device of HAL 1.1 says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CapabilitiesV1_1 {
    /// 32-bit floats.
    pub float32: PerformanceInfo,
    /// 8-bit quantized values.
    pub quantized8: PerformanceInfo,
    /// 32-bit floats that may be computed as float16.
    pub relaxed_float32_to_float16: PerformanceInfo,
}

/// What a device of HAL 1.2 says.
#[derive(Debug, Clone, PartialEq)]
pub struct CapabilitiesV1_2 {
    /// Scalars, where float32 may be computed as float16.
    pub relaxed_float32_to_float16_scalar: PerformanceInfo,
    /// Tensors, where float32 may be computed as float16.
    pub relaxed_float32_to_float16_tensor: PerformanceInfo,
    /// By operand type, ascending, each at most once.
    pub operand_performance: Vec<(OperandType, PerformanceInfo)>,
}

impl From<CapabilitiesV1_0> for CapabilitiesV1_1 {
    fn from(old: CapabilitiesV1_0) -> Self {
        CapabilitiesV1_1 {
            float32: old.float32,
            quantized8: old.quantized8,
            relaxed_float32_to_float16: old.float32,
        }
    }
}

impl From<CapabilitiesV1_1> for CapabilitiesV1_2 {
    /// HAL 1.1 has two numbers for all of its types. The one for floats stands for every float
    /// type; the one for 8-bit values also for integers, as these devices computed both alike.
    fn from(old: CapabilitiesV1_1) -> Self {
        let (float32, quantized8) = (old.float32, old.quantized8);
        CapabilitiesV1_2 {
            relaxed_float32_to_float16_scalar: old.relaxed_float32_to_float16,
            relaxed_float32_to_float16_tensor: old.relaxed_float32_to_float16,
            operand_performance: vec![
                (OperandType::Float32, float32),
                (OperandType::Int32, quantized8),
                (OperandType::Uint32, quantized8),
                (OperandType::TensorFloat32, float32),
                (OperandType::TensorInt32, quantized8),
                (OperandType::TensorQuant8Asymm, quantized8),
                (OperandType::Oem, quantized8),
                (OperandType::TensorOemByte, quantized8),
            ],
        }
    }
}

impl From<CapabilitiesV1_2> for Capabilities {
    fn from(old: CapabilitiesV1_2) -> Self {
        Capabilities {
            relaxed_float32_to_float16_scalar: old.relaxed_float32_to_float16_scalar,
            relaxed_float32_to_float16_tensor: old.relaxed_float32_to_float16_tensor,
            operand_performance: old.operand_performance,
            if_performance: PerformanceInfo::UNSUPPORTED,
            while_performance: PerformanceInfo::UNSUPPORTED,
        }
    }
}

impl From<CapabilitiesV1_1> for Capabilities {
    fn from(old: CapabilitiesV1_1) -> Self {
        CapabilitiesV1_2::from(old).into()
    }
}

impl From<CapabilitiesV1_0> for Capabilities {
    fn from(old: CapabilitiesV1_0) -> Self {
        CapabilitiesV1_1::from(old).into()
    }
}

/// An operand type that an extension brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtensionOperandType {
    /// Its number within the extension.
    pub ty: u16,
    /// Whether it is a tensor.
    pub is_tensor: bool,
    /// Bytes of the scalar, or of one element.
    pub byte_size: u32,
}

impl ExtensionOperandType {
    /// Bytes of a value of these dimensions; `None` where the number does not fit 64 bits. A size of 0
    /// gives 0.
    #[must_use]
    pub fn byte_length(&self, dimensions: &[u32]) -> Option<u64> {
        crate::operand_type::length_of(self.byte_size.into(), dimensions)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const FLOAT: PerformanceInfo = PerformanceInfo { exec_time: 1.0, power_usage: 2.0 };
    const BYTE: PerformanceInfo = PerformanceInfo { exec_time: 3.0, power_usage: 4.0 };
    const RELAXED: PerformanceInfo = PerformanceInfo { exec_time: 5.0, power_usage: 6.0 };

    #[test]
    fn two_numbers_of_1_0_become_a_sorted_list() {
        let new = Capabilities::from(CapabilitiesV1_0 { float32: FLOAT, quantized8: BYTE });
        for ty in OperandType::ALL {
            let want = match ty {
                OperandType::Float32 | OperandType::TensorFloat32 => FLOAT,
                _ if ty.since() == Some(crate::HalVersion::V1_0) => BYTE,
                _ => PerformanceInfo::UNSUPPORTED,
            };
            assert_eq!(new.performance_of(*ty), want, "{ty}");
        }
        let codes: Vec<i32> = new.operand_performance.iter().map(|(ty, _)| ty.code()).collect();
        assert!(codes.is_sorted());
        assert_eq!(new.relaxed_float32_to_float16_scalar, FLOAT);
        assert_eq!(new.relaxed_float32_to_float16_tensor, FLOAT);
        assert_eq!(new.if_performance, PerformanceInfo::UNSUPPORTED);
        assert_eq!(new.while_performance, PerformanceInfo::UNSUPPORTED);
    }

    #[test]
    fn the_relaxed_number_of_1_1_is_kept() {
        let old = CapabilitiesV1_1 {
            float32: FLOAT,
            quantized8: BYTE,
            relaxed_float32_to_float16: RELAXED,
        };
        let new = Capabilities::from(old);
        assert_eq!(new.relaxed_float32_to_float16_scalar, RELAXED);
        assert_eq!(new.relaxed_float32_to_float16_tensor, RELAXED);
        assert_eq!(new.performance_of(OperandType::TensorFloat32), FLOAT);
    }
}
