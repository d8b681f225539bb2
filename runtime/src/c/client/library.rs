//! A library that was loaded by name, and its functions.

#![allow(unsafe_code, reason = "loads a library and gives its functions their types")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The library's file, and the name by which the system's loader finds it.
const NAME: &str = "libneuralnetworks.so";

/// Why a library cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// The loader of the system cannot load it.
    File {
        /// Which file.
        path: PathBuf,
        /// What the loader says.
        cause: String,
    },
    /// It lacks a function.
    Function {
        /// Which file.
        path: PathBuf,
        /// The name of the function.
        name: &'static str,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::File { path, cause } => write!(f, "{}: {cause}", path.display()),
            LoadError::Function { path, name } => {
                write!(f, "{}: has no function {name}", path.display())
            }
        }
    }
}

impl std::error::Error for LoadError {}

/// `ANeuralNetworksOperandType`.
#[repr(C)]
pub(super) struct RawType {
    pub(super) ty: i32,
    pub(super) dimension_count: u32,
    pub(super) dimensions: *const u32,
    pub(super) scale: f32,
    pub(super) zero_point: i32,
}

/// `ANeuralNetworksSymmPerChannelQuantParams`.
#[repr(C)]
pub(super) struct RawScales {
    pub(super) channel_dim: u32,
    pub(super) scale_count: u32,
    pub(super) scales: *const f32,
}

/// An object of the library, or null.
pub(super) type Raw = *mut c_void;

/// Declares the functions that are used, with their types as the header has them.
macro_rules! functions {
    ($($field:ident = $name:literal : fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions that are used.
        pub(super) struct Functions {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            /// Looks all of them up.
            fn find(library: Raw, path: &Path) -> Result<Self, LoadError> {
                Ok(Functions {
                    $($field: {
                        let at = symbol(library, concat!($name, "\0"));
                        let Some(at) = at else {
                            return Err(LoadError::Function { path: path.into(), name: $name });
                        };
                        // SAFETY: not null; the name is NNAPI's, whose header says this type, and whoever
                        // names a library here says that it is one of NNAPI.
                        unsafe { std::mem::transmute::<Raw, unsafe extern "C" fn($($argument),*) $(-> $result)?>(at) }
                    },)*
                })
            }
        }
    };
}

functions! {
    get_device_count = "ANeuralNetworks_getDeviceCount": fn(*mut u32) -> c_int;
    get_device = "ANeuralNetworks_getDevice": fn(u32, *mut Raw) -> c_int;
    device_get_name = "ANeuralNetworksDevice_getName": fn(Raw, *mut *const c_char) -> c_int;
    device_get_version = "ANeuralNetworksDevice_getVersion": fn(Raw, *mut *const c_char) -> c_int;
    device_get_type = "ANeuralNetworksDevice_getType": fn(Raw, *mut i32) -> c_int;

    model_create = "ANeuralNetworksModel_create": fn(*mut Raw) -> c_int;
    model_free = "ANeuralNetworksModel_free": fn(Raw);
    model_add_operand = "ANeuralNetworksModel_addOperand": fn(Raw, *const RawType) -> c_int;
    model_set_value = "ANeuralNetworksModel_setOperandValue":
        fn(Raw, i32, *const c_void, usize) -> c_int;
    model_set_value_from_memory = "ANeuralNetworksModel_setOperandValueFromMemory":
        fn(Raw, i32, Raw, usize, usize) -> c_int;
    model_set_value_from_model = "ANeuralNetworksModel_setOperandValueFromModel":
        fn(Raw, i32, Raw) -> c_int;
    model_set_scales = "ANeuralNetworksModel_setOperandSymmPerChannelQuantParams":
        fn(Raw, i32, *const RawScales) -> c_int;
    model_add_operation = "ANeuralNetworksModel_addOperation":
        fn(Raw, i32, u32, *const u32, u32, *const u32) -> c_int;
    model_identify = "ANeuralNetworksModel_identifyInputsAndOutputs":
        fn(Raw, u32, *const u32, u32, *const u32) -> c_int;
    model_relax = "ANeuralNetworksModel_relaxComputationFloat32toFloat16": fn(Raw, bool) -> c_int;
    model_finish = "ANeuralNetworksModel_finish": fn(Raw) -> c_int;
    model_supported = "ANeuralNetworksModel_getSupportedOperationsForDevices":
        fn(Raw, *const Raw, u32, *mut u8) -> c_int;

    compilation_create = "ANeuralNetworksCompilation_create": fn(Raw, *mut Raw) -> c_int;
    compilation_create_for = "ANeuralNetworksCompilation_createForDevices":
        fn(Raw, *const Raw, u32, *mut Raw) -> c_int;
    compilation_free = "ANeuralNetworksCompilation_free": fn(Raw);
    compilation_set_preference = "ANeuralNetworksCompilation_setPreference": fn(Raw, i32) -> c_int;
    compilation_set_priority = "ANeuralNetworksCompilation_setPriority": fn(Raw, c_int) -> c_int;
    compilation_set_timeout = "ANeuralNetworksCompilation_setTimeout": fn(Raw, u64) -> c_int;
    compilation_finish = "ANeuralNetworksCompilation_finish": fn(Raw) -> c_int;

    memory_from_fd = "ANeuralNetworksMemory_createFromFd":
        fn(usize, c_int, c_int, usize, *mut Raw) -> c_int;
    memory_from_desc = "ANeuralNetworksMemory_createFromDesc": fn(Raw, *mut Raw) -> c_int;
    memory_copy = "ANeuralNetworksMemory_copy": fn(Raw, Raw) -> c_int;
    memory_free = "ANeuralNetworksMemory_free": fn(Raw);
    desc_create = "ANeuralNetworksMemoryDesc_create": fn(*mut Raw) -> c_int;
    desc_free = "ANeuralNetworksMemoryDesc_free": fn(Raw);
    desc_add_input_role = "ANeuralNetworksMemoryDesc_addInputRole": fn(Raw, Raw, u32, f32) -> c_int;
    desc_add_output_role = "ANeuralNetworksMemoryDesc_addOutputRole":
        fn(Raw, Raw, u32, f32) -> c_int;
    desc_set_dimensions = "ANeuralNetworksMemoryDesc_setDimensions":
        fn(Raw, u32, *const u32) -> c_int;
    desc_finish = "ANeuralNetworksMemoryDesc_finish": fn(Raw) -> c_int;

    execution_create = "ANeuralNetworksExecution_create": fn(Raw, *mut Raw) -> c_int;
    execution_free = "ANeuralNetworksExecution_free": fn(Raw);
    execution_set_input = "ANeuralNetworksExecution_setInput":
        fn(Raw, i32, *const RawType, *const c_void, usize) -> c_int;
    execution_set_input_from_memory = "ANeuralNetworksExecution_setInputFromMemory":
        fn(Raw, i32, *const RawType, Raw, usize, usize) -> c_int;
    execution_set_output = "ANeuralNetworksExecution_setOutput":
        fn(Raw, i32, *const RawType, *mut c_void, usize) -> c_int;
    execution_set_output_from_memory = "ANeuralNetworksExecution_setOutputFromMemory":
        fn(Raw, i32, *const RawType, Raw, usize, usize) -> c_int;
    execution_set_measure_timing = "ANeuralNetworksExecution_setMeasureTiming":
        fn(Raw, bool) -> c_int;
    execution_set_timeout = "ANeuralNetworksExecution_setTimeout": fn(Raw, u64) -> c_int;
    execution_set_loop_timeout = "ANeuralNetworksExecution_setLoopTimeout": fn(Raw, u64) -> c_int;
    execution_compute = "ANeuralNetworksExecution_compute": fn(Raw) -> c_int;
    execution_start = "ANeuralNetworksExecution_startCompute": fn(Raw, *mut Raw) -> c_int;
    execution_burst = "ANeuralNetworksExecution_burstCompute": fn(Raw, Raw) -> c_int;
    execution_start_fenced = "ANeuralNetworksExecution_startComputeWithDependencies":
        fn(Raw, *const Raw, u32, u64, *mut Raw) -> c_int;
    execution_duration = "ANeuralNetworksExecution_getDuration": fn(Raw, i32, *mut u64) -> c_int;
    execution_rank = "ANeuralNetworksExecution_getOutputOperandRank":
        fn(Raw, i32, *mut u32) -> c_int;
    execution_dimensions = "ANeuralNetworksExecution_getOutputOperandDimensions":
        fn(Raw, i32, *mut u32) -> c_int;

    burst_create = "ANeuralNetworksBurst_create": fn(Raw, *mut Raw) -> c_int;
    burst_free = "ANeuralNetworksBurst_free": fn(Raw);
    event_wait = "ANeuralNetworksEvent_wait": fn(Raw) -> c_int;
    event_free = "ANeuralNetworksEvent_free": fn(Raw);
    event_from_fence = "ANeuralNetworksEvent_createFromSyncFenceFd": fn(c_int, *mut Raw) -> c_int;
    event_fence = "ANeuralNetworksEvent_getSyncFenceFd": fn(Raw, *mut c_int) -> c_int;
}

/// A loaded library. It stays loaded.
pub struct Library {
    pub(super) functions: Functions,
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library").finish_non_exhaustive()
    }
}

impl Library {
    /// The library beside this program, or among what Cargo built for it; otherwise its name, for the system's
    /// loader to find.
    #[must_use]
    pub fn beside_program() -> PathBuf {
        let own = std::env::current_exe().unwrap_or_default();
        let folder = own.parent().unwrap_or(Path::new("."));
        let files = [folder.join(NAME), folder.join("deps").join(NAME)];
        files.into_iter().find(|file| file.is_file()).unwrap_or_else(|| NAME.into())
    }

    /// Loads a library of NNAPI, with level 30 at least: a file, or a name that the system's loader looks for.
    ///
    /// # Errors
    /// It cannot be loaded, or lacks a function.
    pub fn load(path: &Path) -> Result<Arc<Self>, LoadError> {
        let refused = |cause: String| LoadError::File { path: path.into(), cause };
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| refused("the name has a zero in it".to_owned()))?;
        // SAFETY: the name ends with a zero. The constructors of a library of NNAPI are whatever their
        // authors made of them; ours has none.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return Err(refused(loader_error()));
        }
        Ok(Arc::new(Library { functions: Functions::find(library, path)? }))
    }
}

/// The address behind a name that ends with a zero.
fn symbol(library: Raw, name: &'static str) -> Option<Raw> {
    // SAFETY: the library is loaded and stays so, the name ends with a zero (`functions!` puts it there).
    let at = unsafe { libc::dlsym(library, name.as_ptr().cast()) };
    (!at.is_null()).then_some(at)
}

/// What the loader says of its last failure on this thread.
fn loader_error() -> String {
    // SAFETY: takes nothing.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the loader says nothing".to_owned();
    }
    // SAFETY: not null; a text of the loader's that ends with a zero and stays until its next call on this
    // thread.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_library_is_named_with_what_the_loader_says() {
        let error = Library::load(Path::new("/no/such/library.so")).unwrap_err();
        assert!(error.to_string().starts_with("/no/such/library.so: "), "{error}");
    }

    #[test]
    fn a_library_of_something_else_is_refused_with_the_function_that_it_lacks() {
        let error = Library::load(Path::new("libc.so.6")).unwrap_err();
        assert!(matches!(error, LoadError::Function { .. }), "{error}");
        assert!(error.to_string().contains("ANeuralNetworks_getDeviceCount"), "{error}");
    }
}
