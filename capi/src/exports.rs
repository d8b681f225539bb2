//! The functions of `burst.h`. The rules of this file and of those in its folder, which are the only ones with `unsafe`:
//!
//! 1. A pointer that is followed was asked for null, and the header says what it has to be; it is followed during the
//!    call alone.
//! 2. Handles are numbers and never followed.
//! 3. No panic leaves a function.
#![allow(unsafe_code, reason = "the edge to C: names for the linker, pointers of callers")]

use std::ffi::{CStr, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::ptr;
use std::time::Duration;

use crate::client::{self, Model};
use crate::error::{Error, Status, remember, with_last};

mod tasks;

/// Does a function's work, keeps panics inside and words for `burst_last_error`.
fn guarded<T>(otherwise: T, work: impl FnOnce() -> Result<T, Error>) -> (Status, T) {
    let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        // Not dropped: its destructor is anybody's, and may panic in turn.
        std::mem::forget(panic);
        Err(Error::new(Status::Defect, "a defect of the library"))
    });
    match done {
        Ok(value) => (Status::Ok, value),
        Err(error) => {
            remember(&error);
            (error.status, otherwise)
        }
    }
}

fn status_of(work: impl FnOnce() -> Result<(), Error>) -> Status {
    guarded((), work).0
}

/// The text at `text`; `None` for null.
///
/// # Safety
/// It is null, or ends with a zero, and does not change during the call.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: not null, and the caller's promise is this function's.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

/// The path at `path`; `None` for null.
///
/// # Safety
/// As [`text`].
unsafe fn path(path: *const c_char) -> Option<PathBuf> {
    // SAFETY: the caller's promise is this function's.
    let bytes = unsafe { text(path) }?.to_bytes();
    Some(PathBuf::from(OsStr::from_bytes(bytes)))
}

/// Writes where a caller wants a value, if it does.
///
/// # Safety
/// It is null, or may be written as a `T`.
unsafe fn give<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: not null, and the caller's promise is this function's.
        unsafe { to.write(value) };
    }
}

/// # Safety
/// `socket` is null or a text; `service` is null or may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn burst_connect(
    socket: *const c_char,
    service: *mut *mut c_void,
) -> Status {
    status_of(|| {
        if service.is_null() {
            return Err(Error::argument("burst_connect: no place for the service"));
        }
        // SAFETY: a text or null, as the header asks.
        let socket = unsafe { path(socket) };
        let number = client::connect(socket)?;
        // SAFETY: not null, and to be written, as the header asks.
        unsafe { give(service, ptr::without_provenance_mut(number)) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn burst_service_free(service: *mut c_void) {
    status_of(|| {
        client::free_service(service.addr());
        Ok(())
    });
}

/// # Safety
/// `device` is null or a text, `file` a text, and `model` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn burst_load(
    service: *mut c_void,
    device: *const c_char,
    file: *const c_char,
    model: *mut *mut c_void,
) -> Status {
    status_of(|| {
        if model.is_null() {
            return Err(Error::argument("burst_load: no place for the model"));
        }
        // SAFETY: a text or null, as the header asks.
        let device = unsafe { text(device) }.unwrap_or(c"cpu").to_string_lossy();
        // SAFETY: a text or null, as the header asks.
        let file = unsafe { path(file) };
        let file = file.ok_or_else(|| Error::argument("burst_load: no file"))?;
        let number = client::load(service.addr(), &device, &file)?;
        // SAFETY: not null, and to be written, as the header asks.
        unsafe { give(model, ptr::without_provenance_mut(number)) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn burst_model_free(model: *mut c_void) {
    status_of(|| {
        Model::free(model.addr());
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn burst_input_count(model: *const c_void) -> usize {
    guarded(0, || Ok(Model::find(model.addr())?.inputs())).1
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn burst_output_count(model: *const c_void) -> usize {
    guarded(0, || Ok(Model::find(model.addr())?.outputs())).1
}

/// # Safety
/// `bytes` is null or may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn burst_input(
    model: *mut c_void,
    index: usize,
    bytes: *mut usize,
) -> *mut c_void {
    let none = (ptr::null_mut(), 0);
    let (at, length) = guarded(none, || Model::find(model.addr())?.input(index)).1;
    // SAFETY: null or to be written, as the header asks.
    unsafe { give(bytes, length) };
    at.cast()
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn burst_run(model: *mut c_void, timeout_ns: u64) -> Status {
    let timeout = (timeout_ns > 0).then_some(Duration::from_nanos(timeout_ns));
    status_of(|| Model::find(model.addr())?.run(timeout))
}

/// # Safety
/// `bytes` is null or may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn burst_output(
    model: *mut c_void,
    index: usize,
    bytes: *mut usize,
) -> *const c_void {
    let none = (ptr::null(), 0);
    let (at, length) = guarded(none, || Model::find(model.addr())?.output(index)).1;
    // SAFETY: null or to be written, as the header asks.
    unsafe { give(bytes, length) };
    at.cast()
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn burst_driver_pid(model: *const c_void) -> u32 {
    guarded(0, || Ok(Model::find(model.addr())?.driver_pid())).1
}

/// The pointer is good until the next call of this thread, which is what the header says.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn burst_last_error() -> *const c_char {
    with_last(CStr::as_ptr)
}
