//! The operations: one file each, one row each, grouped by family.

use burst_hal::OperationType;

use crate::op::OpDef;

pub mod activation;
mod attributes;
pub mod broadcast;
pub mod control;
pub mod conv;
pub mod detection;
pub mod elementwise;
pub mod lookup;
pub mod pooling;
pub mod quantization;
mod rank_limit;
pub mod recurrent;
pub mod reduce;
pub mod shape;
#[cfg(test)]
pub(crate) mod testing;

/// The tables of the families; each lists its operations.
static FAMILIES: &[&[&OpDef]] = &[
    activation::OPS,
    control::OPS,
    conv::OPS,
    detection::OPS,
    elementwise::OPS,
    lookup::OPS,
    pooling::OPS,
    quantization::OPS,
    recurrent::OPS,
    reduce::OPS,
    shape::OPS,
];

/// The definition of an operation; `None` for one this driver lacks.
#[must_use]
pub fn find(code: OperationType) -> Option<&'static OpDef> {
    static BY_CODE: std::sync::OnceLock<[Option<&'static OpDef>; 102]> = std::sync::OnceLock::new();
    let table = BY_CODE.get_or_init(|| {
        let mut table = [None; 102];
        for def in all() {
            if let Some(row) = index(def.code).and_then(|index| table.get_mut(index)) {
                *row = Some(def);
            }
        }
        table
    });
    *table.get(index(code)?)?
}

fn index(code: OperationType) -> Option<usize> {
    usize::try_from(code.code()).ok()
}

/// Every operation this driver has.
pub fn all() -> impl Iterator<Item = &'static OpDef> {
    FAMILIES.iter().copied().flatten().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_listed_once() {
        let mut codes: Vec<i32> = all().map(|def| def.code.code()).collect();
        codes.sort_unstable();
        let listed = codes.len();
        codes.dedup();
        assert_eq!(codes.len(), listed, "an operation stands in two rows");
        for def in all() {
            assert_eq!(find(def.code).map(|d| d.code), Some(def.code));
        }
    }
}
