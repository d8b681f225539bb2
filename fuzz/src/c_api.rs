//! Functions of the C library in any order, with handles of any kind, freed ones and numbers that are none.
//!
//! Looked at: a function that is given what is not a live handle of its kind fails; a model takes nothing more
//! once it is finished, and a compilation neither; what is not finished is not used; every code is one of the
//! header's; nothing panics behind the edge, where nobody would see it; every descriptor is given back.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Once;

use burst_hal::ResultCode;
use burst_shm::Memory;
use neuralnetworks::c::caller::{Caller, Code, Handle, OperandType};

use crate::leaks::Leaks;
use crate::{Input, Script, Seed, seed};

/// Most calls of one input.
const CALLS_MAX: usize = 160;
/// What no handle is.
const NOT_A_HANDLE: Handle = 0x4E4E_0000_0000_0008;
/// Bytes of memories.
const MEMORY_BYTES: usize = 256;
/// Codes of the header: NNAPI's operand types, and ADD, RELU, RESHAPE, FULLY_CONNECTED, SOFTMAX, IF.
const TYPES: [i32; 8] = [3, 1, 4, 5, 6, 0, 15, -7];
const OPERATIONS: [i32; 6] = [0, 19, 22, 9, 25, 96];

thread_local! {
    /// Panics of this thread, which stay behind the edge of the library.
    static PANICS: Cell<u32> = const { Cell::new(0) };
}

/// Counts panics from now on, besides all that is done with them anyway.
fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.with(|panics| panics.set(panics.get() + 1));
            before(info);
        }));
    });
}

/// A script of calls.
pub fn run(data: &[u8]) -> bool {
    count_panics();
    // The devices are looked for once; they keep what they need.
    let _ = Caller::new().device(0);
    let before = PANICS.with(Cell::get);
    let leaks = Leaks::watch();
    let computed = {
        let mut session = Session::new(Input::new(data));
        session.play();
        session.computed
    };
    assert_eq!(PANICS.with(Cell::get), before, "a panic behind the edge");
    leaks.check_soon();
    computed
}

/// Kinds of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
enum Kind {
    Model,
    Compilation,
    Memory,
    Desc,
    Execution,
    Burst,
    Event,
}

const KINDS: usize = 7;

/// What is known of the objects.
struct Session<'a> {
    input: Input<'a>,
    caller: Caller,
    devices: [Handle; 2],
    live: [Vec<Handle>; KINDS],
    freed: Vec<Handle>,
    finished: BTreeSet<Handle>,
    computed: bool,
}

impl<'a> Session<'a> {
    fn new(input: Input<'a>) -> Self {
        let caller = Caller::new();
        let devices = [caller.device(0).1, caller.device(1).1];
        Session {
            input,
            caller,
            devices,
            live: Default::default(),
            freed: Vec::new(),
            finished: BTreeSet::new(),
            computed: false,
        }
    }

    fn play(&mut self) {
        for _ in 0..CALLS_MAX {
            if self.input.is_empty() {
                break;
            }
            match self.input.below(8) {
                0 => self.small_model(),
                1 | 2 => self.build(),
                3 => self.compile(),
                4 => self.remember(),
                5 => self.set_up(),
                6 => self.execute(),
                _ => self.end(),
            }
        }
        for kind in 0..KINDS {
            for handle in std::mem::take(&mut self.live[kind]) {
                self.free(kind, handle);
            }
        }
    }

    /// A handle for a function that wants this kind: a live one, more often than not. Says whether it is.
    fn pick(&mut self, kind: Kind) -> (Handle, bool) {
        let all = &self.live[kind as usize];
        match self.input.below(16) {
            0 => (0, false),
            1 => (NOT_A_HANDLE, false),
            2 => match self.freed.last() {
                Some(freed) => (*freed, false),
                None => (0, false),
            },
            3 => {
                let other = (kind as usize + 1 + self.input.below(KINDS - 1)) % KINDS;
                (self.live[other].last().copied().unwrap_or(0), false)
            }
            4 | 5 if !all.is_empty() => {
                let index = usize::from(self.input.u8()) % all.len();
                (all[index], true)
            }
            _ => all.last().map_or((0, false), |handle| (*handle, true)),
        }
    }

    /// What holds of every code, and of one for what is not a live handle.
    fn check(code: Code, is_live: bool) -> bool {
        let known = ResultCode::from_code(code);
        assert!(known.is_some(), "code {code} is none of the header's");
        let succeeded = known == Some(ResultCode::NoError);
        assert!(is_live || !succeeded, "a handle that is none of this kind was taken");
        succeeded
    }

    fn keep(&mut self, kind: Kind, (code, handle): (Code, Handle), is_live: bool) -> bool {
        let made = Self::check(code, is_live);
        assert_eq!(made, handle != 0, "a handle comes with success and with nothing else");
        if made {
            self.live[kind as usize].push(handle);
        }
        made
    }

    fn shape(&mut self) -> Vec<u32> {
        let rank = self.input.below(4);
        (0..rank).map(|_| u32::from(self.input.u8() % 5)).collect()
    }

    fn ty<'s>(&mut self, dimensions: &'s [u32]) -> OperandType<'s> {
        let ty = TYPES[self.input.below(TYPES.len())];
        let scale = if matches!(ty, 5) || self.input.below(8) == 0 { 0.5 } else { 0.0 };
        OperandType { ty, dimensions, scale, zero_point: 0 }
    }

    /// Indexes of operands, most of them those of the small model.
    fn indexes(&mut self) -> Vec<u32> {
        let count = self.input.below(5);
        (0..count).map(|_| u32::from(self.input.u8() % 8)).collect()
    }

    fn index(&mut self) -> i32 {
        match self.input.below(8) {
            7 => -1,
            6 => i32::MAX,
            index => i32::try_from(index).unwrap(),
        }
    }

    /// The sum of an input and a constant, as every application would build it; finished or not.
    fn small_model(&mut self) {
        let made = self.caller.model();
        if !self.keep(Kind::Model, made, true) {
            return;
        }
        let model = made.1;
        let tensor = OperandType { ty: 3, dimensions: &[2], ..OperandType::default() };
        let scalar = OperandType { ty: 1, ..OperandType::default() };
        for ty in [&tensor, &tensor, &scalar, &tensor] {
            assert_eq!(self.caller.model_add_operand(model, ty), 0);
        }
        let constant: Vec<u8> = [1.0_f32, 2.0].iter().flat_map(|one| one.to_le_bytes()).collect();
        assert_eq!(self.caller.model_set_value(model, 1, &constant), 0);
        assert_eq!(self.caller.model_set_value(model, 2, &[0; 4]), 0);
        assert_eq!(self.caller.model_add_operation(model, 0, &[0, 1, 2], &[3]), 0);
        assert_eq!(self.caller.model_identify(model, &[0], &[3]), 0);
        if self.input.below(8) > 0 {
            assert_eq!(self.caller.model_finish(model), 0);
            self.finished.insert(model);
        }
    }

    /// A call that builds a model.
    fn build(&mut self) {
        let (model, is_live) = self.pick(Kind::Model);
        let index = self.index();
        let code = match self.input.below(10) {
            0 => {
                let made = self.caller.model();
                self.keep(Kind::Model, made, true);
                return;
            }
            1 | 2 => {
                let shape = self.shape();
                let ty = self.ty(&shape);
                self.caller.model_add_operand(model, &ty)
            }
            3 => {
                let count = self.input.below(20);
                let value = self.input.bytes(count);
                self.caller.model_set_value(model, index, value)
            }
            4 => {
                let (memory, memory_is_live) = self.pick(Kind::Memory);
                let (at, length) = (self.input.u8().into(), self.input.u8().into());
                let code =
                    self.caller.model_set_value_from_memory(model, index, memory, at, length);
                Self::check(code, memory_is_live);
                code
            }
            5 => {
                let (value, value_is_live) = self.pick(Kind::Model);
                let code = self.caller.model_set_value_from_model(model, index, value);
                Self::check(code, value_is_live);
                code
            }
            6 => {
                let ty = OPERATIONS[self.input.below(OPERATIONS.len())];
                let (inputs, outputs) = (self.indexes(), self.indexes());
                self.caller.model_add_operation(model, ty, &inputs, &outputs)
            }
            7 => {
                let (inputs, outputs) = (self.indexes(), self.indexes());
                self.caller.model_identify(model, &inputs, &outputs)
            }
            8 => match self.input.flag() {
                true => self.caller.model_relax(model, true),
                false => self.caller.model_set_scales(model, index, 0, &[0.5, 0.25]),
            },
            _ => {
                let code = self.caller.model_finish(model);
                let finishes = Self::check(code, is_live);
                assert!(!finishes || self.finished.insert(model), "finished twice");
                return;
            }
        };
        let changed = Self::check(code, is_live);
        assert!(!changed || !self.finished.contains(&model), "a finished model was changed");
    }

    /// A call of a compilation, or one that makes it.
    fn compile(&mut self) {
        let (compilation, is_live) = self.pick(Kind::Compilation);
        let code = match self.input.below(8) {
            0..3 => {
                let (model, is_live) = self.pick(Kind::Model);
                let devices = self.devices;
                let made = match self.input.below(4) {
                    0 => self.caller.compilation_for(model, &devices[..1]),
                    1 => self.caller.compilation_for(model, &[devices[0], NOT_A_HANDLE]),
                    _ => self.caller.compilation(model),
                };
                if self.keep(Kind::Compilation, made, is_live) {
                    assert!(self.finished.contains(&model), "of a model that is not finished");
                }
                return;
            }
            3 => {
                let (model, is_live) = self.pick(Kind::Model);
                let devices = self.devices;
                let code = self.caller.model_supported(model, &devices);
                Self::check(code, is_live);
                return;
            }
            4 => self.caller.compilation_set_preference(compilation, self.input.u8().into()),
            5 => self.caller.compilation_set_priority(compilation, self.input.u8().into()),
            6 => self.caller.compilation_set_timeout(compilation, self.input.u64()),
            _ => {
                let code = self.caller.compilation_finish(compilation);
                if Self::check(code, is_live) {
                    assert!(self.finished.insert(compilation), "finished twice");
                }
                return;
            }
        };
        let changed = Self::check(code, is_live);
        assert!(!changed || !self.finished.contains(&compilation), "it is finished");
    }

    /// A call of memories.
    fn remember(&mut self) {
        let (desc, is_live) = self.pick(Kind::Desc);
        let index = u32::from(self.input.u8() % 3);
        match self.input.below(8) {
            0 | 1 => {
                let memory = Memory::create("c", MEMORY_BYTES).unwrap();
                let (size, at) = (self.input.u16().into(), self.input.u8().into());
                let made = self.caller.memory(memory.as_fd(), size, 3, at);
                self.keep(Kind::Memory, made, true);
            }
            2 => {
                let made = self.caller.desc();
                self.keep(Kind::Desc, made, true);
            }
            3 => {
                let (compilation, compilation_is_live) = self.pick(Kind::Compilation);
                let frequency = f32::from(self.input.u8()) / 100.0;
                let code = match self.input.flag() {
                    true => self.caller.desc_add_input_role(desc, compilation, index, frequency),
                    false => self.caller.desc_add_output_role(desc, compilation, index, frequency),
                };
                let added = Self::check(code, is_live && compilation_is_live);
                assert!(!added || !self.finished.contains(&desc), "it is finished");
            }
            4 => {
                let shape = self.shape();
                Self::check(self.caller.desc_set_dimensions(desc, &shape), is_live);
            }
            5 => {
                if Self::check(self.caller.desc_finish(desc), is_live) {
                    assert!(self.finished.insert(desc), "finished twice");
                }
            }
            6 => {
                let made = self.caller.memory_of(desc);
                if self.keep(Kind::Memory, made, is_live) {
                    assert!(self.finished.contains(&desc), "of a description that is not finished");
                }
            }
            _ => {
                let (from, one_is_live) = self.pick(Kind::Memory);
                let (to, other_is_live) = self.pick(Kind::Memory);
                Self::check(self.caller.memory_copy(from, to), one_is_live && other_is_live);
            }
        }
    }

    /// A call that makes an execution, or gives it something.
    fn set_up(&mut self) {
        let (execution, is_live) = self.pick(Kind::Execution);
        let index = self.index();
        let shape = self.shape();
        let ty = self.ty(&shape);
        let ty = Some(&ty).filter(|_| self.input.below(4) == 0);
        let code = match self.input.below(10) {
            0 | 1 => {
                let (compilation, is_live) = self.pick(Kind::Compilation);
                let made = self.caller.execution(compilation);
                if self.keep(Kind::Execution, made, is_live) {
                    assert!(self.finished.contains(&compilation), "it is not finished");
                }
                return;
            }
            2 => {
                let (compilation, is_live) = self.pick(Kind::Compilation);
                let made = self.caller.burst(compilation);
                self.keep(Kind::Burst, made, is_live);
                return;
            }
            3 | 4 => {
                let length = if self.input.below(4) > 0 { 8 } else { self.input.below(32) };
                let mut value = self.input.bytes(length).to_vec();
                value.resize(length, 0x3F);
                self.caller.execution_set_input(execution, index, ty, &value)
            }
            5 | 6 => {
                let length = if self.input.below(4) > 0 { 8 } else { self.input.below(32) };
                self.caller.execution_set_output(execution, index, ty, length)
            }
            7 => {
                let (memory, memory_is_live) = self.pick(Kind::Memory);
                let is_output = self.input.flag();
                let place = match self.input.flag() {
                    true => (0, 8),
                    false => (self.input.u8().into(), self.input.u8().into()),
                };
                let caller = &self.caller;
                let argument = (index, is_output);
                let code = caller.execution_set_from_memory(execution, argument, ty, memory, place);
                Self::check(code, memory_is_live);
                code
            }
            8 => self.caller.execution_set_measure_timing(execution, true),
            _ => match self.input.below(4) {
                0 => self.caller.execution_set_timeout(execution, self.input.u64()),
                1 => self.caller.execution_set_loop_timeout(execution, self.input.u64()),
                2 => self.caller.execution_set_reusable(execution, self.input.flag()),
                _ => self.caller.execution_enable_padding(execution, self.input.flag()),
            },
        };
        Self::check(code, is_live);
    }

    /// A call that computes, or asks what came of it.
    fn execute(&mut self) {
        let (execution, is_live) = self.pick(Kind::Execution);
        match self.input.below(10) {
            0 | 1 => {
                self.computed |= Self::check(self.caller.execution_compute(execution), is_live);
            }
            2 => {
                let (burst, burst_is_live) = self.pick(Kind::Burst);
                let code = self.caller.execution_burst_compute(execution, burst);
                self.computed |= Self::check(code, is_live && burst_is_live);
            }
            3 => {
                let made = self.caller.execution_start(execution);
                self.keep(Kind::Event, made, is_live);
            }
            4 => {
                let (event, event_is_live) = self.pick(Kind::Event);
                let duration = if self.input.flag() { 0 } else { self.input.u64() };
                let made = self.caller.execution_start_behind(execution, &[event], duration);
                self.keep(Kind::Event, made, is_live && event_is_live);
            }
            5 => {
                let (event, is_live) = self.pick(Kind::Event);
                self.computed |= Self::check(self.caller.event_wait(event), is_live);
            }
            6 => {
                let (event, is_live) = self.pick(Kind::Event);
                let (code, fence) = self.caller.event_fence(event);
                let has_fence = Self::check(code, is_live);
                assert_eq!(has_fence, fence.is_some(), "a fence comes with success");
            }
            7 => {
                // Either has happened or has failed: nobody waits for ever.
                let (read, write) = std::io::pipe().unwrap();
                if self.input.flag() {
                    (&write).write_all(&[1]).unwrap();
                }
                drop(write);
                let fd = if self.input.below(4) == 0 { -1 } else { read.as_raw_fd() };
                let made = self.caller.event(fd);
                self.keep(Kind::Event, made, true);
            }
            8 => {
                let (code, _) = self.caller.execution_duration(execution, self.input.u8().into());
                Self::check(code, is_live);
            }
            _ => {
                let index = self.index();
                // In this order: one that is under way may end between the two.
                let (code, dimensions) = self.caller.execution_dimensions(execution, index);
                let has_shape = Self::check(code, is_live);
                let (code, rank) = self.caller.execution_rank(execution, index);
                let has_rank = Self::check(code, is_live);
                assert!(!has_shape || has_rank && rank as usize <= dimensions.len());
            }
        }
    }

    /// Frees something, or what is nothing.
    fn end(&mut self) {
        let kind = self.input.below(KINDS);
        match self.input.below(4) {
            0 => self.free(kind, NOT_A_HANDLE),
            1 => {
                let of_another = self.live[(kind + 1) % KINDS].last().copied().unwrap_or(0);
                self.free(kind, of_another);
            }
            _ => {
                if let Some(handle) = self.live[kind].pop() {
                    self.freed.push(handle);
                    self.free(kind, handle);
                }
            }
        }
    }

    fn free(&self, kind: usize, handle: Handle) {
        let free = [
            Caller::model_free,
            Caller::compilation_free,
            Caller::memory_free,
            Caller::desc_free,
            Caller::execution_free,
            Caller::burst_free,
            Caller::event_free,
        ];
        free[kind](&self.caller, handle);
    }
}

/// Applications, and each kind of misuse.
pub fn seeds() -> Vec<Seed> {
    // The last live handle of a kind.
    const LAST: u8 = 15;
    const MODEL: &[u8] = &[0, 1];
    // Which call of a compilation it is given, index, which model, all devices; then finished.
    const COMPILED: &[u8] = &[3, 0, 0, LAST, 2, 3, LAST, 7];
    const EXECUTION: &[u8] = &[5, 0, 0, 0, 0, 0, 1, 0, LAST];
    const INPUT: &[u8] = &[5, LAST, 0, 0, 0, 0, 1, 3, 1, 0, 0, 128, 63, 0, 0, 0, 64];
    const OUTPUT: &[u8] = &[5, LAST, 0, 0, 0, 0, 1, 5, 1];
    const COMPUTE: &[u8] = &[6, LAST, 0];
    let script = |parts: &[&[u8]]| {
        let parts = [MODEL].into_iter().chain(parts.iter().copied());
        parts.fold(Script::new(), Script::bytes)
    };
    let ready: &[&[u8]] = &[COMPILED, EXECUTION, INPUT, OUTPUT];
    let with = |more: &[&[u8]]| script(&[ready, more].concat());
    vec![
        seed("compute", with(&[COMPUTE, &[6, LAST, 9, 0]])),
        seed("start_and_wait", with(&[&[6, LAST, 3], &[6, LAST, 5, LAST]])),
        seed("start_behind_a_fence", with(&[&[6, LAST, 7, 1, 1], &[6, LAST, 4, LAST, 1]])),
        seed("start_and_free_all", with(&[&[6, LAST, 3], &[7, 4, 2], &[7, 1, 2], &[7, 0, 2]])),
        seed("burst", with(&[&[5, LAST, 0, 0, 0, 0, 1, 2, LAST], &[6, LAST, 2, LAST]])),
        seed("computed_twice", with(&[COMPUTE, COMPUTE])),
        seed(
            "memories",
            with(&[
                &[4, LAST, 0, 2],
                &[4, LAST, 0, 3, LAST, 100, 1],
                &[4, LAST, 0, 5],
                &[4, LAST, 0, 6],
                &[5, LAST, 0, 0, 0, 0, 1, 7, LAST, 0, 1],
                COMPUTE,
            ]),
        ),
        seed("used_when_freed", with(&[&[7, 4, 2], &[6, 2, 0], &[6, 2, 3]])),
        seed("other_kinds", with(&[&[6, 3, 0, 0], &[3, 3, 0, 7], &[1, 3, 0, 0, 9]])),
        seed(
            "built_by_hand",
            script(&[
                &[1, LAST, 0, 0],
                &[1, LAST, 0, 1, 1, 2, 0, 1],
                &[1, LAST, 0, 1, 1, 2, 0, 1],
                &[1, LAST, 0, 6, 1, 1, 0, 1, 1],
                &[1, LAST, 0, 7, 1, 0, 1, 1],
                &[1, LAST, 0, 9],
            ]),
        ),
    ]
}
