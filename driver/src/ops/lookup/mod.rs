//! Tables, hashes and random draws.

use crate::op::OpDef;

pub mod embedding_lookup;
mod fingerprint;
pub mod hashtable_lookup;
pub mod lsh_projection;
mod philox;
pub mod random_multinomial;
mod rows;

/// The operations of this family.
pub static OPS: &[&OpDef] = &[
    &embedding_lookup::DEF,
    &hashtable_lookup::DEF,
    &lsh_projection::DEF,
    &random_multinomial::DEF,
];
