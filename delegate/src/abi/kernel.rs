//! The kernel that runs a partition, as the runtime calls it.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError};

use super::guard;
use super::host::{Host, cut_of};
use super::layout::{Context, DelegateParams, KERNEL_VERSION, Node, Registration};
use super::state::state_of;
use crate::compiled::{Compiled, Port};
use crate::error::DelegateError;

/// A partition, for the executions of its interpreter: one after the other, whatever the application does.
type Kernel = Mutex<Compiled>;

/// The kernel's functions.
pub(super) fn registration() -> Registration {
    Registration {
        init: Some(init),
        free: Some(free),
        prepare: Some(prepare),
        invoke: Some(invoke),
        profiling_string: None,
        builtin_code: 0, // the runtime sets it
        custom_name: c"BurstDelegate".as_ptr(),
        version: KERNEL_VERSION,
        later: [0; 11],
    }
}

/// Makes the kernel of a partition. `buffer` is its [`DelegateParams`].
unsafe extern "C" fn init(
    context: *mut Context,
    buffer: *const c_char,
    _length: usize,
) -> *mut c_void {
    let made = guard::catch(|| {
        if buffer.is_null() {
            return Err(DelegateError::Absent { what: "partition" });
        }
        // SAFETY: the runtime initialises kernels of a delegate with the partition.
        let params = unsafe { buffer.cast::<DelegateParams>().read_unaligned() };
        let cut = cut_of(&params);
        // SAFETY: the runtime names the delegate that asked for the kernel: ours.
        let state = unsafe { state_of(params.delegate) }?;
        let compiled = state.take(&cut.nodes)?;
        Ok(Box::new(Kernel::new(compiled)))
    });
    match made {
        Ok(kernel) => Box::into_raw(kernel).cast(),
        Err(error) => {
            // SAFETY: the context with which the runtime is calling.
            unsafe { guard::report(context, &error) };
            null_mut()
        }
    }
}

unsafe extern "C" fn free(_context: *mut Context, kernel: *mut c_void) {
    if kernel.is_null() {
        return;
    }
    // SAFETY: what `init` returned, which the runtime frees once.
    let kernel = unsafe { Box::from_raw(kernel.cast::<Kernel>()) };
    // Dropping may talk to a service; whatever it panics of, the runtime goes on.
    let _ = guard::catch(|| {
        drop(kernel);
        Ok(())
    });
}

/// Looks whether the tensors are those for which the partition was prepared.
unsafe extern "C" fn prepare(context: *mut Context, node: *mut Node) -> c_int {
    let work = || {
        // SAFETY: the context with which the runtime is calling.
        let host = unsafe { Host::new(context) }?;
        // SAFETY: a node of ours, by the runtime's promise.
        let kernel = unsafe { kernel_of(node) }?;
        let compiled = kernel.lock().unwrap_or_else(PoisonError::into_inner);
        let ports = compiled.ports();
        ports.inputs.iter().chain(&ports.outputs).try_for_each(|port| {
            let found = host.tensor(port.tensor)?.bytes;
            match found == port.bytes {
                true => Ok(()),
                false => Err(wrong_size(port, found)),
            }
        })
    };
    // SAFETY: the context with which the runtime is calling.
    unsafe { guard::status(context, work) }
}

/// Copies inputs in, runs, copies outputs out.
unsafe extern "C" fn invoke(context: *mut Context, node: *mut Node) -> c_int {
    let work = || {
        // SAFETY: the context with which the runtime is calling.
        let host = unsafe { Host::new(context) }?;
        // SAFETY: a node of ours, by the runtime's promise.
        let kernel = unsafe { kernel_of(node) }?;
        let mut compiled = kernel.lock().unwrap_or_else(PoisonError::into_inner);
        let ports = Arc::clone(compiled.ports());
        for port in &ports.inputs {
            let data = memory(&host, port)?;
            // SAFETY: `memory`: as many bytes of the runtime, which nobody writes during this call.
            let bytes = unsafe { std::slice::from_raw_parts(data, port.bytes) };
            compiled.write(port, bytes)?;
        }
        compiled.run()?;
        for port in &ports.outputs {
            let data = memory(&host, port)?;
            // SAFETY: `memory`: as many bytes of the runtime, which nobody else uses during this call.
            let bytes = unsafe { std::slice::from_raw_parts_mut(data, port.bytes) };
            compiled.read(port, bytes)?;
        }
        Ok(())
    };
    // SAFETY: the context with which the runtime is calling.
    unsafe { guard::status(context, work) }
}

/// The kernel of a node.
///
/// # Safety
/// `node` is null, or a node whose kernel `init` has made, and which is not freed during `'k`.
unsafe fn kernel_of<'k>(node: *const Node) -> Result<&'k Kernel, DelegateError> {
    if node.is_null() {
        return Err(DelegateError::Absent { what: "node" });
    }
    // SAFETY: not null, so a node.
    let node = unsafe { node.read() };
    // SAFETY: null where `init` failed, else what it returned, which nobody has freed.
    let kernel = unsafe { node.user_data.cast::<Kernel>().as_ref() };
    kernel.ok_or(DelegateError::Absent { what: "kernel of the node" })
}

/// Where a tensor's bytes are now: the runtime may have moved them since it was prepared.
fn memory(host: &Host, port: &Port) -> Result<*mut u8, DelegateError> {
    let tensor = host.tensor(port.tensor)?;
    if tensor.bytes != port.bytes {
        return Err(wrong_size(port, tensor.bytes));
    }
    match tensor.data.is_null() {
        true => Err(DelegateError::NoMemory { tensor: port.tensor }),
        false => Ok(tensor.data.cast()),
    }
}

fn wrong_size(port: &Port, found: usize) -> DelegateError {
    DelegateError::Size { tensor: port.tensor, found, wanted: port.bytes }
}
