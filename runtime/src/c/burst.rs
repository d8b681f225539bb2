//! Bursts.

use std::ffi::c_int;

use super::arguments::Out;
use super::guard::{call, quietly};
use super::handles::Handle;
use crate::{Burst, Compilation};

pub(super) extern "C" fn create(
    compilation: Handle<Compilation>,
    burst: Out<Handle<Burst>>,
) -> c_int {
    call(|| {
        let place = burst.required("burst")?;
        place.set(Handle::NULL);
        place.set(Handle::new(Burst::new(&compilation.get()?)?)?);
        Ok(())
    })
}

pub(super) extern "C" fn free(burst: Handle<Burst>) {
    quietly(|| drop(burst.free()));
}
