//! Errors as the runtime takes them. No panic leaves.

use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::layout::{Context, ERROR, OK};
use crate::error::DelegateError;

/// The result of `work`, or the error that its panic is.
pub(super) fn catch<T>(
    work: impl FnOnce() -> Result<T, DelegateError>,
) -> Result<T, DelegateError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(DelegateError::Panicked))
}

/// The status that `work` comes to, with its error reported.
///
/// # Safety
/// `context` is null, or a context of the runtime that is calling.
pub(super) unsafe fn status(
    context: *mut Context,
    work: impl FnOnce() -> Result<(), DelegateError>,
) -> c_int {
    match catch(work) {
        Ok(()) => OK,
        Err(error) => {
            // SAFETY: the caller's promise.
            unsafe { report(context, &error) };
            ERROR
        }
    }
}

/// Tells the runtime of an error.
///
/// # Safety
/// `context` is null, or a context of the runtime that is calling.
pub(super) unsafe fn report(context: *mut Context, error: &DelegateError) {
    if context.is_null() {
        return;
    }
    // SAFETY: not null, so a context, by the caller's promise.
    let fields = unsafe { context.read() };
    if let Some(report_error) = fields.report_error {
        let text = c_text(error);
        let format: *const c_char = c"burst: %s".as_ptr();
        // SAFETY: a format with one text, and one text, both of which end with a zero and outlive the call.
        unsafe { report_error(context, format, text.as_ptr()) };
    }
}

/// A message as C takes it. A name may have a zero in it, which would end it.
pub(super) fn c_text(message: &dyn std::fmt::Display) -> CString {
    CString::new(message.to_string().replace('\0', "\u{fffd}")).unwrap_or_default()
}
