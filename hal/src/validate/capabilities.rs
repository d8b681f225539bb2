//! What a device may say of its speed.

use crate::{Capabilities, HalVersion, OperandType, PerformanceInfo, performance};

/// What is wrong with what a device says of its speed.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CapabilitiesFault {
    /// A type that no table has figures for, or that the version lacks.
    #[error("HAL {version} has no figures for {ty}")]
    Type {
        /// The type.
        ty: OperandType,
        /// The version.
        version: HalVersion,
    },
    /// Not ascending, or a type twice.
    #[error("{ty} does not come behind the type before it, by code")]
    Order {
        /// The type.
        ty: OperandType,
    },
    /// A figure that is not above zero, or no number.
    #[error("the figures for {what} are {} and {}, which have to be above zero", .info.exec_time, .info.power_usage)]
    Figures {
        /// What they are for.
        what: FiguresFor,
        /// The figures.
        info: PerformanceInfo,
    },
}

/// What figures are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FiguresFor {
    /// An operand type.
    Type(OperandType),
    /// Scalars, where float32 may be computed as float16.
    RelaxedScalars,
    /// Tensors, where float32 may be computed as float16.
    RelaxedTensors,
    /// IF.
    If,
    /// WHILE.
    While,
}

impl std::fmt::Display for FiguresFor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FiguresFor::Type(ty) => write!(f, "{ty}"),
            FiguresFor::RelaxedScalars => f.write_str("relaxed scalars"),
            FiguresFor::RelaxedTensors => f.write_str("relaxed tensors"),
            FiguresFor::If => f.write_str("IF"),
            FiguresFor::While => f.write_str("WHILE"),
        }
    }
}

/// Checks what a device of this version says of its speed: types that the version has, in order and each
/// once, and figures above zero.
///
/// ```
/// use burst_hal::validate::validate_capabilities;
/// use burst_hal::*;
///
/// let info = PerformanceInfo { exec_time: 0.5, power_usage: 0.0 };
/// let table = performance::of_version(HalVersion::V1_3, info);
/// let capabilities = Capabilities { operand_performance: table, ..Capabilities::default() };
/// let fault = validate_capabilities(&capabilities, HalVersion::V1_3).unwrap_err();
/// let text = "the figures for FLOAT32 are 0.5 and 0, which have to be above zero";
/// assert_eq!(fault.to_string(), text);
/// ```
///
/// # Errors
/// The first thing that is wrong.
pub fn validate_capabilities(
    capabilities: &Capabilities,
    version: HalVersion,
) -> Result<(), CapabilitiesFault> {
    let Capabilities {
        relaxed_float32_to_float16_scalar,
        relaxed_float32_to_float16_tensor,
        operand_performance: table,
        if_performance,
        while_performance,
    } = capabilities;
    let mut before = None;
    for (ty, info) in table {
        let is_known = performance::has_place(*ty) && ty.since() <= Some(version);
        if !is_known {
            return Err(CapabilitiesFault::Type { ty: *ty, version });
        }
        if before.replace(ty.code()) >= Some(ty.code()) {
            return Err(CapabilitiesFault::Order { ty: *ty });
        }
        figures(FiguresFor::Type(*ty), *info)?;
    }
    figures(FiguresFor::RelaxedScalars, *relaxed_float32_to_float16_scalar)?;
    figures(FiguresFor::RelaxedTensors, *relaxed_float32_to_float16_tensor)?;
    figures(FiguresFor::If, *if_performance)?;
    figures(FiguresFor::While, *while_performance)
}

fn figures(what: FiguresFor, info: PerformanceInfo) -> Result<(), CapabilitiesFault> {
    let is_legal = |figure: f32| figure.is_finite() && figure > 0.0;
    match is_legal(info.exec_time) && is_legal(info.power_usage) {
        true => Ok(()),
        false => Err(CapabilitiesFault::Figures { what, info }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINE: PerformanceInfo = PerformanceInfo { exec_time: 0.1, power_usage: f32::MAX };

    fn check(change: impl FnOnce(&mut Capabilities)) -> Result<(), CapabilitiesFault> {
        let operand_performance = performance::of_version(HalVersion::V1_2, FINE);
        let mut capabilities = Capabilities { operand_performance, ..Capabilities::default() };
        change(&mut capabilities);
        validate_capabilities(&capabilities, HalVersion::V1_2)
    }

    #[test]
    fn a_table_has_the_versions_types_in_order() {
        assert_eq!(check(|_| {}), Ok(()));
        assert_eq!(check(|caps| caps.operand_performance.clear()), Ok(()));
        let version = HalVersion::V1_2;
        let newer = OperandType::TensorQuant8AsymmSigned;
        let extension = OperandType::from_code(0x1_0000);
        for ty in [newer, OperandType::Subgraph, extension, OperandType::from_code(99)] {
            let found = check(|caps| caps.operand_performance.push((ty, FINE)));
            assert_eq!(found, Err(CapabilitiesFault::Type { ty, version }));
        }
        let ty = OperandType::Int32;
        let found = check(|caps| caps.operand_performance[2] = (ty, FINE));
        assert_eq!(found, Err(CapabilitiesFault::Order { ty }), "twice");
        let found = check(|caps| caps.operand_performance.swap(1, 2));
        assert_eq!(found, Err(CapabilitiesFault::Order { ty }), "descending");
    }

    #[test]
    fn figures_are_above_zero() {
        for (exec_time, power_usage) in
            [(0.0, 1.0), (1.0, -1.0), (f32::NAN, 1.0), (1.0, f32::INFINITY)]
        {
            let bad = PerformanceInfo { exec_time, power_usage };
            type Place = fn(&mut Capabilities) -> &mut PerformanceInfo;
            let places: [(FiguresFor, Place); 5] = [
                (FiguresFor::Type(OperandType::Int32), |caps| &mut caps.operand_performance[1].1),
                (FiguresFor::RelaxedScalars, |caps| &mut caps.relaxed_float32_to_float16_scalar),
                (FiguresFor::RelaxedTensors, |caps| &mut caps.relaxed_float32_to_float16_tensor),
                (FiguresFor::If, |caps| &mut caps.if_performance),
                (FiguresFor::While, |caps| &mut caps.while_performance),
            ];
            for (place, of) in places {
                let found = check(|caps| *of(caps) = bad);
                let is_found =
                    matches!(found, Err(CapabilitiesFault::Figures { what, .. }) if what == place);
                assert!(is_found, "{place}: {found:?}");
            }
        }
    }
}
