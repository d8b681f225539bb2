//! A small runtime for the tests: tensors, nodes, partitions and kernels in TFLite's structures, and one
//! operator of its own.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::transmute;
use std::ptr::{null, null_mut};

use super::super::layout::{
    AffineQuantization, Context, Delegate, DelegateParams, ERROR, IntArray, Node, OK, QuantParams,
    Quantization, Registration, ReportError, Tensor, allocation,
};
use super::super::raw::int_array;

pub(super) const FLOAT32: c_int = 1;
pub(super) const UINT8: c_int = 3;
pub(super) const INT64: c_int = 4;

/// Codes of operators.
pub(super) const ADD: i32 = 0;
pub(super) const CONV_2D: i32 = 3;
pub(super) const ARG_MAX: i32 = 56;
pub(super) const SVDF: i32 = 27;
const CUSTOM: i32 = 32;

/// A node: an operator of the model, or a kernel of the delegate.
struct Entry {
    node: Node,
    registration: Registration,
    /// What the node points to.
    _lists: Vec<Vec<c_int>>,
    _parameters: Vec<u8>,
    _partition: Option<Partition>,
}

/// A partition with its lists.
struct Partition {
    params: DelegateParams,
    _lists: [Vec<c_int>; 3],
}

/// What a tensor points to.
#[derive(Default)]
struct Owned {
    data: Vec<u8>,
    dims: Vec<c_int>,
    name: CString,
    lists: Vec<Vec<c_int>>,
    affine: Option<Box<AffineQuantization>>,
}

/// A graph that is being run.
pub(super) struct Runtime {
    context: Context,
    tensors: Vec<Tensor>,
    owned: Vec<Owned>,
    entries: Vec<Entry>,
    /// Entries that run, after a list's count.
    plan: Vec<c_int>,
    /// The plan before any delegate.
    original: Vec<i32>,
    outputs: Vec<i32>,
    previewed: RefCell<Vec<DelegateParams>>,
    partitions: Vec<Partition>,
    /// What was reported.
    pub(super) reported: Vec<String>,
}

impl Runtime {
    /// Without tensors and nodes. Boxed, because its context points to it.
    pub(super) fn new() -> Box<Self> {
        // SAFETY: a function with one text behind the format is called as it would be with `...`: on Linux both
        // get their pointers in the same registers.
        let report = unsafe {
            transmute::<unsafe extern "C" fn(*mut Context, *const c_char, *const c_char), ReportError>(
                report_error,
            )
        };
        let context = Context {
            tensors_size: 0,
            get_execution_plan: Some(get_execution_plan),
            tensors: null_mut(),
            private: null_mut(),
            resize_tensor: None,
            report_error: Some(report),
            add_tensors: None,
            get_node_and_registration: Some(get_node_and_registration),
            replace_node_subsets: Some(replace_node_subsets),
            recommended_num_threads: -1,
            get_external_context: None,
            set_external_context: None,
            allow_fp32_relax_to_fp16: 0,
            profiler: null_mut(),
            allocate_persistent_buffer: None,
            allocate_buffer_for_eval: None,
            request_scratch_buffer: None,
            get_scratch_buffer: None,
            resize_tensor_explicit: None,
            preview_delegate_partitioning: Some(preview),
            get_tensor: Some(get_tensor),
        };
        Box::new(Runtime {
            context,
            tensors: Vec::new(),
            owned: Vec::new(),
            entries: Vec::new(),
            plan: vec![0],
            original: Vec::new(),
            outputs: Vec::new(),
            previewed: RefCell::default(),
            partitions: Vec::new(),
            reported: Vec::new(),
        })
    }

    /// The context, for calls of the delegate.
    pub(super) fn context(&mut self) -> *mut Context {
        let this: *mut Runtime = self;
        self.context.private = this.cast();
        self.context.tensors = self.tensors.as_mut_ptr();
        self.context.tensors_size = self.tensors.len();
        &raw mut self.context
    }

    /// Lets the test change the context.
    pub(super) fn fields(&mut self) -> &mut Context {
        &mut self.context
    }

    /// Lets the test change a tensor.
    pub(super) fn tensor(&mut self, index: i32) -> &mut Tensor {
        &mut self.tensors[index as usize]
    }

    /// A tensor that is computed.
    pub(super) fn computed(&mut self, ty: c_int, dims: &[i32]) -> i32 {
        self.add(ty, dims, None)
    }

    /// A constant of the model.
    pub(super) fn constant(&mut self, ty: c_int, dims: &[i32], data: Vec<u8>) -> i32 {
        self.add(ty, dims, Some(data))
    }

    /// A constant of floats.
    pub(super) fn floats(&mut self, dims: &[i32], values: &[f32]) -> i32 {
        self.constant(FLOAT32, dims, values.iter().flat_map(|value| value.to_ne_bytes()).collect())
    }

    fn add(&mut self, ty: c_int, dims: &[i32], data: Option<Vec<u8>>) -> i32 {
        let index = self.tensors.len();
        let is_constant = data.is_some();
        let mut owned = Owned {
            data: data.unwrap_or_default(),
            dims: int_array(dims),
            name: CString::new(format!("t{index}")).unwrap(),
            ..Owned::default()
        };
        if !is_constant {
            owned.data = vec![0; bytes_of(ty, dims)];
        }
        self.tensors.push(Tensor {
            type_code: ty,
            data: owned.data.as_mut_ptr().cast(),
            dims: owned.dims.as_ptr(),
            params: QuantParams { scale: 0.0, zero_point: 0 },
            allocation_type: if is_constant { allocation::MODEL } else { allocation::ARENA },
            bytes: owned.data.len(),
            allocation: null(),
            name: owned.name.as_ptr(),
            delegate: null_mut(),
            buffer_handle: -1,
            data_is_stale: 0,
            is_variable: 0,
            quantization: Quantization { kind: 0, params: null_mut() },
            sparsity: null_mut(),
            dims_signature: null(),
        });
        self.owned.push(owned);
        i32::try_from(index).unwrap()
    }

    /// Gives a tensor a scale and a zero point.
    pub(super) fn quantize(&mut self, tensor: i32, scale: f32, zero_point: i32) {
        let owned = &mut self.owned[tensor as usize];
        owned.lists = vec![vec![1, scale.to_bits().cast_signed()], vec![1, zero_point]];
        let affine = owned.affine.insert(Box::new(AffineQuantization {
            scale: owned.lists[0].as_ptr(),
            zero_point: owned.lists[1].as_ptr(),
            quantized_dimension: 0,
        }));
        let params: *mut AffineQuantization = &raw mut **affine;
        self.tensors[tensor as usize].quantization =
            Quantization { kind: 1, params: params.cast() };
    }

    /// An operator of the model, with its parameters as words.
    pub(super) fn node(&mut self, code: i32, inputs: &[i32], outputs: &[i32], words: &[i32]) {
        let parameters = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.entry(code, null(), inputs, outputs, parameters);
    }

    /// A node of the runtime's own operator, which adds 1 to each float.
    pub(super) fn increment(&mut self, input: i32, output: i32) {
        self.entry(CUSTOM, c"Increment".as_ptr(), &[input], &[output], Vec::new());
    }

    fn entry(
        &mut self,
        code: i32,
        custom_name: *const c_char,
        inputs: &[i32],
        outputs: &[i32],
        mut parameters: Vec<u8>,
    ) {
        let lists = vec![int_array(inputs), int_array(outputs)];
        let node = Node {
            inputs: lists[0].as_ptr(),
            outputs: lists[1].as_ptr(),
            intermediates: null(),
            temporaries: null(),
            user_data: null_mut(),
            builtin_data: match parameters.is_empty() {
                true => null_mut(),
                false => parameters.as_mut_ptr().cast(),
            },
            custom_initial_data: null(),
            custom_initial_data_size: 0,
            delegate: null_mut(),
        };
        let registration =
            Registration { builtin_code: code, custom_name, version: 1, ..NO_REGISTRATION };
        let entry =
            Entry { node, registration, _lists: lists, _parameters: parameters, _partition: None };
        self.original.push(i32::try_from(self.entries.len()).unwrap());
        self.entries.push(entry);
        self.plan = int_array(&self.original);
    }

    /// Says what the graph gives out.
    pub(super) fn outputs(&mut self, outputs: &[i32]) {
        self.outputs = outputs.to_vec();
    }

    /// Applies a delegate, as when a graph is built and after a change of shapes: kernels are ended before.
    pub(super) fn apply(&mut self, delegate: *mut Delegate) -> c_int {
        self.end_kernels();
        // SAFETY: a delegate that lives.
        let prepare = unsafe { (*delegate).prepare }.unwrap();
        // SAFETY: called as the runtime does it.
        let status = unsafe { prepare(self.context(), delegate) };
        if status != OK {
            return status;
        }
        self.prepare_kernels()
    }

    /// Has kernels look at their tensors.
    pub(super) fn prepare_kernels(&mut self) -> c_int {
        self.each_kernel(|registration| registration.prepare.unwrap())
    }

    fn each_kernel(
        &mut self,
        function: impl Fn(&Registration) -> super::super::layout::OfNode,
    ) -> c_int {
        let context = self.context();
        for place in 1..self.plan.len() {
            let entry = &mut self.entries[self.plan[place] as usize];
            if entry.registration.init.is_none() {
                continue;
            }
            let (call, node) = (function(&entry.registration), &raw mut entry.node);
            // SAFETY: called as the runtime does it.
            let status = unsafe { call(context, node) };
            if status != OK {
                return status;
            }
        }
        OK
    }

    /// Gives a computed tensor another shape.
    pub(super) fn resize(&mut self, tensor: i32, dims: &[i32]) {
        let index = tensor as usize;
        let owned = &mut self.owned[index];
        owned.dims = int_array(dims);
        owned.data = vec![0; bytes_of(self.tensors[index].type_code, dims)];
        self.tensors[index].dims = owned.dims.as_ptr();
        self.tensors[index].data = owned.data.as_mut_ptr().cast();
        self.tensors[index].bytes = owned.data.len();
    }

    /// Numbers of the nodes of the model that no kernel runs.
    pub(super) fn left(&self) -> Vec<i32> {
        self.plan[1..].iter().copied().filter(|at| self.original.contains(at)).collect()
    }

    /// How many kernels there are.
    pub(super) fn kernels(&self) -> usize {
        self.plan.len() - 1 - self.left().len()
    }

    pub(super) fn write(&mut self, tensor: i32, values: &[f32]) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        self.write_bytes(tensor, &bytes);
    }

    pub(super) fn write_bytes(&mut self, tensor: i32, bytes: &[u8]) {
        self.owned[tensor as usize].data.copy_from_slice(bytes);
    }

    pub(super) fn read(&self, tensor: i32) -> Vec<f32> {
        let data = self.read_bytes(tensor);
        data.as_chunks::<4>().0.iter().map(|chunk| f32::from_ne_bytes(*chunk)).collect()
    }

    pub(super) fn read_bytes(&self, tensor: i32) -> Vec<u8> {
        self.owned[tensor as usize].data.clone()
    }

    /// Runs all nodes in order.
    pub(super) fn invoke(&mut self) -> c_int {
        // The arena may move between executions.
        for (tensor, owned) in self.tensors.iter_mut().zip(&mut self.owned) {
            if tensor.allocation_type == allocation::ARENA && !tensor.data.is_null() {
                owned.data = owned.data.clone();
                tensor.data = owned.data.as_mut_ptr().cast();
            }
        }
        let context = self.context();
        for place in 1..self.plan.len() {
            let entry = &mut self.entries[self.plan[place] as usize];
            match entry.registration.invoke {
                Some(invoke) => {
                    // SAFETY: called as the runtime does it.
                    let status = unsafe { invoke(context, &raw mut entry.node) };
                    if status != OK {
                        return status;
                    }
                }
                None if entry.registration.builtin_code == CUSTOM => {
                    let (from, to) = (entry._lists[0][1], entry._lists[1][1]);
                    let values: Vec<f32> =
                        self.read(from).iter().map(|value| value + 1.0).collect();
                    self.write(to, &values);
                }
                None => panic!("this runtime has no operator {}", entry.registration.builtin_code),
            }
        }
        OK
    }

    fn end_kernels(&mut self) {
        let context = self.context();
        for place in 1..self.plan.len() {
            let entry = &mut self.entries[self.plan[place] as usize];
            if let (Some(free), kernel) = (entry.registration.free, entry.node.user_data) {
                entry.node.user_data = null_mut();
                // SAFETY: called as the runtime does it.
                unsafe { free(context, kernel) };
            }
        }
        self.plan = int_array(&self.original);
    }

    /// Runs of wanted nodes in the plan, each with the tensors that others use.
    fn cut(&self, wanted: &[i32]) -> Vec<Partition> {
        let mut groups: Vec<Vec<i32>> = Vec::new();
        let mut goes_on = false;
        for number in &self.original {
            let is_wanted = wanted.contains(number);
            match groups.last_mut() {
                Some(group) if is_wanted && goes_on => group.push(*number),
                _ if is_wanted => groups.push(vec![*number]),
                _ => {}
            }
            goes_on = is_wanted;
        }
        groups.iter().map(|group| self.partition(group)).collect()
    }

    fn partition(&self, group: &[i32]) -> Partition {
        let reads = |number: &i32| self.entries[*number as usize]._lists[0][1..].to_vec();
        let writes = |number: &i32| self.entries[*number as usize]._lists[1][1..].to_vec();
        let others = self.original.iter().filter(|number| !group.contains(number));
        let used: Vec<i32> = others.flat_map(reads).chain(self.outputs.clone()).collect();
        let written: Vec<i32> = group.iter().flat_map(writes).collect();
        let inputs: Vec<i32> =
            group.iter().flat_map(reads).filter(|tensor| !written.contains(tensor)).collect();
        let outputs: Vec<i32> =
            written.into_iter().filter(|tensor| used.contains(tensor)).collect();
        let lists = [int_array(group), int_array(&inputs), int_array(&outputs)];
        let params = DelegateParams {
            delegate: null_mut(),
            nodes_to_replace: lists[0].as_ptr(),
            input_tensors: lists[1].as_ptr(),
            output_tensors: lists[2].as_ptr(),
        };
        Partition { params, _lists: lists }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.end_kernels();
    }
}

const NO_REGISTRATION: Registration = Registration {
    init: None,
    free: None,
    prepare: None,
    invoke: None,
    profiling_string: None,
    builtin_code: 0,
    custom_name: null(),
    version: 0,
    later: [0; 11],
};

fn bytes_of(ty: c_int, dims: &[i32]) -> usize {
    let element = match ty {
        UINT8 => 1,
        INT64 => 8,
        _ => 4,
    };
    dims.iter().fold(element, |bytes, size| bytes * usize::try_from(*size).unwrap_or(0))
}

/// The runtime of a context.
///
/// # Safety
/// The context is that of a runtime that lives, and nothing else of it is borrowed.
unsafe fn runtime<'r>(context: *const Context) -> &'r mut Runtime {
    // SAFETY: the caller's promise; set by `Runtime::context`.
    let private = unsafe { (*context).private };
    // SAFETY: as above.
    unsafe { &mut *private.cast::<Runtime>() }
}

unsafe extern "C" fn get_execution_plan(
    context: *mut Context,
    plan: *mut *const IntArray,
) -> c_int {
    // SAFETY: called by the delegate with the context that it was given.
    let runtime = unsafe { runtime(context) };
    // SAFETY: a place of the caller.
    unsafe { *plan = runtime.plan.as_ptr() };
    OK
}

unsafe extern "C" fn get_node_and_registration(
    context: *mut Context,
    number: c_int,
    node: *mut *mut Node,
    registration: *mut *mut Registration,
) -> c_int {
    // SAFETY: called by the delegate with the context that it was given.
    let runtime = unsafe { runtime(context) };
    let Some(entry) = runtime.entries.get_mut(number as usize) else { return ERROR };
    // SAFETY: a place of the caller.
    unsafe { *node = &raw mut entry.node };
    // SAFETY: a place of the caller.
    unsafe { *registration = &raw mut entry.registration };
    OK
}

unsafe extern "C" fn preview(
    context: *mut Context,
    nodes: *const IntArray,
    found: *mut *mut DelegateParams,
    count: *mut c_int,
) -> c_int {
    // SAFETY: called by the delegate with the context that it was given.
    let runtime = unsafe { runtime(context) };
    // SAFETY: a list of the caller.
    let wanted = unsafe { super::super::raw::ints(nodes) };
    runtime.partitions = runtime.cut(&wanted);
    let mut previewed = runtime.previewed.borrow_mut();
    *previewed = runtime.partitions.iter().map(|partition| partition.params).collect();
    // SAFETY: a place of the caller.
    unsafe { *found = previewed.as_mut_ptr() };
    // SAFETY: a place of the caller.
    unsafe { *count = c_int::try_from(previewed.len()).unwrap() };
    OK
}

unsafe extern "C" fn replace_node_subsets(
    context: *mut Context,
    registration: Registration,
    nodes: *const IntArray,
    delegate: *mut Delegate,
) -> c_int {
    // SAFETY: called by the delegate with the context that it was given.
    let runtime = unsafe { runtime(context) };
    // SAFETY: a list of the caller.
    let wanted = unsafe { super::super::raw::ints(nodes) };
    let mut plan = Vec::new();
    let mut cuts = runtime.cut(&wanted).into_iter();
    let mut goes_on = false;
    for number in runtime.original.clone() {
        let is_wanted = wanted.contains(&number);
        if !is_wanted {
            plan.push(number);
        } else if !goes_on {
            let mut partition = cuts.next().unwrap();
            partition.params.delegate = delegate;
            let params: *const DelegateParams = &raw const partition.params;
            // SAFETY: called as the runtime does it.
            let kernel = unsafe { registration.init.unwrap()(context, params.cast(), 0) };
            plan.push(i32::try_from(runtime.entries.len()).unwrap());
            runtime.entries.push(kernel_entry(registration, kernel, delegate, partition));
        }
        goes_on = is_wanted;
    }
    runtime.plan = int_array(&plan);
    OK
}

fn kernel_entry(
    registration: Registration,
    kernel: *mut c_void,
    delegate: *mut Delegate,
    partition: Partition,
) -> Entry {
    let node = Node {
        inputs: partition.params.input_tensors,
        outputs: partition.params.output_tensors,
        intermediates: null(),
        temporaries: null(),
        user_data: kernel,
        builtin_data: null_mut(),
        custom_initial_data: null(),
        custom_initial_data_size: 0,
        delegate,
    };
    let (lists, parameters) = (Vec::new(), Vec::new());
    Entry {
        node,
        registration,
        _lists: lists,
        _parameters: parameters,
        _partition: Some(partition),
    }
}

unsafe extern "C" fn get_tensor(context: *const Context, index: c_int) -> *mut Tensor {
    // SAFETY: called by the delegate with the context that it was given.
    let runtime = unsafe { runtime(context) };
    runtime.tensors.as_mut_ptr().wrapping_add(index as usize)
}

unsafe extern "C" fn report_error(
    context: *mut Context,
    format: *const c_char,
    text: *const c_char,
) {
    // SAFETY: called by the delegate with the context that it was given.
    let runtime = unsafe { runtime(context) };
    // SAFETY: two texts of the caller.
    let [format, text] = [format, text].map(|text| unsafe { CStr::from_ptr(text) });
    let text = text.to_str().unwrap();
    runtime.reported.push(format.to_str().unwrap().replace("%s", text));
}
