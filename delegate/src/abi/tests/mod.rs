//! The delegate as a runtime meets it: through its two exported functions and its kernels.
#![allow(
    clippy::unwrap_used,
    clippy::cast_sign_loss,
    clippy::used_underscore_binding,
    clippy::multiple_unsafe_ops_per_block,
    reason = "tests stop at what they did not expect"
)]

mod creating;
mod refusing;
mod running;
mod runtime;
mod services;

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};

use super::layout::Delegate;
use super::plugin::{tflite_plugin_create_delegate, tflite_plugin_destroy_delegate};

thread_local! {
    /// What the function for errors was told: it has no argument for the caller.
    static TOLD: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

unsafe extern "C" fn tell(text: *const c_char) {
    // SAFETY: a text of the delegate.
    let text = unsafe { CStr::from_ptr(text) };
    TOLD.with(|told| told.borrow_mut().push(text.to_str().unwrap().to_owned()));
}

/// A delegate, which ends with this value.
struct Own(*mut Delegate);

impl Own {
    /// A delegate with these options.
    fn new(options: &[(&str, &str)]) -> Self {
        Own::create(options).unwrap_or_else(|told| panic!("{told:?}"))
    }

    /// A delegate with these options, or what the runtime was told in its place.
    fn create(options: &[(&str, &str)]) -> Result<Self, Vec<String>> {
        let texts = |text: fn(&(&str, &str)) -> CString| options.iter().map(text).collect();
        let keys: Vec<CString> = texts(|(key, _)| CString::new(*key).unwrap());
        let values: Vec<CString> = texts(|(_, value)| CString::new(*value).unwrap());
        let pointers = |list: &[CString]| list.iter().map(|text| text.as_ptr()).collect();
        let (keys, values): (Vec<_>, Vec<_>) = (pointers(&keys), pointers(&values));
        // SAFETY: as many texts as there are options, and a function that takes one.
        let delegate = unsafe {
            tflite_plugin_create_delegate(keys.as_ptr(), values.as_ptr(), options.len(), Some(tell))
        };
        let told = TOLD.take();
        match delegate.is_null() {
            true => Err(told),
            false => {
                assert!(told.is_empty(), "{told:?}");
                Ok(Own(delegate))
            }
        }
    }

    /// The CPU driver of this process, with one thread.
    fn cpu() -> Self {
        Own::new(&[("threads", "1")])
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // SAFETY: made by the other function, and ended once.
        unsafe { tflite_plugin_destroy_delegate(self.0) };
    }
}
