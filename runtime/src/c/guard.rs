//! What every function does around its own work: keeps panics inside and forked children out.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use burst_hal::ResultCode;

use crate::{Error, Result, check_process};

/// Runs a function's work and gives its code. A panic is OP_FAILED; in a forked child it is
/// UNAVAILABLE_DEVICE, and nothing runs: threads, sockets and locks of the parent are not the child's.
pub(super) fn call(work: impl FnOnce() -> Result<()>) -> c_int {
    code_of(|| work().map(|()| ResultCode::NoError)).code()
}

/// The same for work that succeeds with different codes.
pub(super) fn code_of(work: impl FnOnce() -> Result<ResultCode>) -> ResultCode {
    if let Err(error) = check_process() {
        return error.code;
    }
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(code)) => code,
        Ok(Err(error)) => {
            tracing::debug!(%error, "refused");
            error.code
        }
        Err(panic) => {
            // Not dropped: its destructor is anybody's, and may panic in turn.
            std::mem::forget(panic);
            ResultCode::OpFailed
        }
    }
}

/// Runs work that has no result.
pub(super) fn quietly(work: impl FnOnce()) {
    code_of(|| {
        work();
        Ok(ResultCode::NoError)
    });
}

/// An error of this edge: an argument is wrong.
pub(super) fn bad_data(cause: impl Into<String>) -> Error {
    Error::new(ResultCode::BadData, cause.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_stays_inside_and_is_a_failure() {
        let code = call(|| panic!("a defect of ours"));
        assert_eq!(code, ResultCode::OpFailed.code());
        assert_eq!(call(|| Err(bad_data("x"))), ResultCode::BadData.code());
        assert_eq!(call(|| Ok(())), 0);
    }
}
