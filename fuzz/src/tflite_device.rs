//! A `.tflite` file that is imported, prepared and executed.
//!
//! Looked at: what is imported is a model of which holds all that the contract promises of any
//! ([`burst_verify::fuzzing`]). What the importer itself has to do with a file is the target `tflite`'s.

use burst_hal::PrepareOptions;
use burst_tflite::import;
use burst_verify::fuzzing::judge_model;

use crate::Seed;
use crate::judged::{device, succeeded};

/// Bytes of the file of which requests are made, too.
const CHOICES: usize = 256;

/// The bytes are the file.
pub fn run(data: &[u8]) -> bool {
    let Ok(imported) = import(data) else { return false };
    let choices = data.get(data.len().saturating_sub(CHOICES)..).unwrap_or_default();
    succeeded(judge_model(&**device(), &imported.model, &PrepareOptions::default(), choices))
}

/// The files of the target `tflite`.
pub fn seeds() -> Vec<Seed> {
    crate::tflite::seeds()
}
