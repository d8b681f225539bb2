//! A test made into a model, and prepared.

use std::borrow::Cow;
use std::sync::Arc;

use burst_hal::session::PoolAllocator;
use burst_hal::{Device, PrepareOptions, PreparedModel};

use crate::interface::Interface;
use crate::model::{Built, OutputShapes, build};
use crate::outcome::Miss;
use crate::vectors::{Test, Vectors};

/// The driver under test.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// The device.
    pub device: &'a dyn Device,
    /// Where the memory of requests comes from.
    pub memory: &'a Arc<dyn PoolAllocator>,
}

/// A test whose model is prepared.
pub(crate) struct Subject<'a> {
    pub(crate) test: Cow<'a, Test>,
    pub(crate) built: Built,
    pub(crate) prepared: Arc<dyn PreparedModel>,
    pub(crate) interface: Interface,
}

impl<'a> Subject<'a> {
    /// Builds and prepares a test; fails where the device's answer about supported operations and its
    /// preparation contradict each other.
    pub(crate) fn prepare(
        target: Target<'_>,
        vectors: &Vectors,
        test: Cow<'a, Test>,
        shapes: OutputShapes,
        interface: Interface,
    ) -> Result<Self, Miss> {
        let built = build(vectors, &test, shapes)?;
        let supported = target
            .device
            .supported_operations(&built.model)
            .map_err(|failure| format!("supported_operations: {failure}"))?;
        if supported.len() != built.model.main.operations.len() {
            return Err(format!("supported_operations gave {} answers", supported.len()).into());
        }
        let lacking = supported.iter().position(|supported| !supported);
        let prepared = target.device.prepare_model(&built.model, &PrepareOptions::default());
        let prepared = match (prepared, lacking) {
            (Ok(prepared), None) => prepared,
            (Ok(_), Some(index)) => {
                let what = format!("operation {index} is reported as unsupported, but prepared");
                return Err(what.into());
            }
            (Err(failure), None) => {
                return Err(match interface.may_refuse(&built.model, &failure) {
                    Some(rule) => Miss::LeftOut(rule),
                    None => format!("prepare_model: {failure}").into(),
                });
            }
            (Err(failure), Some(index)) => {
                let ty = built.model.main.operations[index].ty;
                return Err(Miss::Unsupported(format!(
                    "operation {index}, {}: {failure}",
                    ty.name()
                )));
            }
        };
        Ok(Subject { test, built, prepared, interface })
    }
}
