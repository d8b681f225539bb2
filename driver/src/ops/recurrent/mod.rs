//! LSTM, RNN, SVDF and their sequence forms.

use crate::op::OpDef;

/// The operations of this family.
pub static OPS: &[&OpDef] = &[];
