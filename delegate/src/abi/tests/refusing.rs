//! What stays with the runtime, and structures that are not those that are known.

use std::ffi::c_int;
use std::ptr::null_mut;

use super::super::guard;
use super::super::layout::{Context, OK, Tensor, allocation};
use super::Own;
use super::runtime::{ADD, FLOAT32, Runtime};
use crate::error::DelegateError;

/// Operators that no mapping knows, and one that reads parameters.
const CUMSUM: i32 = 128;
const SOFTMAX: i32 = 25;

/// One addition of two tensors.
fn addition() -> (Box<Runtime>, [i32; 3]) {
    let mut runtime = Runtime::new();
    let tensors = [(); 3].map(|()| runtime.computed(FLOAT32, &[2]));
    runtime.node(ADD, &tensors[..2], &tensors[2..], &[0]);
    runtime.outputs(&tensors[2..]);
    (runtime, tensors)
}

#[test]
fn nodes_that_cannot_be_taken_over_stay_and_the_reasons_are_told_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let why = folder.path().join("why.txt");
    let own = Own::new(&[("threads", "1"), ("explain", why.to_str().unwrap())]);
    let mut runtime = Runtime::new();
    let [a, b, c, d, e, f] = [(); 6].map(|()| runtime.computed(FLOAT32, &[2]));
    runtime.node(ADD, &[a, a], &[b], &[0]);
    runtime.node(CUMSUM, &[b], &[c], &[]);
    runtime.node(SOFTMAX, &[c], &[d], &[]);
    runtime.node(ADD, &[d, d], &[e], &[4]);
    runtime.node(ADD, &[e, e], &[f], &[0]);
    runtime.tensor(f).allocation_type = allocation::DYNAMIC;
    runtime.outputs(&[f]);
    assert_eq!(runtime.apply(own.0), OK, "{:?}", runtime.reported);
    assert_eq!((runtime.kernels(), runtime.left()), (1, vec![1, 2, 3, 4]));
    let told = std::fs::read_to_string(why).unwrap();
    let want = [
        "1 of 5 nodes in 1 partitions on cpu",
        "node 1 (CUMSUM) stays: no NNAPI operation computes it",
        "node 2 (SOFTMAX) stays: the runtime shows no parameters of it",
        "node 3 (ADD) stays: fused activation 4 cannot be fused by NNAPI's operation",
        "node 4 (ADD) stays: tensor 5 (t5) has a size that only the execution shows",
    ];
    assert_eq!(told.lines().collect::<Vec<_>>(), want);
}

#[test]
fn values_that_the_runtime_computes_once_stay_with_it_where_it_uses_them() {
    let own = Own::cpu();
    let mut runtime = Runtime::new();
    let one = runtime.floats(&[2], &[1.0, 2.0]);
    let [twice, more, sum] = [(); 3].map(|()| runtime.computed(FLOAT32, &[2]));
    runtime.node(ADD, &[one, one], &[twice], &[0]);
    runtime.increment(twice, more);
    runtime.node(ADD, &[more, twice], &[sum], &[0]);
    runtime.outputs(&[sum]);
    assert_eq!(runtime.apply(own.0), OK, "{:?}", runtime.reported);
    assert_eq!(runtime.left(), [0, 1]);
}

#[test]
fn a_graph_without_a_node_to_take_over_is_left_alone() {
    let own = Own::cpu();
    let mut runtime = Runtime::new();
    let [a, b] = [(); 2].map(|()| runtime.computed(FLOAT32, &[2]));
    runtime.increment(a, b);
    runtime.outputs(&[b]);
    assert_eq!(runtime.apply(own.0), OK);
    assert_eq!((runtime.kernels(), runtime.left()), (0, vec![0]));
    assert_eq!(Runtime::new().apply(own.0), OK, "nothing at all");
}

/// A change of a graph, and what is said of it.
type Change = (fn(&mut Runtime), &'static str);

unsafe extern "C" fn elsewhere(_: *const Context, _: c_int) -> *mut Tensor {
    std::ptr::dangling_mut()
}

#[test]
fn structures_of_another_layout_are_refused_by_name() {
    let own = Own::cpu();
    let changes: [Change; 5] = [
        (
            |runtime| runtime.fields().preview_delegate_partitioning = None,
            "a context lacks functions",
        ),
        (
            |runtime| runtime.fields().get_tensor = Some(elsewhere),
            "a tensor is not where its index says",
        ),
        (|runtime| runtime.tensor(1).type_code = 4_000, "a tensor is not 112 bytes behind"),
        (|runtime| runtime.tensor(2).allocation_type = -7, "a tensor is not 112 bytes behind"),
        (
            |runtime| {
                static AXES: [c_int; 1] = [4_000];
                runtime.tensor(0).dims = AXES.as_ptr();
            },
            "a tensor is not 112 bytes behind",
        ),
    ];
    for (change, want) in changes {
        let (mut runtime, _) = addition();
        change(&mut runtime);
        assert_ne!(runtime.apply(own.0), OK, "{want}");
        let told = &runtime.reported;
        let lead = "burst: the runtime's structures are not laid out as this delegate knows them: ";
        assert!(told.len() == 1 && told[0].starts_with(&format!("{lead}{want}")), "{told:?}");
        assert_eq!(runtime.kernels(), 0);
    }
}

#[test]
fn a_tensor_without_memory_is_an_error_of_the_execution() {
    let own = Own::cpu();
    let (mut runtime, [a, _, sum]) = addition();
    assert_eq!(runtime.apply(own.0), OK);
    for tensor in [a, sum] {
        let data = std::mem::replace(&mut runtime.tensor(tensor).data, null_mut());
        assert_ne!(runtime.invoke(), OK);
        runtime.tensor(tensor).data = data;
    }
    let want = [a, sum].map(|tensor| format!("burst: tensor {tensor} has no memory"));
    assert_eq!(runtime.reported, want);
    assert_eq!(runtime.invoke(), OK, "and it goes on");
}

#[test]
fn calls_without_a_context_or_a_delegate_are_errors() {
    let own = Own::cpu();
    // SAFETY: a delegate that lives.
    let prepare = unsafe { own.0.read() }.prepare.unwrap();
    // SAFETY: null is no context.
    assert_ne!(unsafe { prepare(null_mut(), own.0) }, OK);
    let (mut runtime, _) = addition();
    let context = runtime.context();
    // SAFETY: a context that lives; null is no delegate.
    assert_ne!(unsafe { prepare(context, null_mut()) }, OK);
    assert_eq!(runtime.reported, ["burst: the runtime shows no delegate"]);
}

#[test]
fn a_panic_becomes_an_error_with_a_name() {
    let caught = guard::catch::<()>(|| panic!("a fault that this test makes"));
    assert!(matches!(caught, Err(DelegateError::Panicked)));
    let (mut runtime, _) = addition();
    let context = runtime.context();
    // SAFETY: a context that lives.
    let status = unsafe { guard::status(context, || panic!("another one")) };
    assert_ne!(status, OK);
    assert!(runtime.reported[0].starts_with("burst: an internal fault"), "{:?}", runtime.reported);
}
