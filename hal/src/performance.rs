//! Tables of what a device says of its speed, by operand type: made, looked up, changed.
//!
//! A table is a list of types with their figures, ascending by code, each type at most once, without
//! extension types and without SUBGRAPH. [`Capabilities`](crate::Capabilities) and
//! [`CapabilitiesV1_2`](crate::CapabilitiesV1_2) have one each.
//!
//! ```
//! use burst_hal::*;
//!
//! let plain = PerformanceInfo { exec_time: 1.0, power_usage: 1.0 };
//! let quick = PerformanceInfo { exec_time: 0.25, power_usage: 0.5 };
//! // Every type of HAL 1.2 alike, bytes better.
//! let mut table = performance::of_version(HalVersion::V1_2, plain);
//! performance::update(&mut table, OperandType::TensorQuant8Asymm, quick)?;
//! assert_eq!(performance::lookup(&table, OperandType::TensorQuant8Asymm), quick);
//! assert_eq!(performance::lookup(&table, OperandType::TensorFloat32), plain);
//! // A type of 1.3 is not in it: not supported.
//! let missing = performance::lookup(&table, OperandType::TensorQuant8AsymmSigned);
//! assert_eq!(missing, PerformanceInfo::UNSUPPORTED);
//!
//! let mut capabilities = Capabilities { operand_performance: table, ..Capabilities::default() };
//! capabilities.set_performance(OperandType::TensorQuant8AsymmSigned, quick)?;
//! validate::validate_capabilities(&capabilities, HalVersion::V1_3)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Source: NNAPI's `HalInterfaces` helpers `nonExtensionOperandPerformance`, `update`, `lookup`.

use crate::{HalVersion, OperandType};

/// Speed and energy relative to the reference CPU: smaller is better, always above zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PerformanceInfo {
    /// Time of an execution.
    pub exec_time: f32,
    /// Energy of an execution.
    pub power_usage: f32,
}

impl PerformanceInfo {
    /// The value that means "not supported": the largest float.
    pub const UNSUPPORTED: PerformanceInfo =
        PerformanceInfo { exec_time: f32::MAX, power_usage: f32::MAX };
}

/// A type that no table has figures for: of an extension, without meaning, or SUBGRAPH, whose cost is what
/// is said of IF and WHILE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{ty} has no place in a table of performance")]
pub struct NoPlaceInTable {
    /// The type.
    pub ty: OperandType,
}

/// Whether a table may have figures for this type.
#[must_use]
pub fn has_place(ty: OperandType) -> bool {
    use OperandType::{Extension, Subgraph, Unknown};
    !matches!(ty, Extension(_) | Unknown(_) | Subgraph)
}

/// A table with the same figures for every type that a version has.
#[must_use]
pub fn of_version(
    version: HalVersion,
    info: PerformanceInfo,
) -> Vec<(OperandType, PerformanceInfo)> {
    let types = OperandType::ALL.iter().copied().filter(|ty| has_place(*ty));
    types.filter(|ty| ty.since() <= Some(version)).map(|ty| (ty, info)).collect()
}

/// The figures for a type; [`PerformanceInfo::UNSUPPORTED`] where the table has none.
#[must_use]
pub fn lookup(table: &[(OperandType, PerformanceInfo)], ty: OperandType) -> PerformanceInfo {
    position(table, ty).map_or(PerformanceInfo::UNSUPPORTED, |index| table[index].1)
}

/// Says these figures of a type, in place of those that the table had for it.
///
/// # Errors
/// A type that no table has figures for.
pub fn update(
    table: &mut Vec<(OperandType, PerformanceInfo)>,
    ty: OperandType,
    info: PerformanceInfo,
) -> Result<(), NoPlaceInTable> {
    if !has_place(ty) {
        return Err(NoPlaceInTable { ty });
    }
    match position(table, ty) {
        Ok(index) => table[index].1 = info,
        Err(index) => table.insert(index, (ty, info)),
    }
    Ok(())
}

/// Where a type stands, or where it would.
fn position(table: &[(OperandType, PerformanceInfo)], ty: OperandType) -> Result<usize, usize> {
    table.binary_search_by_key(&ty.code(), |(ty, _)| ty.code())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: PerformanceInfo = PerformanceInfo { exec_time: 1.0, power_usage: 1.0 };
    const TWO: PerformanceInfo = PerformanceInfo { exec_time: 2.0, power_usage: 3.0 };

    #[test]
    fn a_table_of_a_version_has_exactly_its_types_in_order() {
        for version in HalVersion::ALL {
            let table = of_version(version, ONE);
            assert!(table.is_sorted_by_key(|(ty, _)| ty.code()), "{version}");
            for ty in OperandType::ALL {
                let has = ty.since() <= Some(version) && *ty != OperandType::Subgraph;
                let want = if has { ONE } else { PerformanceInfo::UNSUPPORTED };
                assert_eq!(lookup(&table, *ty), want, "{version} {ty}");
            }
        }
    }

    #[test]
    fn figures_are_put_where_they_belong_and_replaced() {
        let mut table = Vec::new();
        let order = [OperandType::Oem, OperandType::Float32, OperandType::TensorFloat16];
        for ty in order {
            update(&mut table, ty, ONE).unwrap();
            update(&mut table, ty, TWO).unwrap();
        }
        let types: Vec<_> = table.iter().map(|(ty, _)| *ty).collect();
        assert_eq!(types, [order[1], order[2], order[0]]);
        assert!(table.iter().all(|(_, info)| *info == TWO));
    }

    #[test]
    fn what_has_no_place_is_refused_by_name() {
        let mut table = of_version(HalVersion::LATEST, ONE);
        let before = table.clone();
        let extension = OperandType::from_code(0x2_0003);
        for ty in [OperandType::Subgraph, extension, OperandType::from_code(77)] {
            assert_eq!(update(&mut table, ty, TWO), Err(NoPlaceInTable { ty }));
        }
        assert_eq!(table, before);
        let error = NoPlaceInTable { ty: extension };
        assert_eq!(error.to_string(), "EXTENSION(131075) has no place in a table of performance");
    }
}
