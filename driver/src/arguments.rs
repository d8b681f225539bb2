//! The arguments of one execution.
//!
//! | an argument | goes |
//! |---|---|
//! | an input in memory | by one copy to where the first operation reads it |
//! | an output in memory | by one copy from where the last operation left it |
//! | an input in a buffer | nowhere: operations read it where it lies |
//! | an output in a buffer | nowhere: the operation computes right into it |
//! | an output in a buffer that is the same in every execution | by one copy: it was computed when the model was prepared |

#[cfg(debug_assertions)]
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use burst_hal::validate::computed_dimensions;
use burst_hal::{
    Dimensions, ErrorStatus, ExecutionResult, OutputShape, Pool, PreparedModel, Request,
    RequestArgument, RequestBuffers, RequestPool,
};

use crate::OpError;
use crate::buffers::{Buffers, Storage, Tracked, Writing, value};
use crate::context::Context;
use crate::error::DriverError;
use crate::plan::Plan;
use crate::scratch::Scratch;
use crate::stop::Stop;
use crate::threads::{Parallelism, Tiling, speed};

/// The arguments of one execution.
pub(crate) struct Arguments<'r> {
    request: &'r Request,
    buffers: RequestBuffers<Storage>,
    /// Outputs in buffers.
    written: Vec<Written>,
}

/// An output in a buffer.
struct Written {
    position: usize,
    writing: Writing,
    /// Whether the operation computes right into it.
    is_lent: bool,
    /// Of its value, once that is there.
    dims: Dimensions,
}

impl<'r> Arguments<'r> {
    /// The arguments of a request that was checked against the model's rules.
    ///
    /// # Errors
    /// Those of [`burst_hal::BufferTracker::find`].
    pub(crate) fn find(
        buffers: &Buffers,
        model: &dyn PreparedModel,
        request: &'r Request,
    ) -> Result<Self, DriverError> {
        let buffers = buffers.find(model, request).map_err(DriverError::buffer)?;
        Ok(Arguments { request, buffers, written: Vec::new() })
    }

    /// Brings all of them to the context, large ones with the help of these threads. Whatever comes of it,
    /// [`Arguments::end`] has to follow.
    pub(crate) fn bring(
        &mut self,
        context: &mut Context,
        plan: &Plan,
        threads: Parallelism<'_>,
    ) -> Result<(), DriverError> {
        for (index, argument) in self.request.inputs.iter().enumerate() {
            if let Some(buffer) = self.buffers.of(argument) {
                lend_input(context, plan, index, buffer)?;
            } else {
                copy_in(context, plan, self.request, index, threads)?;
            }
        }
        for (position, argument) in self.request.outputs.iter().enumerate() {
            let Some(buffer) = self.buffers.of(argument) else { continue };
            let failed = |cause| wrong("output", position, cause);
            let mut writing = Writing::begin(buffer).map_err(failed)?;
            let memory = writing.memory().map_err(failed)?;
            let is_lent = context.lend_output(plan, position, memory).map_err(failed)?;
            self.written.push(Written { position, writing, is_lent, dims: Dimensions::new() });
        }
        Ok(())
    }

    /// Takes the outputs of an execution that has ended, large ones with the help of these threads. The result's
    /// status is NONE or OUTPUT_INSUFFICIENT_SIZE then.
    ///
    /// # Errors
    /// Dimensions that the request or a buffer excludes: nothing has been copied then.
    pub(crate) fn take(
        &mut self,
        context: &Context,
        plan: &Plan,
        threads: Parallelism<'_>,
        result: &mut ExecutionResult,
    ) -> Result<(), DriverError> {
        for (index, argument) in self.request.outputs.iter().enumerate() {
            let (dims, _) = context.output(plan, index);
            check_output(argument, index, dims)?;
            if let Some(buffer) = self.buffers.of(argument) {
                buffer.check_computed(dims).map_err(DriverError::buffer)?;
            }
        }
        let mut written = self.written.iter_mut();
        for (index, argument) in self.request.outputs.iter().enumerate() {
            let (dims, bytes) = context.output(plan, index);
            let mut is_sufficient = true;
            if self.buffers.of(argument).is_some() {
                // In the order of the outputs, as they were lent.
                let written =
                    written.next().ok_or(DriverError::Internal { what: "a lost output" })?;
                written.take(dims, bytes)?;
            } else {
                is_sufficient = copy_out(self.request, index, bytes, threads)?;
            }
            if !is_sufficient {
                result.status = ErrorStatus::OutputInsufficientSize;
            }
            result.output_shapes.push(OutputShape { dimensions: dims.into(), is_sufficient });
        }
        Ok(())
    }

    /// Gives the buffers back. Those that were written have a value where the execution ended well.
    pub(crate) fn end(self, context: &mut Context, plan: &Plan, ended_well: bool) {
        if self.buffers.is_empty() {
            return;
        }
        for (index, argument) in self.request.inputs.iter().enumerate() {
            if self.buffers.of(argument).is_some() {
                context.return_input(plan, index);
            }
        }
        for Written { position, mut writing, is_lent, dims } in self.written {
            // Of what cannot be had back nothing is kept: the buffer has no value then.
            let Ok(memory) = writing.memory() else { continue };
            if is_lent {
                context.return_output(plan, position, memory);
            }
            if ended_well {
                writing.finish(dims);
            } else {
                writing.give_up();
            }
        }
    }
}

impl Written {
    /// Takes note of the output's value, which lies in the buffer already, or is copied there.
    fn take(&mut self, dims: &[u32], bytes: &[u8]) -> Result<(), DriverError> {
        self.dims = dims.into();
        if !self.is_lent {
            let failed = |cause| wrong("output", self.position, cause);
            let memory = self.writing.memory().map_err(failed)?;
            memory.resize(bytes.len()).map_err(failed)?; // of a buffer of open size
            crate::graph_memory::fill(memory.as_mut_slice(), bytes).map_err(failed)?;
            count_copy();
        }
        Ok(())
    }
}

/// Lets the operations read an input where it lies in a buffer.
fn lend_input(
    context: &mut Context,
    plan: &Plan,
    index: usize,
    buffer: &Arc<Tracked>,
) -> Result<(), DriverError> {
    // It had one when the request was looked at; somebody may have begun to write it since.
    let (dims, value) = value(buffer).ok_or_else(|| {
        let cause = format!("input {index}: the buffer has no value");
        DriverError::buffer(burst_hal::Failure::general(cause))
    })?;
    context.lend_input(plan, index, &dims, value).map_err(|cause| wrong("input", index, cause))
}

/// Copies an input that lies in memory, or marks it as left out.
///
/// A large one is copied by all threads, each the part that it most likely reads in the first operation: what one
/// core has just written another one reads slowly.
pub(crate) fn copy_in(
    context: &mut Context,
    plan: &Plan,
    request: &Request,
    index: usize,
    threads: Parallelism<'_>,
) -> Result<(), DriverError> {
    let argument = &request.inputs[index];
    if argument.has_no_value {
        context.omit_input(plan, index);
        return Ok(());
    }
    let pool = memory(request, argument)?;
    let bytes = context
        .input(plan, index, &argument.dimensions)
        .map_err(|cause| wrong("input", index, cause))?;
    count_copy();
    let failed = |cause| DriverError::Memory { what: "input", index, cause };
    let begin = u64::from(argument.location.offset);
    let tiling = copying(bytes.len());
    // A helper serves everybody: it must not wait for a file that somebody keeps from answering.
    if !pool.is_mapped() || !threads.shares(&tiling) {
        return pool.read(begin, bytes).map_err(failed);
    }
    let failure = Mutex::new(None);
    let copied =
        threads.tiles(&tiling, bytes, &mut Scratch::default(), Stop::default(), |at, part, _| {
            pool.read(begin + at as u64, part).map_err(|cause| {
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(cause);
                OpError::Internal { what: "memory of an input that cannot be read" }
            })
        });
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(cause) => Err(failed(cause)),
        None => copied.map_err(|cause| wrong("input", index, cause)),
    }
}

/// Refuses an output of other dimensions than the request says. A computed size of 0 is none that is unknown.
pub(crate) fn check_output(
    argument: &RequestArgument,
    index: usize,
    computed: &[u32],
) -> Result<(), DriverError> {
    let asked = argument.dimensions.as_slice();
    computed_dimensions(asked, computed).map_err(|_| DriverError::OutputShape {
        index,
        asked: asked.to_vec(),
        computed: computed.to_vec(),
    })
}

/// How so many bytes are copied by several threads.
fn copying(len: usize) -> Tiling {
    /// Bytes that a core copies in a nanosecond.
    const COPIED: usize = 16;
    Tiling { nanos: speed::nanos(&[len], COPIED), ..Tiling::values(0) }
}

/// Copies an output to memory, where it has room. Says whether it had.
///
/// A large one is copied by all threads, where its memory is lent to be filled.
pub(crate) fn copy_out(
    request: &Request,
    index: usize,
    bytes: &[u8],
    threads: Parallelism<'_>,
) -> Result<bool, DriverError> {
    let argument = &request.outputs[index];
    if room(request, argument)? < bytes.len() as u64 {
        return Ok(false);
    }
    if bytes.is_empty() {
        return Ok(true);
    }
    count_copy();
    let (pool, offset) = (memory(request, argument)?, u64::from(argument.location.offset));
    let failed = |cause| DriverError::Memory { what: "output", index, cause };
    let tiling = copying(bytes.len());
    if threads.shares(&tiling) {
        let mut copied = Ok(());
        let mut fill = |out: &mut [u8]| {
            let part = |at: usize, out: &mut [u8], _: &mut Scratch| {
                out.copy_from_slice(&bytes[at..][..out.len()]);
                Ok(())
            };
            copied = threads.tiles(&tiling, out, &mut Scratch::default(), Stop::default(), part);
        };
        if pool.fill(offset, bytes.len(), &mut fill).map_err(failed)? {
            return copied.map(|()| true).map_err(|cause| wrong("output", index, cause));
        }
    }
    pool.write(offset, bytes).map_err(failed)?;
    Ok(true)
}

fn wrong(what: &'static str, index: usize, cause: OpError) -> DriverError {
    DriverError::given_up(&cause).unwrap_or(DriverError::Argument { what, index, cause })
}

/// Bytes an output argument has room for; offset 0 with length 0 stands for the whole pool.
fn room(request: &Request, argument: &RequestArgument) -> Result<u64, DriverError> {
    let location = argument.location;
    if location.is_whole_pool() {
        return Ok(memory(request, argument)?.len());
    }
    Ok(u64::from(location.length))
}

pub(crate) fn memory<'r>(
    request: &'r Request,
    argument: &RequestArgument,
) -> Result<&'r Pool, DriverError> {
    let pool = argument.location.pool_index;
    match request.pools.get(pool as usize) {
        Some(RequestPool::Memory(memory)) => Ok(memory),
        _ => Err(DriverError::Token { pool }),
    }
}

#[cfg(debug_assertions)]
static COPIES: AtomicU64 = AtomicU64::new(0);

/// Counts a copy of an argument; only where debug assertions are on, as only tests ask.
fn count_copy() {
    // Relaxed: a count, which orders nothing.
    #[cfg(debug_assertions)]
    COPIES.fetch_add(1, Ordering::Relaxed);
}

/// How often executions in this process have copied an argument, in either direction. `None` where debug
/// assertions are off: then nobody counts.
#[must_use]
pub fn argument_copies() -> Option<u64> {
    #[cfg(debug_assertions)]
    let copies = Some(COPIES.load(Ordering::Relaxed));
    #[cfg(not(debug_assertions))]
    let copies = None;
    copies
}
