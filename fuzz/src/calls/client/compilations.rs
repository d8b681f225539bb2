//! Compilations that are kept in files, changed there, and taken from them.

use std::cell::RefCell;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use burst_hal::{CacheFiles, ErrorStatus, PrepareOptions};
use burst_wire::control::{Answer, CachePlace, Call, Refusal, WirePrepareOptions};
use rustix::fs::{MemfdFlags, memfd_create};

use super::{Client, MODELS_MAX, illegal_model, model, parcel};
use crate::Input;

/// Most compilations of one conversation.
const PLACES_MAX: usize = 8;
/// A choice that stands for what is wrong.
const WRONG: u8 = 9;
/// A time that has passed.
const LONG_AGO: u64 = 1;

/// Where compilations are kept: all clients of a conversation are of one user, and may take each other's.
pub(in super::super) type Places = Rc<RefCell<Vec<Place>>>;

/// The files of one compilation.
pub(in super::super) struct Place {
    token: [u8; 32],
    model: File,
    data: File,
    /// What was in them when one was kept.
    kept: Option<[Vec<u8>; 2]>,
}

impl Place {
    fn new(number: u8) -> Self {
        let file = || File::from(memfd_create("kept", MemfdFlags::CLOEXEC).unwrap());
        Place { token: [number; 32], model: file(), data: file(), kept: None }
    }

    fn content(&self) -> [Vec<u8>; 2] {
        [&self.model, &self.data].map(|file| {
            let mut bytes = vec![0; usize::try_from(file.metadata().unwrap().len()).unwrap()];
            file.read_exact_at(&mut bytes, 0).unwrap();
            bytes
        })
    }
}

/// How a client sends the files of a compilation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    Right,
    /// To be read, and not to be written.
    ReadOnly,
    ModelAlone,
    OneTooMany,
    /// Each in the other's place.
    Swapped,
}

impl Sent {
    fn files(self, place: &Place) -> (CacheFiles, Vec<File>) {
        let again = |file: &File| file.try_clone().unwrap();
        let read_only = |file: &File| {
            File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).expect("procfs")
        };
        let (model, data) = (&place.model, &place.data);
        let files = match self {
            Sent::Right => vec![again(model), again(data)],
            Sent::ReadOnly => vec![read_only(model), read_only(data)],
            Sent::ModelAlone => vec![again(model)],
            Sent::OneTooMany => vec![again(model), again(data), again(data)],
            Sent::Swapped => vec![again(data), again(model)],
        };
        let data = u32::try_from(files.len()).unwrap() - 1;
        (CacheFiles { model: 1, data }, files)
    }
}

fn descriptors(files: &[File]) -> impl Iterator<Item = BorrowedFd<'_>> {
    files.iter().map(AsFd::as_fd)
}

impl Client {
    /// The place that is chosen, the last one first; a new one for a choice beyond all of them, while there may be
    /// one more.
    fn place(places: &mut Vec<Place>, choice: u8) -> &mut Place {
        let last = places.len().checked_sub(1);
        let at = last.and_then(|last| last.checked_sub(choice.into()));
        let at = at.unwrap_or_else(|| {
            if places.len() < PLACES_MAX {
                places.push(Place::new(u8::try_from(places.len()).unwrap()));
            }
            places.len() - 1
        });
        &mut places[at]
    }

    /// Prepares a model and has the compilation kept. Whatever the files are, the model is prepared.
    pub(super) fn keep(&mut self, input: &mut Input<'_>) {
        let places = Rc::clone(&self.places);
        let places = &mut *places.borrow_mut();
        let place = Self::place(places, input.u8());
        let sent = [Sent::Right, Sent::ReadOnly, Sent::ModelAlone, Sent::OneTooMany];
        let sent = sent[input.below(sent.len())];
        let (is_legal, device) = (input.u8() != WRONG, u32::from(input.u8() == WRONG));
        if self.models.len() >= MODELS_MAX {
            return;
        }
        let (model, memory) = parcel(&if is_legal { model() } else { illegal_model() });
        let (counts, files) = sent.files(place);
        let call = Call::PrepareCaching {
            device,
            model,
            options: WirePrepareOptions::from(&PrepareOptions::default()),
            cache: CachePlace::new(place.token, counts),
        };
        let fds: Vec<_> = std::iter::once(memory.as_fd()).chain(descriptors(&files)).collect();
        match self.call(call, &fds) {
            Some(Ok(Answer::Prepared { model })) if is_legal && device == 0 => {
                self.own(model);
                if sent == Sent::Right {
                    let content = place.content();
                    assert!(content.iter().all(|file| !file.is_empty()), "it is not kept");
                    place.kept = Some(content);
                }
            }
            Some(Err(refusal)) if !is_legal || device != 0 => {
                assert_eq!(refusal.status(), ErrorStatus::InvalidArgument, "{refusal:?}");
            }
            other => panic!("{other:?}"),
        }
    }

    /// Takes a compilation: one that is there as it was kept is taken, any other refused.
    pub(super) fn restore(&mut self, input: &mut Input<'_>) {
        let places = Rc::clone(&self.places);
        let places = &mut *places.borrow_mut();
        let place = Self::place(places, input.u8());
        let sent = [Sent::Right, Sent::ReadOnly, Sent::ModelAlone, Sent::OneTooMany, Sent::Swapped];
        let sent = sent[input.below(sent.len())];
        let (is_own_token, device) = (input.u8() != WRONG, u32::from(input.u8() == WRONG));
        let is_late = input.u8() == WRONG;
        if self.models.len() >= MODELS_MAX {
            return;
        }
        let token = if is_own_token { place.token } else { [0xA7; 32] };
        let is_there = is_own_token && place.kept.as_ref() == Some(&place.content());
        let is_right = is_there && matches!(sent, Sent::Right | Sent::ReadOnly) && device == 0;
        let (counts, files) = sent.files(place);
        let deadline = is_late.then_some(LONG_AGO);
        let cache = CachePlace::new(token, counts);
        let fds: Vec<_> = descriptors(&files).collect();
        match self.call(Call::PrepareFromCache { device, cache, deadline }, &fds) {
            Some(Ok(Answer::Restored { model, inputs, outputs, .. })) if is_right && !is_late => {
                assert_eq!((inputs, outputs), (1, 1), "it is another model");
                self.own(model);
            }
            Some(Err(refusal)) if !is_right || is_late => is_refused(&refusal, is_late),
            other => panic!("whether it is right: {is_right}, late: {is_late}: {other:?}"),
        }
    }

    /// Changes a file.
    pub(super) fn change(&mut self, input: &mut Input<'_>) {
        let places = Rc::clone(&self.places);
        let places = &mut *places.borrow_mut();
        let place = Self::place(places, input.u8());
        let file = if input.flag() { &place.data } else { &place.model };
        let (how, at, value) = (input.below(3), u64::from(input.u16()), input.u8());
        let length = file.metadata().unwrap().len();
        match how {
            0 => file.set_len(at.checked_rem(length + 1).unwrap_or(0)).unwrap(),
            1 => file.write_all_at(&[value], length).unwrap(),
            _ => file.write_all_at(&[value], at % length.max(1)).unwrap(),
        }
    }
}

/// What is said of files that are none of a compilation, and of time that is over.
fn is_refused(refusal: &Refusal, is_late: bool) {
    use ErrorStatus::{
        GeneralFailure, InvalidArgument, MissedDeadlinePersistent, MissedDeadlineTransient,
    };
    let status = refusal.status();
    let is_right = match status {
        GeneralFailure | InvalidArgument => true,
        MissedDeadlinePersistent | MissedDeadlineTransient => is_late,
        _ => false,
    };
    assert!(is_right, "{refusal:?}");
}
