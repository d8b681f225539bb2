//! Arithmetic, comparison and logic, value by value.

use crate::op::OpDef;

pub mod add;
mod arithmetic;

/// The operations of this family.
pub static OPS: &[&OpDef] = &[&add::DEF];
