//! Options and devices, at the function that makes a delegate.

use std::ptr::{null, null_mut};

use super::super::plugin::{tflite_plugin_create_delegate, tflite_plugin_destroy_delegate};
use super::{Own, TOLD, tell};

#[test]
fn what_makes_no_sense_is_told_by_name_and_there_is_no_delegate() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("none").join("why.txt");
    let socket = folder.path().join("no.sock");
    for (options, want) in [
        (
            &[("nonsense", "1")][..],
            "burst: there is no option \"nonsense\"; there are device, socket",
        ),
        (&[("threads", "0")], "burst: option threads is \"0\", where a number from 1"),
        (
            &[("device", "no such one")],
            "burst: option device is \"no such one\", which is not here",
        ),
        (&[("socket", socket.to_str().unwrap())], "burst: option socket: "),
        (&[("explain", nowhere.to_str().unwrap())], "burst: option explain: "),
    ] {
        let told = Own::create(options).err().unwrap();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with(want), "{told:?}");
    }
    assert!(!nowhere.exists());
}

#[test]
fn texts_that_are_none_are_refused() {
    // SAFETY: null stands for no list of texts.
    let made = unsafe { tflite_plugin_create_delegate(null(), null(), 1, Some(tell)) };
    assert!(made.is_null());
    let bad = c"\xff";
    let lists = [bad.as_ptr()];
    // SAFETY: one text each.
    let made =
        unsafe { tflite_plugin_create_delegate(lists.as_ptr(), lists.as_ptr(), 1, Some(tell)) };
    assert!(made.is_null());
    let absent = [null()];
    // SAFETY: one null each.
    let made =
        unsafe { tflite_plugin_create_delegate(absent.as_ptr(), absent.as_ptr(), 1, Some(tell)) };
    assert!(made.is_null());
    let want = "burst: option 0 has no key, no value, or is no UTF-8 text";
    assert_eq!(TOLD.take(), vec![want; 3]);
    // SAFETY: more than are read, of which none is looked at.
    let made = unsafe { tflite_plugin_create_delegate(null(), null(), 1000, Some(tell)) };
    assert!(made.is_null());
    assert_eq!(TOLD.take(), ["burst: 1000 options, more than the limit of 64"]);
    // SAFETY: as before, with nobody to tell.
    assert!(unsafe { tflite_plugin_create_delegate(null(), null(), 1000, None) }.is_null());
    // SAFETY: null is no delegate.
    unsafe { tflite_plugin_destroy_delegate(null_mut()) };
}

#[test]
fn without_options_there_is_a_device_and_newer_runtimes_find_no_other_kind_of_delegate() {
    let own = Own::new(&[]);
    // SAFETY: a delegate that lives.
    let delegate = unsafe { own.0.read() };
    assert!(delegate.opaque_delegate_builder.is_null());
    assert_eq!((delegate.flags, delegate.later), (0, [0; 8]));
    assert!(delegate.prepare.is_some());
}
