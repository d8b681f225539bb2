//! The two functions that the runtime looks up by name, and the delegate that they make and end.

use std::collections::HashMap;
use std::ffi::{c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::Arc;

use super::guard;
use super::host::Host;
use super::kernel;
use super::layout::{Context, Delegate};
use super::raw;
use super::state::{State, state_of};
use crate::explain::Explain;
use crate::options::{OPTIONS_MAX, Options, OptionsError};
use crate::select::{Selection, select};
use crate::target::{Target, TargetError};

/// Why there is no delegate.
#[derive(Debug, thiserror::Error)]
enum CreateError {
    #[error(transparent)]
    Options(#[from] OptionsError),
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error("option explain: {path}: {error}")]
    Explain { path: String, error: std::io::Error },
    #[error("an internal fault, reported where this program reports its panics")]
    Panicked,
}

/// Makes a delegate with these options; null where they make no sense or there is no device, with the reason
/// told to `report_error`.
///
/// # Safety
/// `keys` and `values` point to `count` texts each, and `report_error` is null or takes a text.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn tflite_plugin_create_delegate(
    keys: *const *const c_char,
    values: *const *const c_char,
    count: usize,
    report_error: Option<unsafe extern "C" fn(*const c_char)>,
) -> *mut Delegate {
    let work = || {
        // SAFETY: the caller's promise.
        let pairs = unsafe { pairs(keys, values, count) }?;
        create(&pairs)
    };
    match catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(CreateError::Panicked)) {
        Ok(delegate) => Box::into_raw(delegate),
        Err(error) => {
            if let Some(report_error) = report_error {
                let text = guard::c_text(&format_args!("burst: {error}"));
                // SAFETY: the caller's promise; the text ends with a zero and outlives the call.
                unsafe { report_error(text.as_ptr()) };
            }
            null_mut()
        }
    }
}

/// Ends a delegate that [`tflite_plugin_create_delegate`] made. Its kernels are freed by the runtime, before or
/// after.
///
/// # Safety
/// `delegate` is null, or a delegate that was made so and is ended for the first time.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn tflite_plugin_destroy_delegate(delegate: *mut Delegate) {
    if delegate.is_null() {
        return;
    }
    // SAFETY: the caller's promise: `create` has boxed it.
    let delegate = unsafe { Box::from_raw(delegate) };
    // SAFETY: `create` has boxed it, too, and it ends with its delegate.
    let state = unsafe { Box::from_raw(delegate.data.cast::<State>()) };
    let _ = guard::catch(|| {
        drop(state);
        Ok(())
    });
}

/// Keys with their values.
///
/// # Safety
/// `keys` and `values` point to `count` texts each.
unsafe fn pairs(
    keys: *const *const c_char,
    values: *const *const c_char,
    count: usize,
) -> Result<Vec<(String, String)>, OptionsError> {
    if count > OPTIONS_MAX {
        return Err(OptionsError::TooMany { count });
    }
    let pair = |index| {
        let text = |list: *const *const c_char| {
            if list.is_null() {
                return None;
            }
            // SAFETY: the caller's promise: there are `count` of them.
            let text = unsafe { raw::element(list, index) };
            // SAFETY: null, or a text.
            unsafe { raw::text(text) }
        };
        // A text that is not UTF-8 has the mark of what is missing in it.
        let is_text = |text: &String| !text.contains(char::REPLACEMENT_CHARACTER);
        let (key, value) = (text(keys).filter(is_text), text(values).filter(is_text));
        key.zip(value).ok_or(OptionsError::NoText { index })
    };
    (0..count).map(pair).collect()
}

fn create(pairs: &[(String, String)]) -> Result<Box<Delegate>, CreateError> {
    let options = Options::parse(pairs)?;
    let explain = Explain::to(options.explain.as_deref()).map_err(|error| {
        let path = options.explain.clone().unwrap_or_default().display().to_string();
        CreateError::Explain { path, error }
    })?;
    let target = Arc::new(Target::of(&options)?);
    let state = Box::new(State::new(target, explain));
    Ok(Box::new(Delegate {
        data: Box::into_raw(state).cast(),
        prepare: Some(prepare),
        copy_from_buffer_handle: None,
        copy_to_buffer_handle: None,
        free_buffer_handle: None,
        flags: 0,
        opaque_delegate_builder: null_mut(),
        later: [0; 8],
    }))
}

/// Takes over what it can of a graph. The runtime calls it for each graph, and again after a change of shapes.
unsafe extern "C" fn prepare(context: *mut Context, delegate: *mut Delegate) -> c_int {
    let work = || {
        // SAFETY: the context with which the runtime is calling.
        let host = unsafe { Host::new(context) }?;
        host.check_layout()?;
        // SAFETY: the delegate for which the runtime is calling: ours.
        let state = unsafe { state_of(delegate) }?;
        let selection = {
            let graph = host.graph()?;
            select(&graph, state.target(), &|nodes| host.preview(nodes), state.explain())?
        };
        let Selection { nodes, partitions } = selection;
        if nodes.is_empty() {
            return Ok(());
        }
        state.hand_over(partitions);
        // SAFETY: the delegate for which the runtime is calling.
        let replaced = unsafe { host.replace(kernel::registration(), &nodes, delegate) };
        state.hand_over(HashMap::new());
        replaced
    };
    // SAFETY: the context with which the runtime is calling.
    unsafe { guard::status(context, work) }
}
