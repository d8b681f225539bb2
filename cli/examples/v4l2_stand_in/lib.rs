//! A camera for machines without one: preloaded into a process (`LD_PRELOAD`), it answers in the kernel's place
//! where that process opens the device that its script names, and stays out of everything else.
//!
//! `BURST_STAND_IN` names the script (`script.rs` says what may stand in it). The device (`device.rs`) keeps to the rules of
//! the kernel's documentation and holds who uses it to them. Its descriptor is a file in memory with its buffers one
//! behind the other, so that `mmap` is the kernel's own.
//!
//! This file has the functions of the C library that are answered here, and nothing else has `unsafe`.

#![allow(unsafe_code, reason = "functions of the C library, put in its place")]

mod device;
mod script;

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use device::Device;

/// The device, once somebody has opened it.
static DEVICE: Mutex<Option<Device>> = Mutex::new(None);

fn device() -> MutexGuard<'static, Option<Device>> {
    DEVICE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn fail(errno: c_int) -> c_int {
    // SAFETY: the address of this thread's `errno`, which is a `c_int` and there as long as the thread is.
    unsafe { *libc::__errno_location() = errno };
    -1
}

/// The address of the C library's own function with this name.
fn next(name: &CStr) -> *mut c_void {
    // SAFETY: the name ends with a 0, and is only read during the call.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    assert!(!found.is_null(), "no {name:?} in the C library");
    found
}

/// Declares one of the C library's own functions, by name and type.
macro_rules! own {
    ($name:literal as $ty:ty) => {{
        let found = next($name);
        // SAFETY: this is the function that the C library has under this name, and its manual gives it this type;
        // arguments behind the named ones are passed as these are, on the machines that this runs on.
        unsafe { std::mem::transmute::<*mut c_void, $ty>(found) }
    }};
}

type Open = unsafe extern "C" fn(*const c_char, c_int, c_uint) -> c_int;
type OpenAt = unsafe extern "C" fn(c_int, *const c_char, c_int, c_uint) -> c_int;

/// The descriptor of the device, or what opening it fails with, where this is its name.
fn answer(path: *const c_char) -> Option<c_int> {
    if path.is_null() {
        return None;
    }
    // SAFETY: not null; whoever opens something hands over a string that ends with a 0, and keeps it during the call.
    let path = unsafe { CStr::from_ptr(path) };
    let script = script::of_process(path.to_str().ok()?)?;
    let mut device = device();
    Some(match Device::open(script) {
        Ok(opened) => device.insert(opened).fd(),
        Err(errno) => fail(errno),
    })
}

/// # Safety
/// As the C library says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    let own = own!(c"open" as Open);
    // SAFETY: the caller's arguments, as they are.
    answer(path).unwrap_or_else(|| unsafe { own(path, flags, mode) })
}

/// # Safety
/// As the C library says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_uint) -> c_int {
    let own = own!(c"open64" as Open);
    // SAFETY: the caller's arguments, as they are.
    answer(path).unwrap_or_else(|| unsafe { own(path, flags, mode) })
}

/// # Safety
/// As the C library says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mode: c_uint,
) -> c_int {
    let own = own!(c"openat" as OpenAt);
    // SAFETY: the caller's arguments, as they are.
    answer(path).unwrap_or_else(|| unsafe { own(folder, path, flags, mode) })
}

/// # Safety
/// As the C library says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn openat64(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mode: c_uint,
) -> c_int {
    let own = own!(c"openat64" as OpenAt);
    // SAFETY: the caller's arguments, as they are.
    answer(path).unwrap_or_else(|| unsafe { own(folder, path, flags, mode) })
}

/// # Safety
/// As the C library says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    let mut held = device();
    if let Some(device) = held.as_mut()
        && device.fd() == fd
    {
        if argument.is_null() {
            return fail(libc::EFAULT);
        }
        let bytes = usize::try_from((request >> 16) & 0x3FFF).unwrap_or(0);
        // SAFETY: not null; the request's number says how many bytes the caller has there, for the kernel to read and
        // write during the call.
        let payload = unsafe { std::slice::from_raw_parts_mut(argument.cast::<u8>(), bytes) };
        return device.request(request, payload).map_or_else(fail, |()| 0);
    }
    drop(held);
    let own = own!(c"ioctl" as unsafe extern "C" fn(c_int, c_ulong, *mut c_void) -> c_int);
    // SAFETY: the caller's arguments, as they are.
    unsafe { own(fd, request, argument) }
}

/// # Safety
/// As the C library says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poll(all: *mut libc::pollfd, count: c_ulong, timeout_ms: c_int) -> c_int {
    let mut held = device();
    if let Some(device) = held.as_mut()
        && count == 1
        && !all.is_null()
    {
        // SAFETY: not null; the caller has one element there, for the kernel to read and write during the call.
        let one = unsafe { &mut *all };
        if one.fd == device.fd() {
            one.revents = device.poll();
            return c_int::from(one.revents != 0);
        }
    }
    drop(held);
    let own = own!(c"poll" as unsafe extern "C" fn(*mut libc::pollfd, c_ulong, c_int) -> c_int);
    // SAFETY: the caller's arguments, as they are.
    unsafe { own(all, count, timeout_ms) }
}

/// # Safety
/// As the C library says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    // Held while the device itself reads and writes files, which it closes: none of those is its descriptor.
    if let Ok(mut held) = DEVICE.try_lock()
        && held.as_ref().is_some_and(|device| device.fd() == fd)
        && let Some(device) = held.take()
    {
        device.closed(); // its file is the caller's descriptor, closed below
    }
    let own = own!(c"close" as unsafe extern "C" fn(c_int) -> c_int);
    // SAFETY: the caller's argument, as it is.
    unsafe { own(fd) }
}
