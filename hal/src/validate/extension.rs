//! Names and prefixes of extensions.

use std::collections::HashSet;

use super::error::ValidationError;
use super::limits::{Limit, MAX_EXTENSION_NAME_BYTES};
use crate::Model;

/// Whether this is a name that an extension may have: lower-case letters, digits, underscores and
/// at least one dot, as in `com.example.fancy_ops`.
#[must_use]
pub fn validate_extension_name(name: &str) -> bool {
    let is_legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'.' || b == b'_';
    name.len() <= MAX_EXTENSION_NAME_BYTES && name.contains('.') && name.bytes().all(is_legal)
}

/// Whether the model says which extension has this prefix.
pub(super) fn is_declared(model: &Model, prefix: u16) -> bool {
    model.extension_name_to_prefix.iter().any(|(_, declared)| *declared == prefix)
}

/// Checks the model's list of extensions: legal names, no prefix 0, neither name nor prefix twice.
pub(super) fn check_list(model: &Model) -> Result<(), ValidationError> {
    let list = &model.extension_name_to_prefix;
    super::within(list.len(), Limit::Extensions)?;
    let mut names = HashSet::with_capacity(list.len());
    let mut prefixes = HashSet::with_capacity(list.len());
    for (index, (name, prefix)) in (0..).zip(list) {
        if !validate_extension_name(name) {
            return Err(ValidationError::ExtensionName { index });
        }
        if *prefix == 0 {
            return Err(ValidationError::ExtensionPrefixZero { index });
        }
        if !names.insert(name.as_str()) || !prefixes.insert(*prefix) {
            return Err(ValidationError::ExtensionTwice { index });
        }
    }
    Ok(())
}
