//! Executions: arguments, options, the four ways to compute, results.

use std::ffi::c_int;
use std::sync::Arc;

use burst_hal::ResultCode;
use burst_hal::validate::MAX_EXTENSION_NAME_BYTES;

use super::abi::OperandType;
use super::arguments::{Bool, Bytes, In, Out, OutBytes, Place, Text};
use super::guard::{call, code_of, quietly};
use super::handles::Handle;
use super::host_memory;
use crate::{Argument, Burst, Compilation, Event, Execution, Memory, OperandTypeDesc, Result};

/// Events that one execution may wait for: far above any pipeline, and what one list costs stays small.
const MAX_DEPENDENCIES: usize = 1 << 10;

pub(super) extern "C" fn create(
    compilation: Handle<Compilation>,
    execution: Out<Handle<Execution>>,
) -> c_int {
    call(|| {
        let place = execution.required("execution")?;
        place.set(Handle::NULL);
        place.set(Handle::new(Execution::new(&compilation.get()?)?)?);
        Ok(())
    })
}

/// An execution under way keeps itself alive until its end.
pub(super) extern "C" fn free(execution: Handle<Execution>) {
    quietly(|| drop(execution.free()));
}

pub(super) extern "C" fn set_input(
    execution: Handle<Execution>,
    index: i32,
    ty: In<OperandType>,
    buffer: Bytes,
    length: usize,
) -> c_int {
    call(|| {
        let execution = execution.get()?;
        let argument = host_memory::input(buffer, length)?;
        execution.set_input(index, desc(ty)?.as_ref(), argument)
    })
}

pub(super) extern "C" fn set_input_from_memory(
    execution: Handle<Execution>,
    index: i32,
    ty: In<OperandType>,
    memory: Handle<Memory>,
    offset: usize,
    length: usize,
) -> c_int {
    call(|| {
        let argument = Argument::Memory { memory: memory.get()?, offset, length };
        execution.get()?.set_input(index, desc(ty)?.as_ref(), argument)
    })
}

pub(super) extern "C" fn set_output(
    execution: Handle<Execution>,
    index: i32,
    ty: In<OperandType>,
    buffer: OutBytes,
    length: usize,
) -> c_int {
    call(|| {
        let execution = execution.get()?;
        let argument = host_memory::output(&buffer, length)?;
        execution.set_output(index, desc(ty)?.as_ref(), argument)
    })
}

pub(super) extern "C" fn set_output_from_memory(
    execution: Handle<Execution>,
    index: i32,
    ty: In<OperandType>,
    memory: Handle<Memory>,
    offset: usize,
    length: usize,
) -> c_int {
    call(|| {
        let argument = Argument::Memory { memory: memory.get()?, offset, length };
        execution.get()?.set_output(index, desc(ty)?.as_ref(), argument)
    })
}

fn desc(ty: In<OperandType>) -> Result<Option<OperandTypeDesc>> {
    ty.read_optional().map(OperandType::desc).transpose()
}

pub(super) extern "C" fn set_measure_timing(execution: Handle<Execution>, measure: Bool) -> c_int {
    call(|| execution.get()?.set_measure_timing(measure.get()))
}

pub(super) extern "C" fn set_timeout(execution: Handle<Execution>, nanos: u64) -> c_int {
    call(|| execution.get()?.set_timeout(nanos))
}

pub(super) extern "C" fn set_loop_timeout(execution: Handle<Execution>, nanos: u64) -> c_int {
    call(|| execution.get()?.set_loop_timeout(nanos))
}

pub(super) extern "C" fn set_reusable(execution: Handle<Execution>, reusable: Bool) -> c_int {
    call(|| execution.get()?.set_reusable(reusable.get()))
}

pub(super) extern "C" fn enable_input_and_output_padding(
    execution: Handle<Execution>,
    enable: Bool,
) -> c_int {
    call(|| execution.get()?.enable_input_and_output_padding(enable.get()))
}

pub(super) extern "C" fn compute(execution: Handle<Execution>) -> c_int {
    call(|| execution.get()?.compute())
}

pub(super) extern "C" fn burst_compute(
    execution: Handle<Execution>,
    burst: Handle<Burst>,
) -> c_int {
    call(|| {
        let execution = execution.get()?;
        execution.burst_compute(&burst.get()?)
    })
}

pub(super) extern "C" fn start_compute(
    execution: Handle<Execution>,
    event: Out<Handle<Event>>,
) -> c_int {
    started(event, || execution.get()?.start_compute())
}

pub(super) extern "C" fn start_compute_with_dependencies(
    execution: Handle<Execution>,
    dependencies: In<Handle<Event>>,
    dependency_count: u32,
    duration: u64,
    event: Out<Handle<Event>>,
) -> c_int {
    started(event, || {
        let execution = execution.get()?;
        let dependencies = match dependency_count {
            0 => Vec::new(),
            count => dependencies.read_many(count, MAX_DEPENDENCIES, "dependencies")?,
        };
        let dependencies: Vec<Arc<Event>> =
            dependencies.into_iter().map(Handle::get).collect::<Result<_>>()?;
        execution.start_compute_with_dependencies(&dependencies, duration)
    })
}

fn started(event: Out<Handle<Event>>, start: impl FnOnce() -> Result<Arc<Event>>) -> c_int {
    call(|| {
        let place = event.required("event")?;
        place.set(Handle::NULL);
        place.set(Handle::new(start()?)?);
        Ok(())
    })
}

pub(super) extern "C" fn get_duration(
    execution: Handle<Execution>,
    code: i32,
    nanos: Out<u64>,
) -> c_int {
    code_of(|| {
        let place = nanos.required("duration")?;
        place.set(u64::MAX);
        let (code, nanos) = execution.get()?.duration(code);
        place.set(nanos);
        Ok(code)
    })
    .code()
}

pub(super) extern "C" fn get_output_operand_rank(
    execution: Handle<Execution>,
    index: i32,
    rank: Out<u32>,
) -> c_int {
    answered(rank, || {
        let (code, rank) = execution.get()?.output_operand_rank(index);
        Ok((code, rank.into_iter().collect()))
    })
}

pub(super) extern "C" fn get_output_operand_dimensions(
    execution: Handle<Execution>,
    index: i32,
    dimensions: Out<u32>,
) -> c_int {
    answered(dimensions, || {
        let (code, dimensions) = execution.get()?.output_operand_dimensions(index);
        Ok((code, dimensions.unwrap_or_default()))
    })
}

/// A code other than NO_ERROR may come with an answer: an output that was too small has a shape.
fn answered(place: Out<u32>, ask: impl FnOnce() -> Result<(ResultCode, Vec<u32>)>) -> c_int {
    code_of(|| {
        let place: Place<u32> = place.required("answer")?;
        let (code, answer) = ask()?;
        place.set_many(answer);
        Ok(code)
    })
    .code()
}

pub(super) extern "C" fn add_extension_attribute(
    execution: Handle<Execution>,
    extension: Text,
    code: u16,
    data: Bytes,
    length: usize,
) -> c_int {
    call(|| {
        let extension = extension.string(MAX_EXTENSION_NAME_BYTES, "extension name")?;
        let execution = execution.get()?;
        data.lend(length, "data", |_| execution.add_extension_attribute(&extension, code))
    })
}
