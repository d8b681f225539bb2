//! The functions for tasks. The rules are those of `exports.rs`.

use std::ffi::{c_char, c_void};
use std::time::Duration;
use std::{ptr, slice};

use burst_tasks::{PictureView, Sound, TaskOptions, read_labels};

use super::{give, path, status_of, text};
use crate::error::{Error, Status};
use crate::task::{self, FoundClass, FoundSound, FoundThing, Task};

/// `burst_task_options` of the header.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Options {
    timeout_ns: u64,
    max_results: u32,
    score_threshold: f32,
    labels: *const c_char,
}

/// `burst_picture` of the header.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct GivenPicture {
    rgb: *const u8,
    width: u32,
    height: u32,
}

/// What these options ask for; the usual for null.
///
/// # Safety
/// It is null or options whose labels are null or a text.
unsafe fn options(given: *const Options) -> Result<TaskOptions, Error> {
    let mut options = TaskOptions::default();
    if given.is_null() {
        return Ok(options);
    }
    // SAFETY: not null, and the caller's promise is this function's.
    let Options { timeout_ns, max_results, score_threshold, labels } = unsafe { given.read() };
    if timeout_ns > 0 {
        options = options.with_timeout(Duration::from_nanos(timeout_ns));
    }
    if max_results > 0 {
        options = options.with_max_results(max_results as usize);
    }
    if score_threshold != 0.0 {
        options = options.with_score_threshold(score_threshold);
    }
    // SAFETY: null or a text, as the caller promises.
    if let Some(file) = unsafe { path(labels) } {
        let labels = read_labels(&file);
        options = options.with_labels(labels.map_err(|error| Error::argument(error.to_string()))?);
    }
    Ok(options)
}

/// So many values at `at`; none for null.
///
/// # Safety
/// It is null, or so many values that do not change while they are borrowed.
unsafe fn values<'a, T>(at: *const T, count: usize) -> Result<&'a [T], Error> {
    if at.is_null() {
        return Ok(&[]);
    }
    if !at.is_aligned()
        || count.checked_mul(size_of::<T>()).is_none_or(|all| all > isize::MAX as usize)
    {
        return Err(Error::argument(format!("{count} values at {at:?}: no such memory")));
    }
    // SAFETY: not null, aligned, no longer than memory can be; the caller's promise is this function's.
    Ok(unsafe { slice::from_raw_parts(at, count) })
}

/// The picture at `given`.
///
/// # Safety
/// It is null, or a picture whose bytes do not change while it is borrowed.
unsafe fn picture<'a>(given: *const GivenPicture) -> Result<PictureView<'a>, Error> {
    if given.is_null() {
        return Err(Error::argument("no picture"));
    }
    // SAFETY: not null, and the caller's promise is this function's.
    let GivenPicture { rgb, width, height } = unsafe { given.read() };
    let bytes = (width as usize).checked_mul(height as usize).and_then(|all| all.checked_mul(3));
    let bytes =
        bytes.ok_or_else(|| Error::argument("a picture of more bytes than there can be"))?;
    // SAFETY: null or as many bytes as the picture says, as the caller promises.
    let rgb = unsafe { values(rgb, bytes) }?;
    PictureView::new(width, height, rgb).map_err(|error| Error::argument(error.to_string()))
}

/// Writes as many of the values as there is room for; how many there are goes to `count`.
///
/// # Safety
/// `to` is null or room for so many; `count` is null or may be written.
unsafe fn give_list<T>(found: &[T], to: *mut T, room: usize, count: *mut usize) {
    if !to.is_null() {
        let written = found.len().min(room);
        // SAFETY: not null, and there is room for `written`, as the caller promises; `found` is our own.
        unsafe { ptr::copy_nonoverlapping(found.as_ptr(), to, written) };
    }
    // SAFETY: the caller's promise is this function's.
    unsafe { give(count, found.len()) };
}

/// Writes values all or not at all; width and height in any case.
///
/// # Safety
/// `to` is null or room for so many; `width` and `height` are null or may be written.
unsafe fn give_rows<T>(
    (found, columns, rows): &(Vec<T>, u32, u32),
    to: *mut T,
    room: usize,
    width: *mut u32,
    height: *mut u32,
) -> Result<(), Error> {
    // SAFETY: null or to be written, as the caller promises.
    unsafe { give(width, *columns) };
    // SAFETY: likewise.
    unsafe { give(height, *rows) };
    if to.is_null() || room < found.len() {
        let needed = found.len();
        let text =
            format!("room for {room} values, where there are {needed}: {columns} x {rows} pixels");
        return Err(Error::argument(text));
    }
    // SAFETY: not null, with room for all, as was just seen and the caller promises.
    unsafe { give_list(found, to, room, ptr::null_mut()) };
    Ok(())
}

/// # Safety
/// `device` is null or a text, `file` a text, `options` null or as in [`options`], and `task` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn burst_task_load(
    service: *mut c_void,
    device: *const c_char,
    file: *const c_char,
    kind: i32,
    given: *const Options,
    task: *mut *mut c_void,
) -> Status {
    status_of(|| {
        if task.is_null() {
            return Err(Error::argument("burst_task_load: no place for the task"));
        }
        // SAFETY: a text or null, as the header asks.
        let device = unsafe { text(device) }.unwrap_or(c"cpu").to_string_lossy();
        // SAFETY: a text or null, as the header asks.
        let file = unsafe { path(file) };
        let file = file.ok_or_else(|| Error::argument("burst_task_load: no file"))?;
        // SAFETY: null or options, as the header asks.
        let options = unsafe { options(given) }?;
        let number = task::load(service.addr(), &device, &file, kind, &options)?;
        // SAFETY: not null, and to be written, as the header asks.
        unsafe { give(task, ptr::without_provenance_mut(number)) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn burst_task_free(task: *mut c_void) {
    status_of(|| {
        Task::free(task.addr());
        Ok(())
    });
}

/// # Safety
/// `given` is null or a picture, `classes` null or `room` places, `count` null or to be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn burst_classify(
    task: *mut c_void,
    given: *const GivenPicture,
    classes: *mut FoundClass,
    room: usize,
    count: *mut usize,
) -> Status {
    status_of(|| {
        // SAFETY: null or a picture, as the header asks.
        let found = Task::find(task.addr())?.classify(unsafe { picture(given) }?)?;
        // SAFETY: null or to be written, as the header asks.
        unsafe { give_list(&found, classes, room, count) };
        Ok(())
    })
}

/// # Safety
/// As [`burst_classify`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn burst_detect(
    task: *mut c_void,
    given: *const GivenPicture,
    things: *mut FoundThing,
    room: usize,
    count: *mut usize,
) -> Status {
    status_of(|| {
        // SAFETY: null or a picture, as the header asks.
        let found = Task::find(task.addr())?.detect(unsafe { picture(given) }?)?;
        // SAFETY: null or to be written, as the header asks.
        unsafe { give_list(&found, things, room, count) };
        Ok(())
    })
}

/// # Safety
/// `samples` is null or so many samples, `heard` null or `room` places, `count` null or to be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn burst_hear(
    task: *mut c_void,
    samples: *const f32,
    sample_count: usize,
    samples_per_second: u32,
    heard: *mut FoundSound,
    room: usize,
    count: *mut usize,
) -> Status {
    status_of(|| {
        // SAFETY: null or so many samples, as the header asks.
        let samples = unsafe { values(samples, sample_count) }?.to_vec();
        let sound = Sound { rate: samples_per_second, samples };
        let found = Task::find(task.addr())?.hear(&sound)?;
        // SAFETY: null or to be written, as the header asks.
        unsafe { give_list(&found, heard, room, count) };
        Ok(())
    })
}

/// # Safety
/// `given` is null or a picture, `mask` null or `room` places, `width` and `height` null or to be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn burst_segment(
    task: *mut c_void,
    given: *const GivenPicture,
    mask: *mut u16,
    room: usize,
    width: *mut u32,
    height: *mut u32,
) -> Status {
    status_of(|| {
        // SAFETY: null or a picture, as the header asks.
        let found = Task::find(task.addr())?.segment(unsafe { picture(given) }?)?;
        // SAFETY: null or to be written, as the header asks.
        unsafe { give_rows(&found, mask, room, width, height) }
    })
}

/// # Safety
/// As [`burst_segment`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn burst_upscale(
    task: *mut c_void,
    given: *const GivenPicture,
    rgb: *mut u8,
    room: usize,
    width: *mut u32,
    height: *mut u32,
) -> Status {
    status_of(|| {
        // SAFETY: null or a picture, as the header asks.
        let found = Task::find(task.addr())?.upscale(unsafe { picture(given) }?)?;
        // SAFETY: null or to be written, as the header asks.
        unsafe { give_rows(&found, rgb, room, width, height) }
    })
}
