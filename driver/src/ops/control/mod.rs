//! Control flow: IF and WHILE, which run other graphs of their model.
//!
//! What stands here are their rules. The plan of a step that runs graphs is a
//! `plan::Control`, and `control_flow.rs` executes it.

use crate::OpError;
use crate::op::{Inferred, OpDef, Run};
use crate::tensor::Args;

pub(crate) mod boundary;
pub mod if_operation;
pub mod while_operation;

/// The operations of this family.
pub static OPS: &[&OpDef] = &[&if_operation::DEF, &while_operation::DEF];

/// The shapes come from the graphs, which an operation alone does not see.
fn infer(_: &Args<'_>) -> Result<Inferred, OpError> {
    Ok(Inferred::DataDependent)
}

/// Never called on a planned step: the graphs to run belong to the model.
fn execute(_: &mut Run<'_, '_>) -> Result<(), OpError> {
    Err(OpError::Internal { what: "control flow was run without the graphs of its model" })
}
