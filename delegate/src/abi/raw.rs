//! Reading what the runtime points to.

use std::ffi::{CStr, c_char, c_int};

use super::layout::IntArray;

/// Most entries of a list that are believed: no graph has as many nodes.
const LIST_MAX: usize = 1 << 24;

/// The element of an array at this index.
///
/// # Safety
/// `base` points to an array of more than `index` elements, each initialised.
pub(super) unsafe fn element<T: Copy>(base: *const T, index: usize) -> T {
    // SAFETY: the caller's promise: the element is inside of the array.
    let at = unsafe { base.add(index) };
    // SAFETY: the caller's promise; read as bytes, for arrays that are not aligned.
    unsafe { at.read_unaligned() }
}

/// The integers of a list; none for null.
///
/// # Safety
/// `list` is null, or points to a count with as many integers behind it.
pub(super) unsafe fn ints(list: *const IntArray) -> Vec<i32> {
    // SAFETY: the same promise.
    unsafe { numbers(list) }
}

/// The numbers of a list that begins with their count; none for null.
///
/// # Safety
/// `list` is null, or points to a count with as many numbers of four bytes behind it.
pub(super) unsafe fn numbers<T: Copy>(list: *const c_int) -> Vec<T> {
    const { assert!(size_of::<T>() == size_of::<c_int>()) };
    if list.is_null() {
        return Vec::new();
    }
    // SAFETY: the caller's promise: it is not null, so there is a count.
    let count = unsafe { element(list, 0) };
    let count = usize::try_from(count).unwrap_or(0).min(LIST_MAX);
    // SAFETY: the caller's promise: as many numbers lie behind the count.
    let number = |at| unsafe { element(list.cast::<T>(), at + 1) };
    (0..count).map(number).collect()
}

/// A list for the runtime: the count, then the integers.
pub(super) fn int_array(values: &[i32]) -> Vec<c_int> {
    let count = c_int::try_from(values.len()).unwrap_or(c_int::MAX);
    [&[count], values].concat()
}

/// A text; `None` for null.
///
/// # Safety
/// `text` is null, or points to bytes that end with a zero.
pub(super) unsafe fn text(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let found = unsafe { CStr::from_ptr(text) };
    Some(found.to_string_lossy().into_owned())
}

/// So many bytes, copied.
///
/// # Safety
/// `from` points to as many initialised bytes, or `count` is 0.
pub(super) unsafe fn bytes(from: *const u8, count: usize) -> Vec<u8> {
    if count == 0 {
        return Vec::new();
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(from, count) }.to_vec()
}
