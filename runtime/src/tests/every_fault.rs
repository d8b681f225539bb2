//! Everything that can go wrong in every call of every step of plans with several, those of branches and loops too:
//! the right answer where another device may help, and the status where none may.

use std::sync::Arc;

use burst_hal::{ErrorStatus, HeapMemory, OperationType, Priority, ResultCode};

use super::control::counting;
use super::scripted::{Devices, Fault, Phase, Script, Seen, Wrong, devices};
use super::support::*;
use crate::partition::{Branch, GraphPlan, Plan, Step};
use crate::switches::Switches;
use crate::{
    Argument, Burst, Compilation, Execution, Memory, MemoryDesc, Model, Registry, RuntimeDevice,
};

use ErrorStatus::{
    DeviceUnavailable, GeneralFailure, InvalidArgument, MissedDeadlinePersistent,
    MissedDeadlineTransient, OutputInsufficientSize, ResourceExhaustedPersistent,
    ResourceExhaustedTransient,
};
use Wrong::{NoReason, OtherRank, OtherSize, Panics, Refuses, SaysMore, Times, TooLittleRoom};

/// All that a device may answer in place of a result.
const STATUSES: [ErrorStatus; 7] = [
    GeneralFailure,
    DeviceUnavailable,
    InvalidArgument,
    MissedDeadlineTransient,
    MissedDeadlinePersistent,
    ResourceExhaustedTransient,
    ResourceExhaustedPersistent,
];

/// Everything that it may do wrong when it executes.
fn wrongs() -> Vec<Wrong> {
    let lies = [SaysMore, OtherSize, OtherRank, TooLittleRoom, NoReason, Times, Panics];
    let refusals = STATUSES.into_iter().chain([OutputInsufficientSize]).map(Refuses);
    lies.into_iter().chain(refusals).collect()
}

/// A model that falls into several steps, and what it is run on.
struct Fixture {
    name: &'static str,
    model: Arc<Model>,
    inputs: Vec<Vec<u8>>,
    outputs: Vec<usize>,
}

fn fixtures() -> Vec<Fixture> {
    let (add, mul) = (OperationType::Add, OperationType::Mul);
    let branch = |name, holds: bool| Fixture {
        name,
        model: branching([mul, add], [add, mul]),
        inputs: vec![vec![u8::from(holds)], bytes(&CHAIN_IN)],
        outputs: vec![16],
    };
    let int = |value: i32| value.to_le_bytes().to_vec();
    vec![
        Fixture {
            name: "chain",
            model: chain(),
            inputs: vec![bytes(&CHAIN_IN)],
            outputs: vec![16],
        },
        branch("the branch where the condition holds", true),
        branch("the other branch", false),
        Fixture {
            name: "loop",
            model: counting(),
            inputs: vec![int(0), bytes(&[0.5; 4]), bytes(&CHAIN_IN), int(3)],
            outputs: vec![4, 16],
        },
    ]
}

/// A way to execute.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Compute,
    Start,
    Burst,
    Fenced,
}

const WAYS: [Way; 4] = [Way::Compute, Way::Start, Way::Burst, Way::Fenced];

impl Fixture {
    fn ready(&self, compilation: &Arc<Compilation>) -> (Arc<Execution>, Vec<Arc<HeapMemory>>) {
        let execution = Execution::new(compilation).unwrap();
        for (index, value) in (0..).zip(&self.inputs) {
            let argument = Argument::Host(Arc::new(HeapMemory::new(value.clone())));
            execution.set_input(index, None, argument).unwrap();
        }
        let outputs: Vec<_> = self.outputs.iter().map(|length| heap(*length)).collect();
        for (index, output) in (0..).zip(&outputs) {
            execution.set_output(index, None, Argument::Host(output.clone())).unwrap();
        }
        (execution, outputs)
    }

    fn run(&self, compilation: &Arc<Compilation>, way: Way) -> Result<Vec<Vec<u8>>, ResultCode> {
        let (execution, outputs) = self.ready(compilation);
        let ended = match way {
            Way::Compute => code(execution.compute()),
            Way::Start => execution.start_compute().unwrap().wait(),
            Way::Burst => code(execution.burst_compute(&Burst::new(compilation).unwrap())),
            Way::Fenced => execution.start_compute_with_dependencies(&[], 0).unwrap().wait(),
        };
        match ended {
            ResultCode::NoError => Ok(outputs.iter().map(|output| output.to_vec()).collect()),
            code => Err(code),
        }
    }

    /// What comes of it on the reference alone.
    fn wanted(&self) -> Vec<Vec<u8>> {
        let compilation = compiled(&self.model, &Registry::of(vec![reference()]));
        self.run(&compilation, Way::Compute).unwrap()
    }
}

/// For the devices, or for these alone.
fn compile(
    fixture: &Fixture,
    devices: &Devices,
    named: Option<&[Arc<RuntimeDevice>]>,
    switches: Switches,
) -> crate::Result<Arc<Compilation>> {
    let registry = Registry::of(devices.all.clone()).with_switches(switches);
    let compilation = match named {
        None => Compilation::new(&fixture.model, &registry)?,
        Some(named) => Compilation::for_devices(&fixture.model, named)?,
    };
    compilation.finish()?;
    Ok(compilation)
}

/// For each step of a device, in the order in which they are prepared, whether it lies in a branch or a loop.
fn interpreted(compilation: &Compilation) -> Vec<bool> {
    fn walk(plan: &GraphPlan, is_inside: bool, into: &mut Vec<bool>) {
        for step in &plan.steps {
            let [first, second]: [&Branch; 2] = match step {
                Step::Device(_) => {
                    into.push(is_inside);
                    continue;
                }
                Step::If(step) => [&step.then, &step.otherwise],
                Step::While(step) => [&step.condition, &step.body],
            };
            walk(&first.plan, true, into);
            walk(&second.plan, true, into);
        }
    }
    let Plan::Compound(plan) = &*compilation.plan().unwrap() else { panic!("one device") };
    let mut steps = Vec::new();
    walk(plan, false, &mut steps);
    steps
}

fn is_deadline(status: ErrorStatus) -> bool {
    matches!(status, MissedDeadlineTransient | MissedDeadlinePersistent)
}

/// What an execution says in which a step has done this, and nobody stood in.
fn told(wrong: Wrong) -> ResultCode {
    match wrong {
        // Too little room is said with the room that is needed, or it is no answer.
        Refuses(OutputInsufficientSize) => ResultCode::OpFailed,
        Refuses(status) => status.into(),
        _ => ResultCode::OpFailed,
    }
}

/// The same where devices wait for each other, and nobody here sees what they say of shapes.
fn told_of_a_chain(wrong: Wrong) -> Option<ResultCode> {
    match wrong {
        SaysMore | OtherSize | OtherRank | Times => None,
        _ => Some(told(wrong)),
    }
}

fn check_executions(fixture: &Fixture, is_named: bool, switches: Switches, ways: &[Way]) -> usize {
    let (devices, want) = (devices(false), fixture.wanted());
    let named = is_named.then_some(devices.all.as_slice());
    let compilation = compile(fixture, &devices, named, switches).unwrap();
    let inside = interpreted(&compilation);
    assert!(inside.len() > 2 && inside.len() == devices.script.steps(), "{inside:?}");
    let has_branches = inside.contains(&true);
    let mut struck = 0;
    for (step, is_inside) in inside.iter().enumerate() {
        for wrong in wrongs() {
            for way in ways {
                let fault = Fault { step: Some(step), phase: Phase::Execute, wrong };
                devices.script.strike(fault);
                let found = fixture.run(&compilation, *way);
                let is_final = match wrong {
                    Refuses(status) => is_deadline(status) && *is_inside,
                    _ => false,
                };
                let wanted = if devices.script.struck() == 0 {
                    Ok(want.clone()) // a branch that was not taken
                } else if *way == Way::Fenced && !has_branches {
                    told_of_a_chain(wrong).map_or(Ok(want.clone()), Err)
                } else if is_named || is_final {
                    Err(told(wrong))
                } else {
                    Ok(want.clone())
                };
                let name = fixture.name;
                assert_eq!(found, wanted, "{name}, named: {is_named}, {fault:?}, {way:?}");
                struck += devices.script.struck();
                devices.script.strike(Fault { step: Some(usize::MAX), ..fault });
                assert_eq!(fixture.run(&compilation, *way), Ok(want.clone()), "after {fault:?}");
            }
        }
    }
    struck
}

#[test]
fn whatever_a_device_does_wrong_in_whichever_step_the_answer_is_right_or_says_so() {
    for fixture in fixtures() {
        for is_named in [false, true] {
            let struck = check_executions(&fixture, is_named, Switches::default(), &WAYS);
            assert!(struck > 100, "{}: {struck} faults came about", fixture.name);
        }
        let apart = Switches { sync_devices: false, sync_reference: false, ..Switches::default() };
        check_executions(&fixture, false, apart, &[Way::Compute]);
    }
}

#[test]
fn whatever_a_device_says_when_it_is_to_prepare_a_step_the_whole_model_is_prepared_or_it_is_told() {
    for fixture in fixtures() {
        let want = fixture.wanted();
        let devices = devices(false);
        let steps = interpreted(&compile(&fixture, &devices, None, Switches::default()).unwrap());
        for step in 0..steps.len() {
            for wrong in STATUSES.map(Refuses).into_iter().chain([Panics]) {
                let fault = Fault { step: Some(step), phase: Phase::Prepare, wrong };
                for is_named in [false, true] {
                    devices.script.set(Some(fault));
                    let named = is_named.then_some(devices.all.as_slice());
                    let compilation = compile(&fixture, &devices, named, Switches::default());
                    let name = fixture.name;
                    match compilation {
                        Ok(compilation) => {
                            assert!(!is_named && wrong != Refuses(InvalidArgument), "{fault:?}");
                            let found = fixture.run(&compilation, Way::Compute);
                            assert_eq!(found, Ok(want.clone()), "{name}, {fault:?}");
                            let plan = compilation.plan().unwrap();
                            assert!(matches!(&*plan, Plan::Simple { device: 2 }), "{name}");
                        }
                        Err(error) => {
                            assert_eq!(error.code, told(wrong), "{name}, {fault:?}");
                            assert!(is_named || wrong == Refuses(InvalidArgument), "{fault:?}");
                        }
                    }
                    assert_eq!(devices.script.struck(), 1, "{name}, {fault:?}");
                }
            }
        }
    }
}

#[test]
fn a_device_that_does_not_say_what_it_runs_is_passed_over_in_every_graph() {
    for fixture in fixtures() {
        let want = fixture.wanted();
        for wrong in STATUSES.map(Refuses).into_iter().chain([SaysMore, Panics]) {
            let devices = devices(false);
            devices.script.set(Some(Fault { step: None, phase: Phase::Query, wrong }));
            for named in [None, Some(devices.all.as_slice())] {
                let compilation = compile(&fixture, &devices, named, Switches::default()).unwrap();
                let found = fixture.run(&compilation, Way::Compute);
                assert_eq!(found, Ok(want.clone()), "{}, {wrong:?}", fixture.name);
            }
            assert_eq!(devices.script.steps(), 0, "the reference has all of it");
            let two = Some(devices.named.as_slice());
            let refused = compile(&fixture, &devices, two, Switches::default());
            assert_eq!(code(refused), ResultCode::BadData, "nobody says that he runs it");
        }
    }
}

#[test]
fn a_device_without_a_burst_is_called_in_another_way_in_every_step() {
    for fixture in fixtures() {
        let want = fixture.wanted();
        let devices = devices(false);
        for is_named in [false, true] {
            devices.script.set(None);
            let named = is_named.then_some(devices.all.as_slice());
            let compilation = compile(&fixture, &devices, named, Switches::default()).unwrap();
            for step in 0..interpreted(&compilation).len() {
                for wrong in [Refuses(GeneralFailure), Refuses(ResourceExhaustedTransient), Panics]
                {
                    let fault = Fault { step: Some(step), phase: Phase::OpenBurst, wrong };
                    devices.script.strike(fault);
                    let found = fixture.run(&compilation, Way::Burst);
                    assert_eq!(found, Ok(want.clone()), "{}, {fault:?}", fixture.name);
                }
            }
        }
    }
}

#[test]
fn a_device_that_does_not_wait_for_fences_is_called_when_they_are_done_in_every_step() {
    let fixture = fixtures().swap_remove(0);
    let want = fixture.wanted();
    let devices = devices(true);
    for is_named in [false, true] {
        devices.script.set(None);
        let named = is_named.then_some(devices.all.as_slice());
        let compilation = compile(&fixture, &devices, named, Switches::default()).unwrap();
        assert_eq!(fixture.run(&compilation, Way::Fenced), Ok(want.clone()));
        for step in 0..3 {
            for wrong in [Refuses(GeneralFailure), Refuses(ResourceExhaustedTransient), Panics] {
                let fault = Fault { step: Some(step), phase: Phase::LaunchFenced, wrong };
                devices.script.strike(fault);
                let found = fixture.run(&compilation, Way::Fenced);
                assert_eq!((found, devices.script.struck()), (Ok(want.clone()), 1), "{fault:?}");
            }
            // A step that fails once it runs breaks the chain, and is the reason that is told.
            let wrong = Refuses(ResourceExhaustedPersistent);
            devices.script.strike(Fault { step: Some(step), phase: Phase::Execute, wrong });
            let found = fixture.run(&compilation, Way::Fenced);
            assert_eq!(found, Err(ResultCode::ResourceExhaustedPersistent), "step {step}");
        }
    }
}

/// Memories for the input and the output of the chain, whatever the devices say to them.
#[test]
fn a_device_that_makes_no_buffer_leaves_it_to_the_framework() {
    let fixture = fixtures().swap_remove(0);
    for wrong in STATUSES.map(Refuses).into_iter().chain([Panics]) {
        let devices = devices(false);
        let compilation = compile(&fixture, &devices, None, Switches::default()).unwrap();
        devices.script.strike(Fault { step: None, phase: Phase::Allocate, wrong });
        let memories = [true, false].map(|is_input| {
            let desc = MemoryDesc::new();
            match is_input {
                true => desc.add_input_role(&compilation, 0, 1.0).unwrap(),
                false => desc.add_output_role(&compilation, 0, 1.0).unwrap(),
            }
            desc.finish().unwrap();
            Memory::from_desc(&desc).unwrap()
        });
        assert_eq!(memories.each_ref().map(|memory| memory.size()), [16, 16], "{wrong:?}");
        assert!(devices.script.struck() > 0);
        let plain = heap(16);
        let shared = Memory::from_pool(plain.clone());
        plain_fill(&plain);
        Memory::copy(&shared, &memories[0]).unwrap();
        let execution = Execution::new(&compilation).unwrap();
        let whole = |memory: &Arc<Memory>| Argument::Memory {
            memory: Arc::clone(memory),
            offset: 0,
            length: 0,
        };
        execution.set_input(0, None, whole(&memories[0])).unwrap();
        execution.set_output(0, None, whole(&memories[1])).unwrap();
        execution.compute().unwrap();
        Memory::copy(&memories[1], &shared).unwrap();
        assert_eq!(values(&plain.to_vec()), CHAIN_OUT, "{wrong:?}");
    }
}

fn plain_fill(memory: &Arc<HeapMemory>) {
    burst_hal::Memory::write(&**memory, 0, &bytes(&CHAIN_IN)).unwrap();
}

fn executed(script: &Script) -> Vec<burst_hal::ExecutionOptions> {
    let seen = script.seen();
    let options = seen.iter().filter_map(|seen| match seen {
        Seen::Execute { options, .. } => Some(*options),
        Seen::Prepare { .. } => None,
    });
    options.collect()
}

#[test]
fn preference_priority_and_limits_reach_every_step() {
    for fixture in fixtures() {
        let devices = devices(false);
        devices.script.set(None);
        let registry = Registry::of(devices.all.clone());
        let compilation = Compilation::new(&fixture.model, &registry).unwrap();
        compilation.set_priority(110).unwrap();
        compilation.set_preference(0).unwrap();
        compilation.finish().unwrap();
        let prepared = devices.script.seen();
        assert_eq!(prepared.len(), interpreted(&compilation).len());
        for seen in prepared {
            let Seen::Prepare { options, .. } = seen else { panic!("{seen:?}") };
            assert_eq!(options.priority, Priority::High, "{}", fixture.name);
            assert_eq!(options.preference, burst_hal::ExecutionPreference::LowPower);
        }
        for way in WAYS {
            devices.script.set(None);
            let (execution, _) = fixture.ready(&compilation);
            let limit = std::time::Duration::from_secs(7);
            execution.set_loop_timeout(u64::try_from(limit.as_nanos()).unwrap()).unwrap();
            let ended = match way {
                Way::Compute => code(execution.compute()),
                Way::Start => execution.start_compute().unwrap().wait(),
                Way::Burst => code(execution.burst_compute(&Burst::new(&compilation).unwrap())),
                Way::Fenced => execution.start_compute_with_dependencies(&[], 0).unwrap().wait(),
            };
            assert_eq!(ended, ResultCode::NoError);
            let seen = executed(&devices.script);
            assert!(seen.len() >= 3, "{way:?}");
            assert!(seen.iter().all(|options| options.loop_timeout == Some(limit)), "{way:?}");
        }
    }
}

/// A time limit is for one named device, which then has all of the model.
#[test]
fn the_deadline_reaches_the_device_whichever_way_it_is_called() {
    let fixture = fixtures().swap_remove(0);
    let (device, hand) = recording();
    let compilation = Compilation::for_devices(&fixture.model, &[device]).unwrap();
    compilation.finish().unwrap();
    for way in WAYS {
        hand.set(None);
        let (execution, _) = fixture.ready(&compilation);
        execution.set_timeout(60_000_000_000).unwrap();
        let ended = match way {
            Way::Compute => code(execution.compute()),
            Way::Start => execution.start_compute().unwrap().wait(),
            Way::Burst => code(execution.burst_compute(&Burst::new(&compilation).unwrap())),
            Way::Fenced => execution.start_compute_with_dependencies(&[], 0).unwrap().wait(),
        };
        assert_eq!(ended, ResultCode::NoError, "{way:?}");
        let seen = executed(&hand);
        assert_eq!(seen.len(), 1, "{way:?}");
        assert!(seen[0].deadline.is_some(), "{way:?}");
    }
}

/// A device that runs everything in the chain, and what it was asked.
fn recording() -> (Arc<RuntimeDevice>, Arc<Script>) {
    let script = Arc::new(Script::default());
    let takes = &[OperationType::Add, OperationType::Mul];
    (super::scripted::alone("everything", takes, &script), script)
}
