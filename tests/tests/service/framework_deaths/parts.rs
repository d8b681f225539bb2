//! What the framework is tried with over services that die: services with a device for a part of a model each,
//! models that fall into several steps, and the devices that an application sees.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use burst_driver::ReferenceDevice;
use burst_hal::{HeapMemory, OperandType, OperationType, ResultCode};
use neuralnetworks::partition::Plan;
use neuralnetworks::{
    Argument, Compilation, Execution, Model, OperandTypeDesc, Registry, RuntimeDevice,
};

use crate::burst_support::LONG;
use crate::peer::{self, Service};

pub(super) const ADD: i32 = OperationType::Add.code();
pub(super) const MUL: i32 = OperationType::Mul.code();
pub(super) const LESS: i32 = OperationType::Less.code();

/// What a device does: runs these operations, and at the execution of this number never ends.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) operations: &'static [i32],
    pub(super) last: u64,
}

pub(super) const ADDER: Part = Part { name: "adder", operations: &[ADD, LESS], last: 0 };
pub(super) const MULTIPLIER: Part = Part { name: "multiplier", operations: &[MUL], last: 0 };

/// A service with one device, and what it says.
pub(super) struct Peer {
    pub(super) service: Service,
    pub(super) says: BufReader<ChildStdout>,
}

impl Peer {
    pub(super) fn start(folder: &Path, part: Part) -> Peer {
        Peer::of_level(folder, part, 30)
    }

    pub(super) fn of_level(folder: &Path, part: Part, level: u32) -> Peer {
        let operations: Vec<String> = part.operations.iter().map(ToString::to_string).collect();
        let (path, operations) = (socket(folder, part), operations.join(","));
        let (last, level) = (part.last.to_string(), level.to_string());
        let path = path.to_str().unwrap();
        let arguments = ["serve-part", path, part.name, &operations, &last, &level];
        let (child, says) = peer::spawn(&arguments, Stdio::null());
        let mut peer = Peer { service: Service(child), says };
        peer.wait_for("ready");
        peer
    }

    pub(super) fn wait_for(&mut self, word: &str) {
        let mut line = String::new();
        self.says.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), word);
    }
}

pub(super) fn socket(folder: &Path, part: Part) -> PathBuf {
    folder.join(format!("{}.sock", part.name))
}

pub(super) fn typed(ty: OperandType, dimensions: &[u32]) -> OperandTypeDesc {
    let dimensions = dimensions.to_vec();
    OperandTypeDesc { code: ty.code(), dimensions, ..OperandTypeDesc::default() }
}

/// Adds operands and operations to a model.
pub(super) struct Net(pub(super) Arc<Model>);

impl Net {
    pub(super) fn new() -> Self {
        Net(Model::new())
    }

    pub(super) fn operand(&self, ty: OperandType, dimensions: &[u32]) -> u32 {
        self.0.add_operand(&typed(ty, dimensions)).unwrap()
    }

    pub(super) fn floats(&self) -> u32 {
        self.operand(OperandType::TensorFloat32, &[4])
    }

    pub(super) fn ints(&self) -> u32 {
        self.operand(OperandType::TensorInt32, &[1])
    }

    pub(super) fn set(&self, operand: u32, bytes: &[u8]) -> u32 {
        self.0.set_operand_value(i32::try_from(operand).unwrap(), Some(bytes)).unwrap();
        operand
    }

    /// `a OPERATION b`, without an activation.
    pub(super) fn run(&self, operation: i32, [a, b]: [u32; 2], to: u32) -> u32 {
        let none = self.set(self.operand(OperandType::Int32, &[]), &[0; 4]);
        let inputs = if operation == LESS { vec![a, b] } else { vec![a, b, none] };
        self.0.add_operation(operation, &inputs, &[to]).unwrap();
        to
    }

    pub(super) fn graph(&self, model: &Arc<Model>) -> u32 {
        let graph = self.operand(OperandType::Subgraph, &[]);
        let index = i32::try_from(graph).unwrap();
        self.0.set_operand_value_from_model(index, model).unwrap();
        graph
    }

    pub(super) fn finish(self, inputs: &[u32], outputs: &[u32]) -> Arc<Model> {
        self.0.identify_inputs_and_outputs(inputs, outputs).unwrap();
        self.0.finish().unwrap();
        self.0
    }
}

/// A model that falls into several steps, what it is run on, what comes of it, and how often each device executes.
pub(super) struct Fixture {
    pub(super) name: &'static str,
    pub(super) model: Arc<Model>,
    pub(super) inputs: Vec<Vec<u8>>,
    pub(super) wanted: Vec<Vec<u8>>,
    pub(super) executions: [u64; 2],
}

pub(super) fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub(super) const X: [f32; 4] = [0.0, 1.0, 2.0, -3.0];

/// `(x + x) * x + x`: three steps.
pub(super) fn chain() -> Fixture {
    let net = Net::new();
    let x = net.floats();
    let twice = net.run(ADD, [x, x], net.floats());
    let square = net.run(MUL, [twice, x], net.floats());
    let y = net.run(ADD, [square, x], net.floats());
    Fixture {
        name: "chain",
        model: net.finish(&[x], &[y]),
        inputs: vec![bytes(&X)],
        wanted: vec![bytes(&X.map(|x| (x + x) * x + x))],
        executions: [2, 1],
    }
}

/// Where the condition holds `x * x + x`, else `(x + x) * x`, and `+ x` behind it.
pub(super) fn branching(holds: bool) -> Fixture {
    let branch = |[first, second]: [i32; 2]| {
        let net = Net::new();
        let x = net.floats();
        let between = net.run(first, [x, x], net.floats());
        let y = net.run(second, [between, x], net.floats());
        net.finish(&[x], &[y])
    };
    let (then, otherwise) = (branch([MUL, ADD]), branch([ADD, MUL]));
    let net = Net::new();
    let condition = net.operand(OperandType::TensorBool8, &[1]);
    let x = net.floats();
    let (then, otherwise) = (net.graph(&then), net.graph(&otherwise));
    let chosen = net.floats();
    let operation = OperationType::If.code();
    net.0.add_operation(operation, &[condition, then, otherwise, x], &[chosen]).unwrap();
    let y = net.run(ADD, [chosen, x], net.floats());
    let wanted = X.map(|x| if holds { x * x + x + x } else { (x + x) * x + x });
    Fixture {
        name: if holds { "the branch where the condition holds" } else { "the other branch" },
        model: net.finish(&[condition, x], &[y]),
        inputs: vec![vec![u8::from(holds)], bytes(&X)],
        wanted: vec![bytes(&wanted)],
        executions: [2, 1],
    }
}

/// Twice `x = x * x + x`, counted by the device that adds.
pub(super) fn looping() -> Fixture {
    let state = |net: &Net| (net.ints(), net.floats(), net.ints());
    let net = Net::new();
    let (i, x, n) = state(&net);
    let goes_on = net.operand(OperandType::TensorBool8, &[1]);
    net.run(LESS, [i, n], goes_on);
    let condition = net.finish(&[i, x, n], &[goes_on]);
    let net = Net::new();
    let (i, x, n) = state(&net);
    let one = net.set(net.ints(), &1_i32.to_le_bytes());
    let square = net.run(MUL, [x, x], net.floats());
    let sum = net.run(ADD, [square, x], net.floats());
    let next = net.run(ADD, [i, one], net.ints());
    let body = net.finish(&[i, x, n], &[next, sum]);
    let net = Net::new();
    let (condition, body) = (net.graph(&condition), net.graph(&body));
    let (i, x, n) = state(&net);
    let (last, y) = (net.ints(), net.floats());
    let operation = OperationType::While.code();
    net.0.add_operation(operation, &[condition, body, i, x, n], &[last, y]).unwrap();
    let int = |value: i32| value.to_le_bytes().to_vec();
    let once = |x: f32| x * x + x;
    Fixture {
        name: "loop",
        model: net.finish(&[i, x, n], &[last, y]),
        inputs: vec![int(0), bytes(&X), int(2)],
        wanted: vec![int(2), bytes(&X.map(|x| once(once(x))))],
        // Three times the condition; in each round what adds before the product, or only behind it.
        executions: [5, 2],
    }
}

impl Fixture {
    pub(super) fn ready(
        &self,
        compilation: &Arc<Compilation>,
    ) -> (Arc<Execution>, Vec<Arc<HeapMemory>>) {
        let execution = Execution::new(compilation).unwrap();
        for (index, value) in (0..).zip(&self.inputs) {
            let argument = Argument::Host(Arc::new(HeapMemory::new(value.clone())));
            execution.set_input(index, None, argument).unwrap();
        }
        let rooms = self.wanted.iter().map(|value| Arc::new(HeapMemory::new(vec![0; value.len()])));
        let outputs: Vec<_> = rooms.collect();
        for (index, output) in (0..).zip(&outputs) {
            execution.set_output(index, None, Argument::Host(output.clone())).unwrap();
        }
        (execution, outputs)
    }

    /// How one execution ends; `None` for the right answer.
    pub(super) fn run(&self, compilation: &Arc<Compilation>) -> Option<ResultCode> {
        let (execution, outputs) = self.ready(compilation);
        if let Err(error) = execution.compute() {
            return Some(error.code);
        }
        let found: Vec<Vec<u8>> = outputs.iter().map(|output| output.to_vec()).collect();
        assert_eq!(found, self.wanted, "{}", self.name);
        None
    }
}

/// Devices of two services, and the reference.
pub(super) struct Devices(pub(super) Vec<Arc<RuntimeDevice>>);

impl Devices {
    pub(super) fn at(folder: &Path, longest: Duration) -> Devices {
        let remote = |part: Part| {
            RuntimeDevice::remote_within(&socket(folder, part), part.name, longest).unwrap()
        };
        let reference = RuntimeDevice::reference(Arc::new(ReferenceDevice::default())).unwrap();
        Devices(vec![remote(ADDER), remote(MULTIPLIER), reference])
    }

    /// For these devices alone, or for all with one that stands in.
    pub(super) fn compile(&self, model: &Arc<Model>, is_named: bool) -> Arc<Compilation> {
        let compilation = match is_named {
            true => Compilation::for_devices(model, &self.0).unwrap(),
            false => Compilation::new(model, &Registry::of(self.0.clone())).unwrap(),
        };
        compilation.finish().unwrap();
        let plan = compilation.plan().unwrap();
        let Plan::Compound(graph) = &*plan else { panic!("one device") };
        assert!(graph.device_steps().len() > 2);
        compilation
    }
}

/// Runs something that is to end, also where a service does not answer.
pub(super) fn ends<T: Send + 'static>(what: &str, run: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = channel();
    let thread = std::thread::spawn(move || {
        // Nobody listens where it has taken too long.
        let _ = tell.send(run());
    });
    let ended = told.recv_timeout(LONG).unwrap_or_else(|error| panic!("{what}: {error}"));
    thread.join().unwrap();
    ended
}
