//! Lanes: devices, and ways to them, that have to compute the same.

use std::fs::File;
use std::sync::Arc;

use rustix::fs::{MemfdFlags, memfd_create};

use burst_hal::{
    CACHE_TOKEN_BYTES, CacheFiles, Caller, CompilationCache, OperandLifeTime, PrepareOptions,
    PreparedModel, Route,
};

use super::tensors::{Tensor, execute};
use crate::random::RandomModel;
use crate::run::DeviceLease;

/// How a lane executes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// Prepared, and executed over a route.
    Route(Route),
    /// Prepared into files, taken from them, and executed.
    Cached,
}

/// A device, and a way to it. The first of several lanes is judged, and the others compared with it.
pub struct Lane<'a> {
    /// What people call it.
    pub name: String,
    /// The device.
    pub lease: Box<dyn DeviceLease + 'a>,
    /// How it executes.
    pub way: Way,
    /// Whether it may add up in another order than the first lane: where its bits differ it is judged
    /// like the first.
    pub may_round_otherwise: bool,
}

/// What came of a model on a lane.
pub(super) enum Came {
    /// The values of its outputs.
    Outputs(Vec<Tensor>),
    /// The device says that it does not run this operation.
    Unsupported(usize),
    /// It cannot be asked for this way.
    Inapplicable,
}

/// Any compilation's token: each has files of its own.
const TOKEN: [u8; CACHE_TOKEN_BYTES] = [0x3c; CACHE_TOKEN_BYTES];

impl Lane<'_> {
    /// Prepares and executes a model.
    pub(super) fn run(&self, one: &RandomModel) -> Result<Came, String> {
        let target = self.lease.target();
        if self.way == Way::Route(Route::Fenced) && !has_known_outputs(one) {
            return Ok(Came::Inapplicable);
        }
        let supported = target.device.supported_operations(&one.model);
        let supported = supported.map_err(|failure| format!("supported_operations: {failure}"))?;
        let lacking = supported.iter().position(|supported| !supported);
        let (prepared, route) = match (&self.way, lacking) {
            (Way::Cached, None) => (self.restored(one)?, Route::Synchronous),
            (Way::Route(route), _) => {
                let options = PrepareOptions::default();
                match (target.device.prepare_model(&one.model, &options), lacking) {
                    (Ok(prepared), None) => (prepared, *route),
                    (Err(_), Some(index)) => return Ok(Came::Unsupported(index)),
                    (Err(failure), None) => return Err(format!("prepare_model: {failure}")),
                    (Ok(_), Some(index)) => {
                        return Err(format!("operation {index} is unsupported, but prepared"));
                    }
                }
            }
            (Way::Cached, Some(index)) => return Ok(Came::Unsupported(index)),
        };
        execute(one, &prepared, route, &**target.memory).map(Came::Outputs)
    }

    /// The model, as it comes back from files that it was prepared into.
    fn restored(&self, one: &RandomModel) -> Result<Arc<dyn PreparedModel>, String> {
        let device = self.lease.target().device;
        let files = device.cache_files_needed();
        let written = cache(files).map_err(|error| format!("files: {error}"))?;
        let read = again(&written).map_err(|error| format!("files: {error}"))?;
        let (options, caller) = (PrepareOptions::default(), Caller::default());
        let prepared = device.prepare_model_caching(&one.model, &options, &written, &caller);
        drop(prepared.map_err(|failure| format!("prepare_model_caching: {failure}"))?);
        let restored = device.prepare_model_from_cache(&read, None, &caller);
        restored.map_err(|failure| format!("prepare_model_from_cache: {failure}"))
    }
}

/// Files without names.
fn cache(files: CacheFiles) -> std::io::Result<CompilationCache> {
    let open = |count: u32| -> std::io::Result<Vec<File>> {
        let file = || memfd_create("compilation", MemfdFlags::CLOEXEC).map(File::from);
        (0..count).map(|_| Ok(file()?)).collect()
    };
    Ok(CompilationCache { token: TOKEN, model: open(files.model)?, data: open(files.data)? })
}

/// The same files, to be read.
fn again(cache: &CompilationCache) -> std::io::Result<CompilationCache> {
    let open = |files: &[File]| files.iter().map(File::try_clone).collect::<std::io::Result<_>>();
    Ok(CompilationCache { token: TOKEN, model: open(&cache.model)?, data: open(&cache.data)? })
}

/// Whether the sizes of all outputs are known from the model, and are some.
fn has_known_outputs(one: &RandomModel) -> bool {
    let graph = &one.model.main;
    let known = |operand: &u32| {
        let operand = &graph.operands[*operand as usize];
        let is_open = operand.ty.is_tensor() && operand.dimensions.is_empty();
        operand.lifetime == OperandLifeTime::SubgraphOutput
            && !is_open
            && !operand.dimensions.contains(&0)
    };
    graph.output_indexes.iter().all(known)
}
