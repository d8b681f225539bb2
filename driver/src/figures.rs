//! How fast and economical an engine is, by type of data, relative to plain references on one thread.

use burst_hal::{Capabilities, OperandKind, OperandType, PerformanceInfo};

/// Times and energies relative to those of plain references on one thread: smaller is better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// 32-bit floats.
    pub float32: PerformanceInfo,
    /// 32-bit floats of a model that permits the precision of 16 bits.
    pub relaxed: PerformanceInfo,
    /// 16-bit floats.
    pub float16: PerformanceInfo,
    /// Unsigned bytes.
    pub quant8_asymm: PerformanceInfo,
    /// Signed bytes.
    pub quant8_asymm_signed: PerformanceInfo,
    /// IF, without the operations in its graphs.
    pub control_if: PerformanceInfo,
    /// WHILE, likewise.
    pub control_while: PerformanceInfo,
}

/// As fast as the reference.
const REFERENCE: PerformanceInfo = PerformanceInfo { exec_time: 1.0, power_usage: 1.0 };

const fn as_much(ratio: f32) -> PerformanceInfo {
    PerformanceInfo { exec_time: ratio, power_usage: ratio }
}

impl Figures {
    /// What is told where nothing was measured: rounded from the column "reference : ours" of
    /// `driver/README.md`, which names the machine and the command. Floats are the geometric mean of a
    /// MobileNet (36) and an LSTM (7), bytes the least of the networks for pictures (36). Convolutions of
    /// 16-bit floats have no fast kernel. Power is taken to be in proportion.
    pub const BUILT_IN: Figures = Figures {
        float32: as_much(0.06),
        relaxed: as_much(0.06),
        float16: REFERENCE,
        quant8_asymm: as_much(0.03),
        quant8_asymm_signed: as_much(0.03),
        control_if: REFERENCE,
        control_while: REFERENCE,
    };

    /// The figures with their names.
    #[must_use]
    pub fn entries(&self) -> [(&'static str, PerformanceInfo); 7] {
        [
            ("float32", self.float32),
            ("relaxed", self.relaxed),
            ("float16", self.float16),
            ("quant8_asymm", self.quant8_asymm),
            ("quant8_asymm_signed", self.quant8_asymm_signed),
            ("if", self.control_if),
            ("while", self.control_while),
        ]
    }

    /// The figures that `lookup` has under these names.
    ///
    /// # Errors
    /// What `lookup` says of the first that it does not have.
    pub fn from_entries<E>(
        mut lookup: impl FnMut(&'static str) -> Result<PerformanceInfo, E>,
    ) -> Result<Self, E> {
        Ok(Figures {
            float32: lookup("float32")?,
            relaxed: lookup("relaxed")?,
            float16: lookup("float16")?,
            quant8_asymm: lookup("quant8_asymm")?,
            quant8_asymm_signed: lookup("quant8_asymm_signed")?,
            control_if: lookup("if")?,
            control_while: lookup("while")?,
        })
    }

    /// The first figure that no device may report, which is none above zero: its name.
    #[must_use]
    pub fn illegal(&self) -> Option<&'static str> {
        let is_legal = |value: f32| value.is_finite() && value > 0.0;
        let found = self
            .entries()
            .into_iter()
            .find(|(_, info)| !(is_legal(info.exec_time) && is_legal(info.power_usage)));
        found.map(|(name, _)| name)
    }

    /// The figures as a table by operand type. What stands for a type is what was measured of operations
    /// that begin with it; types that no operation with a fast kernel begins with are as in the reference.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        let performance = |ty: OperandType| match ty {
            OperandType::Float32 | OperandType::TensorFloat32 => self.float32,
            OperandType::Float16 | OperandType::TensorFloat16 => self.float16,
            OperandType::TensorQuant8Asymm => self.quant8_asymm,
            OperandType::TensorQuant8AsymmSigned => self.quant8_asymm_signed,
            _ => REFERENCE,
        };
        Capabilities {
            relaxed_float32_to_float16_scalar: self.relaxed,
            relaxed_float32_to_float16_tensor: self.relaxed,
            operand_performance: table(performance),
            if_performance: self.control_if,
            while_performance: self.control_while,
        }
    }
}

impl Default for Figures {
    fn default() -> Self {
        Figures::BUILT_IN
    }
}

/// A table over every type that an operation here may begin with: sorted, without SUBGRAPH and without the
/// vendors' types.
pub(crate) fn table(
    performance: impl Fn(OperandType) -> PerformanceInfo,
) -> Vec<(OperandType, PerformanceInfo)> {
    let is_value = |ty: &&OperandType| {
        matches!(ty.kind(), OperandKind::Scalar | OperandKind::Tensor) && !ty.is_oem()
    };
    OperandType::ALL.iter().filter(is_value).map(|ty| (*ty, performance(*ty))).collect()
}
