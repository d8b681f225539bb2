//! Structures of TFLite on 64-bit machines, as far as an external delegate needs them.
//!
//! Source: the layouts that runtimes from TensorFlow 2.4 to LiteRT 2.3 have in common. Integers stand where C has
//! `bool` or an `enum`: every bit pattern is one.

use std::ffi::{c_char, c_int, c_void};

/// A status: all is well.
pub(super) const OK: c_int = 0;
/// A status: something failed.
pub(super) const ERROR: c_int = 1;

/// Values of [`Tensor::allocation_type`].
pub(super) mod allocation {
    use std::ffi::c_int;

    /// A constant of the model.
    pub(in crate::abi) const MODEL: c_int = 1;
    /// In the arena, while it is needed.
    pub(in crate::abi) const ARENA: c_int = 2;
    /// In the arena for good.
    pub(in crate::abi) const ARENA_PERSISTENT: c_int = 3;
    /// Allocated anew for each execution.
    pub(in crate::abi) const DYNAMIC: c_int = 4;
    /// Computed when the graph was prepared.
    pub(in crate::abi) const PREPARED: c_int = 5;
    /// In memory of the application.
    pub(in crate::abi) const CUSTOM: c_int = 6;
}

/// The kind of [`Quantization`] with scales and zero points.
pub(super) const AFFINE: c_int = 1;
/// The version of the operator in our own registration.
pub(super) const KERNEL_VERSION: c_int = 1;

/// A list of integers: how many, then those.
pub(super) type IntArray = c_int;
/// A list of floats: how many, then those.
pub(super) type FloatArray = c_int;

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct QuantParams {
    pub(super) scale: f32,
    pub(super) zero_point: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Quantization {
    pub(super) kind: c_int,
    pub(super) params: *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct AffineQuantization {
    pub(super) scale: *const FloatArray,
    pub(super) zero_point: *const IntArray,
    pub(super) quantized_dimension: i32,
}

/// A tensor. An array of them hangs on the context, so that its size matters.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Tensor {
    pub(super) type_code: c_int,
    pub(super) data: *mut c_void,
    pub(super) dims: *const IntArray,
    pub(super) params: QuantParams,
    pub(super) allocation_type: c_int,
    pub(super) bytes: usize,
    pub(super) allocation: *const c_void,
    pub(super) name: *const c_char,
    pub(super) delegate: *mut Delegate,
    pub(super) buffer_handle: c_int,
    pub(super) data_is_stale: u8,
    pub(super) is_variable: u8,
    pub(super) quantization: Quantization,
    pub(super) sparsity: *mut c_void,
    pub(super) dims_signature: *const IntArray,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Node {
    pub(super) inputs: *const IntArray,
    pub(super) outputs: *const IntArray,
    pub(super) intermediates: *const IntArray,
    pub(super) temporaries: *const IntArray,
    /// Of a kernel: what its `init` returned.
    pub(super) user_data: *mut c_void,
    pub(super) builtin_data: *mut c_void,
    pub(super) custom_initial_data: *const c_void,
    pub(super) custom_initial_data_size: c_int,
    pub(super) delegate: *mut Delegate,
}

pub(super) type Init = unsafe extern "C" fn(*mut Context, *const c_char, usize) -> *mut c_void;
pub(super) type Free = unsafe extern "C" fn(*mut Context, *mut c_void);
pub(super) type OfNode = unsafe extern "C" fn(*mut Context, *mut Node) -> c_int;

/// An operator's functions. Passed by value, so that a runtime reads as many bytes as its own has.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Registration {
    pub(super) init: Option<Init>,
    pub(super) free: Option<Free>,
    pub(super) prepare: Option<OfNode>,
    pub(super) invoke: Option<OfNode>,
    pub(super) profiling_string: Option<unsafe extern "C" fn()>,
    pub(super) builtin_code: i32,
    pub(super) custom_name: *const c_char,
    pub(super) version: c_int,
    /// Later fields, of which 0 means "none".
    pub(super) later: [u64; 11],
}

/// What a kernel of a delegate is initialised with.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct DelegateParams {
    pub(super) delegate: *mut Delegate,
    pub(super) nodes_to_replace: *const IntArray,
    pub(super) input_tensors: *const IntArray,
    pub(super) output_tensors: *const IntArray,
}

pub(super) type ReportError = unsafe extern "C" fn(*mut Context, *const c_char, ...);

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Context {
    pub(super) tensors_size: usize,
    pub(super) get_execution_plan:
        Option<unsafe extern "C" fn(*mut Context, *mut *const IntArray) -> c_int>,
    pub(super) tensors: *mut Tensor,
    pub(super) private: *mut c_void,
    pub(super) resize_tensor: Option<unsafe extern "C" fn()>,
    pub(super) report_error: Option<ReportError>,
    pub(super) add_tensors: Option<unsafe extern "C" fn()>,
    pub(super) get_node_and_registration: Option<
        unsafe extern "C" fn(*mut Context, c_int, *mut *mut Node, *mut *mut Registration) -> c_int,
    >,
    pub(super) replace_node_subsets: Option<
        unsafe extern "C" fn(*mut Context, Registration, *const IntArray, *mut Delegate) -> c_int,
    >,
    pub(super) recommended_num_threads: c_int,
    pub(super) get_external_context: Option<unsafe extern "C" fn()>,
    pub(super) set_external_context: Option<unsafe extern "C" fn()>,
    pub(super) allow_fp32_relax_to_fp16: u8,
    pub(super) profiler: *mut c_void,
    pub(super) allocate_persistent_buffer: Option<unsafe extern "C" fn()>,
    pub(super) allocate_buffer_for_eval: Option<unsafe extern "C" fn()>,
    pub(super) request_scratch_buffer: Option<unsafe extern "C" fn()>,
    pub(super) get_scratch_buffer: Option<unsafe extern "C" fn()>,
    pub(super) resize_tensor_explicit: Option<unsafe extern "C" fn()>,
    pub(super) preview_delegate_partitioning: Option<
        unsafe extern "C" fn(
            *mut Context,
            *const IntArray,
            *mut *mut DelegateParams,
            *mut c_int,
        ) -> c_int,
    >,
    pub(super) get_tensor: Option<unsafe extern "C" fn(*const Context, c_int) -> *mut Tensor>,
}

/// A delegate.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Delegate {
    pub(super) data: *mut c_void,
    pub(super) prepare: Option<unsafe extern "C" fn(*mut Context, *mut Delegate) -> c_int>,
    pub(super) copy_from_buffer_handle: Option<unsafe extern "C" fn()>,
    pub(super) copy_to_buffer_handle: Option<unsafe extern "C" fn()>,
    pub(super) free_buffer_handle: Option<unsafe extern "C" fn()>,
    /// None of them: the runtime then tells every shape before it asks, and asks again when an input has
    /// another one.
    pub(super) flags: i64,
    /// Newer runtimes look here for a delegate of another kind: null is none.
    pub(super) opaque_delegate_builder: *mut c_void,
    /// Later fields, of which 0 means "none".
    pub(super) later: [u64; 8],
}

const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<Tensor>() == 112);
    assert!(offset_of!(Tensor, allocation_type) == 32);
    assert!(offset_of!(Tensor, is_variable) == 77);
    assert!(offset_of!(Tensor, quantization) == 80);
    assert!(size_of::<Node>() == 72);
    assert!(offset_of!(Node, builtin_data) == 40);
    assert!(offset_of!(Registration, builtin_code) == 40);
    assert!(offset_of!(Registration, version) == 56);
    assert!(offset_of!(Registration, later) == 64);
    assert!(offset_of!(Context, report_error) == 40);
    assert!(offset_of!(Context, replace_node_subsets) == 64);
    assert!(offset_of!(Context, preview_delegate_partitioning) == 152);
    assert!(offset_of!(Context, get_tensor) == 160);
    assert!(offset_of!(Delegate, opaque_delegate_builder) == 48);
    assert!(size_of::<AffineQuantization>() == 24);
};
