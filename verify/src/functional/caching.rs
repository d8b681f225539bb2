//! Compilation caching: the cases of `CompilationCachingTest` and `CompilationCachingSecurityTest`, and what
//! they leave out.

mod files;
mod models;
mod security;
mod statuses;
mod swapping;

use std::path::Path;
use std::sync::Arc;

use burst_hal::{
    CACHE_TOKEN_BYTES, Caller, CompilationCache, Device, ErrorStatus, Failure, Model,
    PrepareOptions, PreparedModel,
};

pub use files::{Access, Place};
pub use models::{Sort, TestModel};

/// What a device did and should not have done, in words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Fault(String);

/// What comes of a check.
pub type Checked = Result<(), Fault>;

/// One of the checks.
pub type Check = fn(&Setting<'_>) -> Checked;

/// Every check, by name.
pub const CHECKS: &[(&str, Check)] = &[
    ("what_was_saved_is_retrieved", statuses::what_was_saved_is_retrieved),
    ("files_are_used_from_their_start", statuses::files_are_used_from_their_start),
    ("saving_into_another_number_of_files", statuses::saving_into_another_number_of_files),
    (
        "saving_into_files_that_cannot_be_written",
        statuses::saving_into_files_that_cannot_be_written,
    ),
    ("retrieving_from_another_number_of_files", statuses::retrieving_from_another_number_of_files),
    (
        "retrieving_from_files_that_cannot_be_read",
        statuses::retrieving_from_files_that_cannot_be_read,
    ),
    ("descriptors_that_are_no_files", statuses::descriptors_that_are_no_files),
    ("retrieving_after_the_deadline", statuses::retrieving_after_the_deadline),
    ("model_files_of_another_model", security::model_files_of_another_model),
    ("another_token", security::another_token),
    ("corrupted_model_files", security::corrupted_model_files),
    ("corrupted_data_files", security::corrupted_data_files),
    ("model_files_of_another_length", security::model_files_of_another_length),
    ("data_files_of_another_length", security::data_files_of_another_length),
    ("files_that_change_while_they_are_saved", swapping::files_that_change_while_they_are_saved),
    ("files_that_change_while_they_are_read", swapping::files_that_change_while_they_are_read),
    ("bytes_that_change_while_they_are_read", swapping::bytes_that_change_while_they_are_read),
];

/// What a check is given.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// A device that keeps compilations.
    pub device: &'a dyn Device,
    /// A folder for files, which is empty.
    pub folder: &'a Path,
    /// Which numbers the models compute with.
    pub sort: Sort,
}

const TOKEN: [u8; CACHE_TOKEN_BYTES] = [0x5a; CACHE_TOKEN_BYTES];

impl Setting<'_> {
    /// A compilation in files of this name.
    fn place(&self, name: &str) -> Place {
        Place::new(self.folder, name, self.device.cache_files_needed())
    }

    fn cache(&self, place: &Place, access: Access) -> Result<CompilationCache, Fault> {
        let files = place.open(access, access);
        let (model, data) = files.map_err(|error| fault(format!("the test's files: {error}")))?;
        Ok(CompilationCache { token: TOKEN, model, data })
    }

    fn prepare(
        &self,
        model: &Model,
        cache: &CompilationCache,
    ) -> Result<Arc<dyn PreparedModel>, Failure> {
        let (options, caller) = (PrepareOptions::default(), Caller::default());
        self.device.prepare_model_caching(model, &options, cache, &caller)
    }

    fn retrieve(&self, cache: &CompilationCache) -> Result<Arc<dyn PreparedModel>, Failure> {
        self.device.prepare_model_from_cache(cache, None, &Caller::default())
    }

    /// Keeps a model in files of this name, and asserts that they are used.
    fn saved(&self, name: &str, model: &TestModel) -> Result<Place, Fault> {
        let place = self.place(name);
        place.create().map_err(|error| fault(format!("the test's files: {error}")))?;
        let cache = self.cache(&place, Access::Both)?;
        let prepared = self.prepare(&model.model, &cache);
        model.check(&*prepared.map_err(|failure| fault(format!("not prepared: {failure}")))?)?;
        Ok(place)
    }

    /// Asserts that a retrieval gives the model, or one of these statuses.
    fn gives_model_or(
        &self,
        what: &str,
        cache: &CompilationCache,
        model: &TestModel,
        statuses: &[ErrorStatus],
    ) -> Checked {
        match self.retrieve(cache) {
            Ok(prepared) => model.check(&*prepared),
            Err(failure) => expect_status(what, failure.status, statuses),
        }
    }

    /// Asserts that a retrieval fails with one of these statuses.
    fn fails(&self, what: &str, cache: &CompilationCache, statuses: &[ErrorStatus]) -> Checked {
        match self.retrieve(cache) {
            Ok(_) => Err(fault(format!("{what}: a model was retrieved"))),
            Err(failure) => expect_status(what, failure.status, statuses),
        }
    }
}

fn expect_status(what: &str, status: ErrorStatus, allowed: &[ErrorStatus]) -> Checked {
    if !allowed.contains(&status) {
        let allowed: Vec<_> = allowed.iter().map(|status| status.name()).collect();
        let allowed = allowed.join(" or ");
        return Err(fault(format!("{what}: {}, and should be {allowed}", status.name())));
    }
    Ok(())
}

fn fault(what: impl Into<String>) -> Fault {
    Fault(what.into())
}

/// Numbers that are the same on every machine.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Below `end`, which is not 0.
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap_or(0)
    }
}
